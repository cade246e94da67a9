package migration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/sqllex"
)

const owner = "socle_0123456789abcdef0123456789abcdef_owner"

// entries returns the entries of a dump. Each depends on the others whose tag follows its
// definition after "--".
func entries(all ...pgdump.Entry) []pgdump.Entry {
	for i := range all {
		all[i].ID = i + 1
		all[i].Namespace = "public"
		definition, uses, _ := strings.Cut(all[i].Definition, " -- ")
		all[i].Definition = definition

		for _, tag := range strings.Fields(uses) {
			n := slices.IndexFunc(all, func(e pgdump.Entry) bool { return e.Tag == tag })
			all[i].Depends = append(all[i].Depends, n+1)
		}
	}

	return all
}

func entry(desc, tag, definition, drop string) pgdump.Entry {
	return pgdump.Entry{Desc: desc, Tag: tag, Definition: definition, Drop: drop}
}

func books(columns string) pgdump.Entry {
	return entry("TABLE", "books", "CREATE TABLE public.books (\n"+columns+"\n);\n", "DROP TABLE public.books;\n")
}

// TestCompare checks the statements for a change of each kind, and that warnings precede
// destructive and blocking ones.
func TestCompare(t *testing.T) {
	t.Parallel()

	names := entry("VIEW", "names", "CREATE VIEW public.names AS\n SELECT books.title\n   FROM public.books; -- books",
		"DROP VIEW public.names;")
	mood := func(values string) pgdump.Entry {
		return entry("TYPE", "mood", "CREATE TYPE public.mood AS ENUM (\n"+values+"\n);", "DROP TYPE public.mood;")
	}

	for name, test := range map[string]struct {
		from, to []pgdump.Entry
		want     string // without line breaks
	}{
		"nothing": {entries(books("id integer")), entries(books("id integer")), ""},
		"columns in another order": {
			entries(books("id integer,\n    title text")), entries(books("title text,\n    id integer")), "",
		},
		"column": {
			entries(books("id integer")), entries(books("id integer,\n    \"a, b\" text DEFAULT ')'::text NOT NULL")),
			`ALTER TABLE public.books ADD COLUMN "a, b" text DEFAULT ')'::text NOT NULL;`,
		},
		"dropped column, with the view that uses it": {
			entries(books("id integer,\n    title text"), names), entries(books("id integer")),
			"DROP VIEW public.names; -- warning: destroys data ALTER TABLE public.books DROP COLUMN title;",
		},
		"type, with the view that uses it": {
			entries(books("title text"), names), entries(books("title character varying(9) COLLATE pg_catalog.\"C\""), names),
			"DROP VIEW public.names; -- warning: rewrites the table, which nobody can read or write meanwhile " +
				`ALTER TABLE public.books ALTER COLUMN title TYPE character varying(9) COLLATE pg_catalog."C" USING title::character varying(9); ` +
				"CREATE VIEW public.names AS SELECT books.title FROM public.books;",
		},
		"dropped table, with its parts": {
			entries(books("id integer"),
				entry("INDEX", "books_id", "CREATE INDEX books_id ON public.books USING btree (id); -- books", "DROP INDEX public.books_id;"),
				entry("POLICY", "books own", "CREATE POLICY own ON public.books; -- books",
					"DROP POLICY own ON public.books;")),
			nil, "-- warning: destroys data DROP TABLE public.books;",
		},
		"dropped table, which a policy of another one uses": {
			entries(books("id integer"),
				entry("TABLE", "t", "CREATE TABLE public.t (\n    id integer\n);", "DROP TABLE public.t;"),
				entry("POLICY", "t own", "CREATE POLICY own ON public.t; -- books t", "DROP POLICY own ON public.t;")),
			entries(entry("TABLE", "t", "CREATE TABLE public.t (\n    id integer\n);", "DROP TABLE public.t;")),
			"DROP POLICY own ON public.t; -- warning: destroys data DROP TABLE public.books;",
		},
		"values of an enum": {
			entries(mood("'b', 'd'")), entries(mood("'a', 'b', 'c', 'd'")),
			"ALTER TYPE public.mood ADD VALUE 'a' BEFORE 'b'; ALTER TYPE public.mood ADD VALUE 'c' AFTER 'b';",
		},
		"value that goes": {
			entries(mood("'a', 'b'")), entries(mood("'a'")),
			"DROP TYPE public.mood; CREATE TYPE public.mood AS ENUM ( 'a' );",
		},
		"value that goes, of an enum that a table uses": {
			entries(mood("'a', 'b'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood\n); -- mood", "DROP TABLE public.t;")),
			entries(mood("'a'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood\n); -- mood", "DROP TABLE public.t;")),
			"unresolved: type public.mood, which table public.t uses",
		},
		"body of a function": {
			entries(entry("FUNCTION", "f()", "CREATE FUNCTION public.f() RETURNS integer\n    AS $$select 1;$$;", "DROP FUNCTION public.f();")),
			entries(entry("FUNCTION", "f()", "CREATE FUNCTION public.f() RETURNS integer\n    AS $$select 2;$$;", "DROP FUNCTION public.f();")),
			"CREATE OR REPLACE FUNCTION public.f() RETURNS integer AS $$select 2;$$;",
		},
		"result of a function": {
			entries(entry("FUNCTION", "f()", "CREATE FUNCTION public.f() RETURNS integer\n    AS $$1$$;", "DROP FUNCTION public.f();")),
			entries(entry("FUNCTION", "f()", "CREATE FUNCTION public.f() RETURNS text\n    AS $$1$$;", "DROP FUNCTION public.f();")),
			"DROP FUNCTION public.f(); CREATE FUNCTION public.f() RETURNS text AS $$1$$;",
		},
		"comment": {
			entries(entry("COMMENT", "TABLE t", "COMMENT ON TABLE public.t IS 'IS x';", "")), nil,
			"COMMENT ON TABLE public.t IS NULL;",
		},
		"privileges": {
			entries(entry("ACL", "TABLE t", "REVOKE ALL ON TABLE public.t FROM CURRENT_USER;\nGRANT SELECT ON TABLE public.t TO anon WITH GRANT OPTION;", "")),
			entries(entry("ACL", "TABLE t", "GRANT INSERT ON TABLE public.t TO anon;", "")),
			"REVOKE SELECT ON TABLE public.t FROM anon; GRANT ALL ON TABLE public.t TO CURRENT_USER; " +
				"GRANT INSERT ON TABLE public.t TO anon;",
		},
		"default privileges": {
			entries(entry("DEFAULT ACL", "DEFAULT PRIVILEGES FOR TABLES", "ALTER DEFAULT PRIVILEGES FOR ROLE CURRENT_USER GRANT SELECT ON TABLES TO anon;", "")),
			nil, "ALTER DEFAULT PRIVILEGES FOR ROLE CURRENT_USER REVOKE SELECT ON TABLES FROM anon;",
		},
		"row level security": {
			entries(entry("ROW SECURITY", "t", "ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;", "")), nil,
			"ALTER TABLE public.t DISABLE ROW LEVEL SECURITY;",
		},
		"identity": {
			entries(entry("SEQUENCE", "s", "ALTER TABLE public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME s );", "DROP SEQUENCE s;")),
			nil, "ALTER TABLE public.t ALTER COLUMN id DROP IDENTITY IF EXISTS;",
		},
		"sequence": {
			entries(entry("SEQUENCE", "s", "CREATE SEQUENCE public.s\n    INCREMENT BY 1;", "DROP SEQUENCE public.s;")),
			entries(entry("SEQUENCE", "s", "CREATE SEQUENCE public.s\n    INCREMENT BY 2;", "DROP SEQUENCE public.s;")),
			"ALTER SEQUENCE public.s INCREMENT BY 2;",
		},
		"extensions": {
			entries(entry("EXTENSION", "a", `CREATE EXTENSION IF NOT EXISTS a WITH SCHEMA extensions;`, "DROP EXTENSION a;")),
			entries(entry("EXTENSION", "b-c", `CREATE EXTENSION IF NOT EXISTS "b-c" WITH SCHEMA extensions;`, `DROP EXTENSION "b-c";`)),
			`CREATE EXTENSION IF NOT EXISTS "b-c"; ` + noTransaction + ` -- warning: destroys data DROP EXTENSION IF EXISTS "a";`,
		},
		"partitioning": {
			entries(books("id integer")),
			entries(entry("TABLE", "books", "CREATE TABLE public.books (\n id integer\n)\nPARTITION BY RANGE (id);", "DROP TABLE public.books;")),
			"unresolved: the table public.books: storage, inheritance or partitioning",
		},
	} {
		d := compare(test.from, test.to)
		got := strings.Join(strings.Fields(strings.Join(d.files().Files, " ")), " ")
		if len(d.unresolved) > 0 {
			got = "unresolved: " + strings.Join(d.unresolved, ", ")
		}

		if got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

func TestParseTable(t *testing.T) {
	t.Parallel()

	got, ok := parseTable(`CREATE UNLOGGED TABLE public."my table" (
    id bigint NOT NULL,
    at timestamp(3) with time zone DEFAULT now() NOT NULL,
    name character varying(10) DEFAULT 'a, NOT (b'::character varying COLLATE pg_catalog."C",
    "Sum" numeric(8,2) GENERATED ALWAYS AS ((id + 1)) STORED,
    tags text[] DEFAULT ARRAY['x'::text, 'y'::text],
    CONSTRAINT positive CHECK (((id > 0) AND (id < 10))),
    CONSTRAINT named CHECK ((name <> ''::text)) NOT VALID
)
WITH (fillfactor='70');

ALTER TABLE ONLY public."my table" FORCE ROW LEVEL SECURITY;
`)
	want := table{
		name: `public."my table"`, head: "CREATE UNLOGGED TABLE", tail: "WITH (fillfactor='70')",
		columns: []column{
			{name: "id", text: "id bigint NOT NULL", typ: "bigint", notNull: true},
			{name: "at", text: "at timestamp(3) with time zone DEFAULT now() NOT NULL", typ: "timestamp(3) with time zone",
				value: "now()", notNull: true},
			{name: "name", text: `name character varying(10) DEFAULT 'a, NOT (b'::character varying COLLATE pg_catalog."C"`,
				typ: "character varying(10)", value: "'a, NOT (b'::character varying",
				collate: `COLLATE pg_catalog."C"`},
			{name: `"Sum"`, text: `"Sum" numeric(8,2) GENERATED ALWAYS AS ((id + 1)) STORED`, typ: "numeric(8,2)",
				generated: "GENERATED ALWAYS AS ((id + 1)) STORED"},
			{name: "tags", text: "tags text[] DEFAULT ARRAY['x'::text, 'y'::text]", typ: "text[]",
				value: "ARRAY['x'::text, 'y'::text]"},
		},
		constraints: map[string]string{
			"positive": "CONSTRAINT positive CHECK (((id > 0) AND (id < 10)))",
			"named":    "CONSTRAINT named CHECK ((name <> ''::text)) NOT VALID",
		},
		further: []string{`ALTER TABLE ONLY public."my table" FORCE ROW LEVEL SECURITY`},
	}

	if diff := cmp.Diff(want, got, cmp.AllowUnexported(table{}, column{})); !ok || diff != "" {
		t.Errorf("parseTable: %v, (-want +got):\n%s", ok, diff)
	}
}

// TestRelevant: the platform's objects are left out, and the owner's login is named by role.
func TestRelevant(t *testing.T) {
	t.Parallel()

	got := relevant([]pgdump.Entry{
		{Desc: "ENCODING"}, {Desc: "EVENT TRIGGER", Tag: "socle_x"}, {Desc: "TABLE", Namespace: "socle", Tag: "audit"},
		{Desc: "SCHEMA", Tag: "storage"}, {Desc: "COMMENT", Tag: "EXTENSION pg_trgm"},
		{Desc: "ACL", Tag: "SCHEMA forms"},
		{Desc: "DEFAULT ACL", Owner: "postgres"}, {Desc: "ACL", Tag: "DATABASE x"},
		{Desc: "SCHEMA", Tag: "sales"}, {Desc: "ACL", Tag: "SCHEMA public"}, {Desc: "EXTENSION", Tag: "pg_trgm"},
		{Desc: "ACL", Namespace: "public", Tag: "TABLE t", Definition: "GRANT SELECT ON TABLE t TO " + owner + ";"},
		{Desc: "FUNCTION", Namespace: "public", Tag: "f()", Definition: "AS '" + owner + "'"},
	}, owner)

	var lines []string
	for _, e := range got {
		lines = append(lines, strings.TrimSpace(e.Desc+" "+e.Tag+" "+e.Definition))
	}

	want := []string{"SCHEMA sales", "ACL SCHEMA public", "EXTENSION pg_trgm",
		"ACL TABLE t GRANT SELECT ON TABLE t TO CURRENT_USER;", "FUNCTION f() AS '" + owner + "'"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExtensionOf(t *testing.T) {
	t.Parallel()

	for sql, want := range map[string]string{
		"create extension pg_trgm": "pg_trgm",
		"CREATE EXTENSION IF NOT EXISTS /* x */ \"uuid-ossp\" with schema x": "uuid-ossp",
		"create extension PG_trgm cascade":                                   "pg_trgm",
		"drop extension if exists citext":                                    "drop citext",
		"create table extension ()":                                          "",
		"comment on extension pg_trgm is ''":                                 "",
		"create extension":                                                   "",
	} {
		name, drop := extensionOf(sqllex.Split(sql)[0])
		if drop {
			name = "drop " + name
		}

		if name != want {
			t.Errorf("%s: got %q, want %q", sql, name, want)
		}
	}
}
