package server_test

import (
	"os"
	"testing"

	"socle/internal/pgtest"
)

// workshop is a folder for the duration of the tests.
var workshop string

func TestMain(m *testing.M) {
	var err error
	if workshop, err = os.MkdirTemp("", "socle-server-test-"); err != nil {
		panic(err)
	}

	defer os.RemoveAll(workshop)

	pgtest.Main(m)
}
