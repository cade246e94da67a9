package schema

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/namespace"
)

// TestReservedInSQL checks that userSchema names the platform's schemas.
func TestReservedInSQL(t *testing.T) {
	t.Parallel()

	for _, list := range []string{
		namespace.List(namespace.Services...),
		namespace.List(append(namespace.Platform, "information_schema")...),
	} {
		if !strings.Contains(userSchema, "n.nspname in "+list) && !strings.HasSuffix(userSchema, "not in "+list) {
			t.Errorf("the condition %s lacks the list %s", userSchema, list)
		}
	}
}
