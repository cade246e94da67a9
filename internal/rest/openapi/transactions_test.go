package openapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTransactions checks that batches and keys are described where they are turned on.
func TestTransactions(t *testing.T) {
	t.Parallel()

	with := describe(t, Schema{Catalog: library(), Name: "public", Transactions: true}, AllPrivileges)
	without := describe(t, Schema{Catalog: library(), Name: "public"}, AllPrivileges)
	if with.Paths["/"]["post"] == nil || without.Paths["/"]["post"] != nil {
		t.Errorf("got the root %v, and without batches %v", with.Paths["/"], without.Paths["/"])
	}

	for path, methods := range map[string]string{"/authors": "post patch delete", "/rpc/feel": "post", "/": "post"} {
		for method := range with.Paths[path] {
			text, err := json.Marshal(with.Paths[path][method])
			if err != nil {
				t.Fatal(err)
			}

			isWrite := strings.Contains(methods, method)
			if strings.Contains(string(text), `"#/parameters/idempotencyKey"`) != isWrite {
				t.Errorf("%s %s: want a key %v, got %s", method, path, isWrite, text)
			}
		}
	}
}
