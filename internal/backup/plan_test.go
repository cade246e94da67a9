package backup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestPlanRestore divides the entries of a dump by the login that restores them.
func TestPlanRestore(t *testing.T) {
	t.Parallel()

	manifest := Manifest{Project: uuid.New(), Extensions: []projectdb.Extension{{Name: "hstore", Schema: "extensions"}}}
	from, to := projectdb.OwnerLoginOf(manifest.database()), "socle_other_owner"

	for name, c := range map[string]struct {
		entry entry
		want  string // which part of the plan has the entry
	}{
		"encoding":                {entry{desc: "ENCODING"}, ""},
		"files":                   {entry{desc: "TABLE DATA", namespace: "storage", tag: "files"}, "platform"},
		"definition of files":     {entry{desc: "TABLE", namespace: "storage", tag: "files"}, ""},
		"migrations":              {entry{desc: "TABLE DATA", namespace: "socle", tag: "migrations"}, ""},
		"schema of the platform":  {entry{desc: "SCHEMA", tag: "storage"}, ""},
		"schema of the user":      {entry{desc: "SCHEMA", tag: "sales"}, "user"},
		"schema of an extension":  {entry{desc: "SCHEMA", tag: "extensions"}, ""},
		"extension":               {entry{desc: "EXTENSION", tag: "hstore"}, ""},
		"unknown extension":       {entry{desc: "EXTENSION", tag: "plpython3u"}, "refused"},
		"language":                {entry{desc: "PROCEDURAL LANGUAGE", tag: "plperlu"}, "refused"},
		"event trigger":           {entry{desc: "EVENT TRIGGER", tag: "spy"}, "refused"},
		"platform's trigger":      {entry{desc: "EVENT TRIGGER", tag: "socle_refuse_references"}, ""},
		"table of the user":       {entry{desc: "TABLE", namespace: "public", tag: "orders"}, "user"},
		"rows of the user":        {entry{desc: "TABLE DATA", namespace: "public", tag: "orders"}, "user"},
		"comment on an extension": {entry{desc: "COMMENT", tag: "EXTENSION hstore"}, ""},
		"privileges on a table": {
			entry{desc: "ACL", namespace: "public", tag: "TABLE orders", definition: "grant select to " + from},
			"statements",
		},
		"privileges on the database":  {entry{desc: "ACL", tag: "DATABASE x", definition: "grant"}, ""},
		"default privileges":          {entry{desc: "DEFAULT ACL", owner: from, definition: "alter default"}, "statements"},
		"default privileges of other": {entry{desc: "DEFAULT ACL", owner: "postgres", definition: "alter default"}, ""},
		"policy":                      {entry{desc: "POLICY", namespace: "public", definition: "create policy"}, "user"},
		"policy for the owner":        {entry{desc: "POLICY", namespace: "public", definition: "to " + from}, "statements"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, err := planRestore([]entry{c.entry}, manifest, to)
			if err != nil && fault.Of(err).Kind != fault.Unprocessable {
				t.Fatal(err)
			}

			got := ""
			switch {
			case err != nil:
				got = "refused"
			case len(p.platform) > 0:
				got = "platform"
			case len(p.user) > 0:
				got = "user"
			case len(p.statements) > 0:
				got = "statements"
			}

			if got != c.want {
				t.Errorf("got %q, want %q for %+v", got, c.want, c.entry)
			}
			if slices.ContainsFunc(p.statements, func(sql string) bool { return strings.Contains(sql, from) }) {
				t.Errorf("statements %q name the login of the other project", p.statements)
			}
		})
	}
}
