package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// named returns the item with a name in a list of the statistics.
func named(r *apitest.Reply, list, name string) map[string]any {
	for _, item := range r.Get(list).([]any) {
		if m := item.(map[string]any); m["name"] == name || m["login"] == name {
			return m
		}
	}

	return nil
}

func number(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

func TestGetStatistics(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	populate(t, a)
	path := "/projects/" + a.Project + "/statistics"

	asOwner(t, a,
		`insert into public.orders select n, repeat('x', 100) from generate_series(1, 5000) n; analyze public.orders;
		create index lean_note on public.orders (note); create unique index orders_unique on public.orders (note, id);
		create schema shop; create table shop.small (id int); create index small_id on shop.small (id)`)

	r := a.Member(5).Get(path).Want(200).Content("files.count", 1).Content("files.bytes", 5).
		Content("backups.count", 1).
		Content("tables.0.name", "orders").Content("tables.0.schema", "public").Content("tables.0.estimatedRows", 5000).
		Content("unusedIndexes.0.name", "lean_note").Content("unusedIndexes.0.table", "orders").
		Content("unusedIndexes.3.schema", "shop").
		Content("slowStatements.available", true)
	if got := names(r, "tables"); !slices.Equal(got, []string{"orders", "old", "small"}) {
		t.Errorf("got tables %q, want the user's", got)
	}

	if got := names(r, "unusedIndexes"); !slices.Equal(got, []string{
		"lean_note", "noted_index", "old_index", "small_id",
	}) {
		t.Errorf("got indexes %q, want the non-unique ones", got)
	}
	if number(r.Get("tables.0.size")) < 1_000_000 || number(r.Get("databaseSize")) < number(r.Get("tables.0.size")) ||
		number(r.Get("backups.bytes")) == 0 {
		t.Errorf("got sizes %s", r.Body)
	}
	if owner := named(r, "connections", "owner"); owner == nil || number(owner["total"]) < 1 {
		t.Errorf("the owner's connections are missing: %s", r.Body)
	}

	for _, secret := range []string{"socle_", a.Project} {
		if strings.Contains(string(r.Body), secret) {
			t.Errorf("the response contains %s: %s", secret, r.Body)
		}
	}

	a.OtherUser().Get(path).Want(404)
	a.Get("/projects/garbage/statistics").Want(400)

	// A locked table does not block the statistics.
	conn := a.ConnectProject()
	if _, err := conn.Exec(t.Context(), "begin; lock table public.orders"); err != nil {
		t.Fatal(err)
	}

	a.Get(path).Want(200).Content("tables.0.name", "orders")
}

func names(r *apitest.Reply, list string) []string {
	var all []string
	for _, item := range r.Get(list).([]any) {
		all = append(all, fmt.Sprint(item.(map[string]any)["name"]))
	}

	return all
}

// TestSlowStatements checks that statements counted by PostgreSQL are listed without their values,
// and without those of other projects. Functions of the project with the names of the called ones
// are not called.
func TestSlowStatements(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	path := "/projects/" + a.Project + "/statistics"

	asOwner(t, a,
		`create function public.pg_stat_statements(boolean) returns int language plpgsql as $$ begin raise 'called'; end $$;
		create function public.starts_with(name, text) returns boolean language plpgsql as $$ begin raise 'called'; end $$;
		create view public.pg_stat_activity as select 1`)

	owner := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner()
	const calls = 3
	run, shown := 0, 0

	// PostgreSQL evicts rarely used statements, and the other tests run many.
	until(t, "the owner's statement is shown", func() bool {
		for range calls {
			if _, err := owner.Exec(t.Context(),
				"select 'canary', count(*) from pg_catalog.pg_class where relname <> 'secret'"); err != nil {
				t.Fatal(err)
			}

			run++
		}

		r := a.Get(path).Want(200).Content("slowStatements.available", true).Content("slowStatements.reason", "")
		for _, s := range r.Get("slowStatements.statements").([]any) {
			m := s.(map[string]any)
			text := m["text"].(string)
			if strings.Contains(text, "relname <>") {
				shown, _ = strconv.Atoi(fmt.Sprint(m["calls"]))
			}

			if strings.Contains(text, "secret") || strings.Contains(text, "storage.files") {
				t.Errorf("shown: %s", text)
			}
		}

		return shown >= calls
	})

	if shown > run {
		t.Errorf("got %d calls of the owner's statement, want at most %d", shown, run)
	}
	if other := a.CreateProject(
		"other",
	); strings.Contains(string(a.Get("/projects/"+other+"/statistics").Want(200).Body), "relname <>") {
		t.Error("a project sees the statements of another one")
	}

	a.Exec("drop extension pg_stat_statements")
	r := a.Get(path).Want(200).Content("slowStatements.available", false).Content("slowStatements.statements", "[]")
	if reason := r.Get("slowStatements.reason").(string); !strings.Contains(reason, "not installed") {
		t.Errorf("got the reason %q", reason)
	}
}
