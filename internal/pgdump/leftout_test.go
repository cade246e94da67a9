package pgdump_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgdump"
)

// TestImportLeavesOutWhatNeedsASuperuser imports a dump of objects that only a superuser can
// create, and of dependents of them. They are left out with their lines, and everything else is
// imported.
func TestImportLeavesOutWhatNeedsASuperuser(t *testing.T) {
	t.Parallel()

	dump, err := os.ReadFile("testdata/superuser.sql")
	if err != nil {
		t.Fatal(err)
	}

	p := newTarget(t)
	report, err := p.importDump(string(dump), pgdump.Options{Skip: []string{"public.skipped", "public.kept.unwanted"}})
	if err != nil {
		t.Fatal(err)
	}

	var notes strings.Builder
	for _, n := range report.Notes {
		if n.Topic != pgdump.Owners {
			fmt.Fprintf(&notes, "%d %s: %s\n", n.Line, n.Topic, n.Text)
		}
	}

	want, err := os.ReadFile("testdata/superuser.notes")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(notes.String(), "\n")); diff != "" {
		t.Errorf("notes (-want +got):\n%s\n%s", diff, notes.String())
	}

	const public = "namespace = 'public'::regnamespace"
	for query, want := range map[string]string{
		`select string_agg(relkind::text || relname, ' ' order by relname) from pg_class where rel` + public: "rchecked rkept ikept_name ikept_pkey",
		`select string_agg(oid::regprocedure::text, ' ' order by 1) from pg_proc
			where not proleakproof and proname !~ '^later' and pro` + public: "public.size(text) public.total(integer)",
		`select string_agg(typname || coalesce(obj_description(oid, 'pg_type'), ''), ' ' order by typname) from pg_type
			where typtype in ('e', 'r') and typ` + public: "laterkept level",
		`select count(*) || string_agg(n::text, '') || (select string_agg(conname, '') from pg_constraint where conrelid = 'public.checked'::regclass) ||
			(select string_agg(attname, '') from pg_attribute where attrelid = 'public.checked'::regclass and attnotnull and attnum > 0) from public.checked`: "12.00did",
		`select string_agg(polname, ' ') from pg_policy where polrelid = 'public.kept'::regclass`: "sized",
		`select obj_description('public.size(text)'::regprocedure) || count(*) || has_table_privilege('anon', 'public.kept', 'select') ||
			(select count(*) from pg_cast where castsource = 'public.level'::regtype) from public.kept`: "kept1true1",
	} {
		if got := p.value(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	_, err = p.importDump("create table public.more (id int);", pgdump.Options{Skip: []string{"public.unknown"}})
	if err == nil || !strings.Contains(err.Error(), "no object public.unknown") ||
		p.value(`select to_regclass('public.more')::text`) != "null" {
		t.Errorf("an unknown object to skip: got %v", err)
	}
}
