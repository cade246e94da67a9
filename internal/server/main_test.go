package server_test

import (
	"os"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

// testDir is a folder for the duration of the tests.
var testDir string

func TestMain(m *testing.M) {
	var err error
	if testDir, err = os.MkdirTemp("", "socle-server-test-"); err != nil {
		panic(err)
	}

	defer os.RemoveAll(testDir)

	pgtest.Main(m)
}
