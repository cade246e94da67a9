package server_test

import (
	"os"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// testDir is a folder for the duration of the tests.
var testDir string

func TestMain(m *testing.M) {
	var err error
	if testDir, err = os.MkdirTemp("", "socle-server-test-"); err != nil {
		panic(err)
	}

	os.Exit(pgtest.Run(m, apitest.StopShared, func() error { return os.RemoveAll(testDir) }))
}
