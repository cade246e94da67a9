package schema

import (
	"strings"
	"testing"
)

// TestReservedInSQL checks that userSchema and reserved implement the same rule.
func TestReservedInSQL(t *testing.T) {
	t.Parallel()

	quoted := "('" + strings.Join(reservedSchemas, "', '") + "')"
	if !strings.HasSuffix(userSchema, quoted) {
		t.Errorf("the condition %s does not end with the reserved schemas %s", userSchema, quoted)
	}

	for _, schema := range append([]string{"pg_catalog", "pg_toast", "pg_temp_3", "pg_mine"}, reservedSchemas...) {
		if !reserved(schema) {
			t.Errorf("%s is not reserved", schema)
		}
	}

	for _, schema := range []string{"public", "app", "pgx", "Auth", "auth_"} {
		if reserved(schema) {
			t.Errorf("%s is reserved", schema)
		}
	}
}
