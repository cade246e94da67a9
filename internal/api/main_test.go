package api_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"socle/internal/api"
	"socle/internal/api/apitest"
	"socle/internal/pgtest"
)

// TestMain holds the whole suite to a law of its own: every answer that an operation declares, some test provokes.
func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	if code == 0 && everything() {
		code = provoked()
	}

	os.Exit(code)
}

// everything reports whether no test was left out.
func everything() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}

	return true
}

func provoked() (code int) {
	missing, err := apitest.Unprovoked(api.Document())
	if err != nil {
		fmt.Fprintln(os.Stderr, "the OpenAPI document:", err)
		return 1
	}

	if len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "declared, but provoked by no test:\n\t"+strings.Join(missing, "\n\t"))
		return 1
	}

	return 0
}
