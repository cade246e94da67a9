package backup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestPlanRestore divides the entries of a dump by the login that restores them.
func TestPlanRestore(t *testing.T) {
	t.Parallel()

	manifest := archive.Manifest{
		Project: uuid.New(), Extensions: []projectdb.Extension{
			{Name: "hstore", Schema: "extensions"}, {Name: "http", Schema: "extensions"},
		},
	}
	from, to := pgcluster.OwnerLoginOf(manifest.DatabaseName()), "socle_other_owner"

	type entry = pgdump.Entry
	for name, c := range map[string]struct {
		entry pgdump.Entry
		want  string // which part of the plan has the entry
	}{
		"encoding":                {entry{Desc: "ENCODING"}, ""},
		"files":                   {entry{Desc: "TABLE DATA", Namespace: "storage", Tag: "files"}, "platform"},
		"definition of files":     {entry{Desc: "TABLE", Namespace: "storage", Tag: "files"}, ""},
		"migrations":              {entry{Desc: "TABLE DATA", Namespace: "socle", Tag: "migrations"}, ""},
		"schema of the platform":  {entry{Desc: "SCHEMA", Tag: "storage"}, ""},
		"schema of the user":      {entry{Desc: "SCHEMA", Tag: "sales"}, "user"},
		"schema of an extension":  {entry{Desc: "SCHEMA", Tag: "extensions"}, ""},
		"extension":               {entry{Desc: "EXTENSION", Tag: "hstore"}, ""},
		"emulated function":       {entry{Desc: "FUNCTION", Namespace: "extensions", Tag: "f()", Owner: "postgres"}, ""},
		"function in extensions":  {entry{Desc: "FUNCTION", Namespace: "extensions", Tag: "f()", Owner: from}, "user"},
		"unknown extension":       {entry{Desc: "EXTENSION", Tag: "plpython3u"}, "refused"},
		"language":                {entry{Desc: "PROCEDURAL LANGUAGE", Tag: "plperlu"}, "refused"},
		"event trigger":           {entry{Desc: "EVENT TRIGGER", Tag: "spy"}, "refused"},
		"platform's trigger":      {entry{Desc: "EVENT TRIGGER", Tag: "socle_refuse_references"}, ""},
		"table of the user":       {entry{Desc: "TABLE", Namespace: "public", Tag: "orders"}, "user"},
		"rows of the user":        {entry{Desc: "TABLE DATA", Namespace: "public", Tag: "orders"}, "user"},
		"comment on an extension": {entry{Desc: "COMMENT", Tag: "EXTENSION hstore"}, ""},
		"privileges on a table": {
			entry{Desc: "ACL", Namespace: "public", Tag: "TABLE orders", Definition: "grant select to " + from},
			"statements",
		},
		"privileges on the database":  {entry{Desc: "ACL", Tag: "DATABASE x", Definition: "grant"}, ""},
		"default privileges":          {entry{Desc: "DEFAULT ACL", Owner: from, Definition: "alter default"}, "statements"},
		"default privileges of other": {entry{Desc: "DEFAULT ACL", Owner: "postgres", Definition: "alter default"}, ""},
		"policy":                      {entry{Desc: "POLICY", Namespace: "public", Definition: "create policy"}, "user"},
		"rows of a table of policies": {entry{Desc: "TABLE DATA", Namespace: "storage", Tag: "objects"}, ""},
		"policy on objects":           {entry{Desc: "POLICY", Namespace: "storage", Definition: "create policy"}, "user"},
		"policy for the owner":        {entry{Desc: "POLICY", Namespace: "public", Definition: "to " + from}, "statements"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, err := planRestore([]pgdump.Entry{c.entry}, manifest, to)
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
			if slices.ContainsFunc(p.statements, func(e pgdump.Entry) bool {
				return strings.Contains(e.Definition, from)
			}) {
				t.Errorf("statements %v name the login of the other project", p.statements)
			}
		})
	}
}
