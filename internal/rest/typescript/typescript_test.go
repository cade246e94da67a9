package typescript_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/typescript"
)

// texts matches the string literals of a source.
var texts = regexp.MustCompile(`"(\\.|[^"\\\n])*"`)

// FuzzSource checks that no name breaks out of its literal: the source outside of strings is
// independent of names.
func FuzzSource(f *testing.F) {
	for _, name := range []string{`x`, `"`, `\`, "a\nb", "*/ }", "x: any", "\u2028", "\xff", "1a", "ä", "type"} {
		f.Add(name, "integer", "other")
	}

	f.Fuzz(func(t *testing.T, name, sql, value string) {
		// PostgreSQL has no such name, and prints one pair for all dimensions
		if name == "" || strings.Count(sql, "[]") > 8 {
			return
		}

		got, want := outside(
			typescript.Source(database(name, sql, value)),
		), outside(typescript.Source(database("-", sql, "-")))
		if got != want {
			t.Errorf("named %q, of %q:\n%s\nwant\n%s", name, value, got, want)
		}

		for _, pair := range []string{"{}", "[]", "()"} {
			if strings.Count(got, pair[:1]) != strings.Count(got, pair[1:]) {
				t.Errorf("named %q: unequal %s in\n%s", name, pair, got)
			}
		}
	})
}

// outside returns a source without its string literals and without unquoted names.
func outside(source string) string {
	return regexp.MustCompile(`(?m)[A-Za-z0-9_$]+(\??:)`).ReplaceAllString(texts.ReplaceAllString(source, "T"), "T$1")
}

// database returns a catalog whose objects all have the same name.
func database(name, sql, value string) (
	*catalog.Catalog, []catalog.Type, []*catalog.Function,
) {
	at := catalog.Name{Schema: name, Name: name}
	column := &catalog.Column{Name: name, Type: sql, BaseType: sql}
	param := catalog.Parameter{Name: name, Type: sql, Required: true}

	table := &catalog.Relation{
		Name:       at,
		Kind:       'r',
		Insertable: true,
		Updatable:  true,
		Columns:    []*catalog.Column{column},
	}

	view := &catalog.Relation{
		Name:    catalog.Name{Schema: name, Name: name + "v"},
		Kind:    'v',
		Columns: []*catalog.Column{column},
	}

	return &catalog.Catalog{
			Schemas:   []string{name},
			Relations: map[catalog.Name]*catalog.Relation{at: table, view.Name: view},
			Links: map[catalog.Name][]*catalog.Link{at: {{Kind: catalog.ManyToOne, From: at, To: at, Constraint: name,
				Pairs: []catalog.Pair{{From: name, To: name}}}}},
			Functions: map[catalog.Name][]*catalog.Function{at: {
				{Name: at,
					Params:  []catalog.Parameter{param},
					Returns: catalog.Returned{Set: true, Composite: true, Columns: []catalog.Parameter{param}}},
				{Name: at, Returns: catalog.Returned{Set: true, Composite: true, Relation: at}},
			}},
		}, []catalog.Type{{Name: at, Type: "mood", Kind: 'e', Values: []string{value, name}},
			{Name: at, Type: "pair", Kind: 'c', Attributes: []catalog.Parameter{param}},
			{Name: at, Type: "things", Kind: 'c', Row: true},
		}, []*catalog.Function{
			{Name: at, Params: []catalog.Parameter{{Type: "things"}}, Returns: catalog.Returned{Type: sql}},
		}
}
