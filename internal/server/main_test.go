package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/pgtest/tmpdir"
)

// testDir is a folder for the duration of the tests.
var testDir string

func TestMain(m *testing.M) {
	sandbox.Init()

	deno, err := filepath.Abs("../../bin/deno")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("SOCLE_DENO_BIN", deno) // fails only for an invalid name

	dir, err := tmpdir.New("")
	if err != nil {
		panic(err)
	}

	testDir = dir.Path
	dir.Use()

	os.Exit(pgtest.Run(m, apitest.StopShared, dir.Close))
}
