package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newPool returns a pool for a new database after running the statements in it.
func newPool(t testing.TB, sql string) *pgxpool.Pool {
	t.Helper()

	config, err := pg.PoolConfig(pgtest.URL(t), 4)
	if err != nil {
		t.Fatal(err)
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)

	// One round trip without arguments, which allows several statements; the search path is a
	// user's.
	if _, err := pool.Exec(t.Context(), "set search_path = public; "+sql+"; reset search_path"); err != nil {
		t.Fatal(err)
	}

	return pool
}

// read returns the catalog of a new database after running the statements in it. It exposes the
// schemas, or public by default.
func read(t testing.TB, sql string, schemas ...string) *catalog.Catalog {
	t.Helper()

	if len(schemas) == 0 {
		schemas = []string{"public"}
	}

	c, err := catalog.Read(t.Context(), newPool(t, sql), catalog.Options{Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func relation(t testing.TB, c *catalog.Catalog, name string) *catalog.Relation {
	t.Helper()

	r := c.Relations[catalog.Name{Schema: "public", Name: name}]
	if r == nil {
		t.Fatalf("there is no public.%s", name)
	}

	return r
}

// links describes the links from a relation of public, one per line.
func links(c *catalog.Catalog, from string) []string {
	var lines []string
	for _, l := range c.Links[catalog.Name{Schema: "public", Name: from}] {
		line := [...]string{"many-to-one", "one-to-many", "one-to-one", "many-to-many", "computed"}[l.Kind]
		if l.Forward {
			line += " forward"
		}

		line += " " + short(l.To)
		switch l.Kind {
		case catalog.Computed:
			line += " by " + short(l.Function.Name)
			if l.Single {
				line += " single"
			}
		case catalog.ManyToMany:
			line += fmt.Sprintf(" through %s by %s(%s) and %s(%s)", short(l.Through), l.Constraint, pairs(l.Pairs),
				l.ThroughConstraint, pairs(l.ThroughPairs))
		default:
			line += fmt.Sprintf(" by %s(%s)", l.Constraint, pairs(l.Pairs))
		}

		lines = append(lines, line)
	}

	return lines
}

func short(n catalog.Name) string {
	if n.Schema == "public" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

func pairs(list []catalog.Pair) string {
	var texts []string
	for _, p := range list {
		texts = append(texts, p.From+"="+p.To)
	}

	return strings.Join(texts, ", ")
}

// wantLinks compares the links from a relation of public with lines.
func wantLinks(t *testing.T, c *catalog.Catalog, from string, want ...string) {
	t.Helper()

	if diff := cmp.Diff(want, links(c, from)); diff != "" {
		t.Errorf("links from %s (-want +got):\n%s", from, diff)
	}
}
