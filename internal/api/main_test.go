package api_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestMain checks after a full run that the tests have provoked every declared response of every
// operation.
func TestMain(m *testing.M) {
	sandbox.Init()

	if deno, err := filepath.Abs("../../bin/deno"); err == nil {
		_ = os.Setenv("SOCLE_DENO_BIN", deno) // fails only for an invalid name
	}

	code := pgtest.Run(m, apitest.StopShared)
	if code == 0 && allTestsRun() {
		code = provoked()
	}

	os.Exit(code)
}

// allTestsRun reports whether the run includes all tests.
func allTestsRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}

	return true
}

func provoked() (code int) {
	missing, err := apitest.MissingResponses(api.Document())
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the OpenAPI document:", err)
		return 1
	}

	if len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "declared, but provoked by no test:\n\t"+strings.Join(missing, "\n\t"))
		return 1
	}

	return 0
}
