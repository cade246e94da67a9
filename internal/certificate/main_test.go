package certificate

import (
	"os"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"PEBBLE_VA_NOSLEEP":      "1", // otherwise pebble waits up to 15 seconds before a validation
		"PEBBLE_WFE_NONCEREJECT": "0",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}

	pgtest.Main(m)
}
