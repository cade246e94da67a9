package migration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/migration/file"
	"github.com/socle-dev/socle/internal/pgdump"
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

func booksWith(further ...string) pgdump.Entry {
	e := books("t text")
	e.Definition += strings.Join(further, "\n")

	return e
}

func domainEntry(definition string) pgdump.Entry {
	return entry("DOMAIN", "d", "CREATE DOMAIN public.d AS "+definition+";\n", "DROP DOMAIN public.d;\n")
}

// identity returns the definition of the sequence of an identity column.
func identity(column, kind, options string) string {
	return "ALTER TABLE public.t ALTER COLUMN " + column + " ADD GENERATED " + kind +
		" AS IDENTITY (\n    SEQUENCE NAME public.s\n    " + options + "\n);"
}

// partitioned returns the table books with a partition b, which has a partition c.
func partitioned(columns string) []pgdump.Entry {
	table := func(name, tail string) pgdump.Entry {
		return entry("TABLE", name, "CREATE TABLE public."+name+" (\n    "+columns+"\n)"+tail+";",
			"DROP TABLE public."+name+";")
	}
	attach := func(whole, name string) pgdump.Entry {
		return entry("TABLE ATTACH", name, "ALTER TABLE ONLY public."+whole+" ATTACH PARTITION public."+name+
			" FOR VALUES IN (1); -- "+whole+" "+name, "")
	}

	return []pgdump.Entry{
		table("books", "\nPARTITION BY LIST (id)"), table("b", "\nPARTITION BY LIST (id)"), table("c", ""),
		attach("books", "b"), attach("b", "c"),
	}
}

// configuration returns a text search configuration with mappings.
func configuration(mappings ...string) pgdump.Entry {
	sql := "CREATE TEXT SEARCH CONFIGURATION public.c (\n    PARSER = pg_catalog.\"default\" );\n"
	for _, m := range mappings {
		sql += "\nALTER TEXT SEARCH CONFIGURATION public.c\n    ADD MAPPING FOR " + m + ";\n"
	}

	return entry("TEXT SEARCH CONFIGURATION", "c", sql, "DROP TEXT SEARCH CONFIGURATION public.c;\n")
}

// serial returns a table with a serial column, whose sequence is t_id_seq.
func serial(table string) []pgdump.Entry {
	return []pgdump.Entry{
		entry("TABLE", table, "CREATE TABLE public."+table+" (\n    id integer NOT NULL\n);",
			"DROP TABLE public."+table+";"),
		entry("SEQUENCE", "t_id_seq", "CREATE SEQUENCE public.t_id_seq\n    AS integer; -- "+table, "DROP SEQUENCE public.t_id_seq;"),
		entry("SEQUENCE OWNED BY", "t_id_seq",
			"ALTER SEQUENCE public.t_id_seq OWNED BY public."+table+".id; -- t_id_seq", ""),
		entry("DEFAULT", table+" id", "ALTER TABLE ONLY public."+table+" ALTER COLUMN id SET DEFAULT nextval('public.t_id_seq'::regclass); -- "+
			table+" t_id_seq", "ALTER TABLE public."+table+" ALTER COLUMN id DROP DEFAULT;"),
	}
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
		"renamed value": {
			entries(mood("'a', 'b'")), entries(mood("'a', 'c'")),
			"-- warning: " + warnRename + " ALTER TYPE public.mood RENAME VALUE 'b' TO 'c';",
		},
		"values in another order": {
			entries(mood("'a', 'b'")), entries(mood("'b', 'a'")),
			"DROP TYPE public.mood; CREATE TYPE public.mood AS ENUM ( 'b', 'a' );",
		},
		"dropped table, with a function of its rows": {
			entries(books("id integer"), entry("FUNCTION", "f(public.books)", "CREATE FUNCTION public.f(public.books) RETURNS integer\n    AS $$1$$; -- books", "DROP FUNCTION public.f(public.books);")),
			nil, "DROP FUNCTION public.f(public.books); -- warning: destroys data DROP TABLE public.books;",
		},
		"partition with partitions and keys": {
			entries(partitioned("id integer")[0]),
			entries(append(partitioned("id integer"), entry("CONSTRAINT", "b b_pkey",
				"ALTER TABLE ONLY public.b\n    ADD CONSTRAINT b_pkey PRIMARY KEY (id); -- b", ""))...),
			"CREATE TABLE public.b ( id integer ) PARTITION BY LIST (id); CREATE TABLE public.c ( id integer ); " +
				"ALTER TABLE ONLY public.b ADD CONSTRAINT b_pkey PRIMARY KEY (id); " +
				"ALTER TABLE ONLY public.books ATTACH PARTITION public.b FOR VALUES IN (1); " +
				"ALTER TABLE ONLY public.b ATTACH PARTITION public.c FOR VALUES IN (1);",
		},
		"value that goes": {
			entries(mood("'a', 'b'")), entries(mood("'a'")),
			"DROP TYPE public.mood; CREATE TYPE public.mood AS ENUM ( 'a' );",
		},
		"value that goes, of an enum that a table uses": {
			entries(mood("'a', 'b'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood DEFAULT 'a'::public.mood,\n    CONSTRAINT c CHECK ((m <> 'a'::public.mood))\n); -- mood", "DROP TABLE public.t;")),
			entries(mood("'a'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood DEFAULT 'a'::public.mood,\n    CONSTRAINT c CHECK ((m <> 'a'::public.mood))\n); -- mood", "DROP TABLE public.t;")),
			`ALTER TYPE public.mood RENAME TO "mood_former"; CREATE TYPE public.mood AS ENUM ( 'a' ); ` +
				"ALTER TABLE public.t DROP CONSTRAINT c; ALTER TABLE public.t ALTER COLUMN m DROP DEFAULT; " +
				"-- warning: " + warnReplaced + " ALTER TABLE public.t ALTER COLUMN m TYPE public.mood USING m::text::public.mood; " +
				"ALTER TABLE public.t ALTER COLUMN m SET DEFAULT 'a'::public.mood; " +
				"-- warning: " + warnScan + " ALTER TABLE public.t ADD CONSTRAINT c CHECK ((m <> 'a'::public.mood)); " +
				`DROP TYPE public."mood_former";`,
		},
		"value that goes, of an enum that a composite type uses": {
			entries(mood("'a', 'b'"), entry("TYPE", "t", "CREATE TYPE public.t AS (\n    m public.mood\n); -- mood", "DROP TYPE public.t;")),
			entries(mood("'a'"), entry("TYPE", "t", "CREATE TYPE public.t AS (\n    m public.mood\n); -- mood", "DROP TYPE public.t;")),
			"unresolved: type public.mood: type public.t uses it",
		},
		"value that goes, of an enum that partitions a table": {
			entries(mood("'a', 'b'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood\n)\nPARTITION BY LIST (m); -- mood", "DROP TABLE public.t;")),
			entries(mood("'a'"), entry("TABLE", "t", "CREATE TABLE public.t (\n    m public.mood\n)\nPARTITION BY LIST (m); -- mood", "DROP TABLE public.t;")),
			"unresolved: type public.mood: table public.t uses it",
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
			"ALTER SEQUENCE public.s AS bigint INCREMENT BY 2 NO CYCLE;",
		},
		"sequence that cycles": {
			entries(entry("SEQUENCE", "s", "CREATE SEQUENCE public.s\n    START WITH 1;", "DROP SEQUENCE public.s;")),
			entries(entry("SEQUENCE", "s", "CREATE SEQUENCE public.s\n    AS integer\n    START WITH 1\n    CYCLE;", "DROP SEQUENCE public.s;")),
			"ALTER SEQUENCE public.s AS integer START WITH 1 CYCLE;",
		},
		"identity that changes": {
			entries(entry("SEQUENCE", "s", identity("id", "BY DEFAULT", "INCREMENT BY 1\n    CYCLE"), "")),
			entries(entry("SEQUENCE", "s", identity("id", "ALWAYS", "INCREMENT BY 7\n    NO MAXVALUE"), "")),
			"ALTER TABLE public.t ALTER COLUMN id SET GENERATED ALWAYS SET INCREMENT BY 7 SET NO MAXVALUE SET NO CYCLE;",
		},
		"identity of another column": {
			entries(entry("SEQUENCE", "s", identity("a", "ALWAYS", "CACHE 1"), "DROP SEQUENCE public.s;")),
			entries(entry("SEQUENCE", "s", identity("b", "ALWAYS", "CACHE 1"), "DROP SEQUENCE public.s;")),
			"ALTER TABLE public.t ALTER COLUMN a DROP IDENTITY IF EXISTS; " +
				strings.Join(strings.Fields(identity("b", "ALWAYS", "CACHE 1")), " "),
		},
		"column of a partitioned table": {
			entries(partitioned("id integer")...), entries(partitioned("id integer,\n    note text")...),
			"ALTER TABLE public.books ADD COLUMN note text;",
		},
		"column of a partition that goes": {
			entries(partitioned("id integer")...), entries(partitioned("id integer,\n    note text")[:4]...),
			"ALTER TABLE ONLY public.b DETACH PARTITION public.c; ALTER TABLE public.books ADD COLUMN note text; " +
				"ALTER TABLE public.c ADD COLUMN note text;",
		},
		"detached partition with a foreign key": {
			entries(partitioned("id integer")...),
			entries(append(partitioned("id integer")[:4:4],
				entry("FK CONSTRAINT", "c c_fkey", "ALTER TABLE ONLY public.c\n    ADD CONSTRAINT c_fkey FOREIGN KEY (id) REFERENCES public.b(id); -- c b", ""))...),
			"ALTER TABLE ONLY public.b DETACH PARTITION public.c;",
		},
		"partition with a key": {
			entries(partitioned("id integer")[0]),
			entries(append(partitioned("id integer")[:4:4], entry("CONSTRAINT", "b b_pkey",
				"ALTER TABLE ONLY public.b\n    ADD CONSTRAINT b_pkey PRIMARY KEY (id); -- b", ""),
				entry("INDEX ATTACH", "b_pkey", "ALTER INDEX public.books_pkey ATTACH PARTITION public.b_pkey;", ""))...),
			"CREATE TABLE public.b ( id integer ) PARTITION BY LIST (id); CREATE TABLE public.c ( id integer ); " +
				"ALTER TABLE ONLY public.b ADD CONSTRAINT b_pkey PRIMARY KEY (id); " +
				"ALTER TABLE ONLY public.books ATTACH PARTITION public.b FOR VALUES IN (1); " +
				"ALTER INDEX public.books_pkey ATTACH PARTITION public.b_pkey;",
		},
		"domain": {
			entries(domainEntry("integer DEFAULT 4\n\tCONSTRAINT a CHECK ((VALUE > 0))\n\tCONSTRAINT b CHECK ((VALUE < 9))"), books("n public.d")),
			entries(domainEntry("integer NOT NULL DEFAULT 5\n\tCONSTRAINT a CHECK ((VALUE > 1))\n\tCONSTRAINT c CHECK ((VALUE IS NOT NULL))"), books("n public.d")),
			"ALTER DOMAIN public.d DROP CONSTRAINT a; ALTER DOMAIN public.d DROP CONSTRAINT b; " +
				"ALTER DOMAIN public.d SET DEFAULT 5; -- warning: " + warnScan + " ALTER DOMAIN public.d SET NOT NULL; " +
				"-- warning: " + warnScan + " ALTER DOMAIN public.d ADD CONSTRAINT a CHECK ((VALUE > 1)); " +
				"-- warning: " + warnScan + " ALTER DOMAIN public.d ADD CONSTRAINT c CHECK ((VALUE IS NOT NULL));",
		},
		"renamed constraint of a domain": {
			entries(domainEntry("integer\n\tCONSTRAINT a CHECK ((VALUE > 0))\n\tCONSTRAINT b CHECK ((VALUE < 9))"), books("n public.d[]")),
			entries(domainEntry("integer\n\tCONSTRAINT b CHECK ((VALUE < 8))\n\tCONSTRAINT \"C d\" CHECK ((VALUE > 0))"), books("n public.d[]")),
			`ALTER DOMAIN public.d RENAME CONSTRAINT a TO "C d"; ALTER DOMAIN public.d DROP CONSTRAINT b; ` +
				"-- warning: " + warnScan + " ALTER DOMAIN public.d ADD CONSTRAINT b CHECK ((VALUE < 8));",
		},
		"text search configuration": {
			entries(configuration("asciiword WITH english_stem", "word WITH simple, english_stem",
				"email WITH simple")),
			entries(configuration("asciiword WITH english_stem", "word WITH simple", "url WITH simple")),
			"ALTER TEXT SEARCH CONFIGURATION public.c DROP MAPPING FOR email; " +
				"ALTER TEXT SEARCH CONFIGURATION public.c ADD MAPPING FOR url WITH simple; " +
				"ALTER TEXT SEARCH CONFIGURATION public.c ALTER MAPPING FOR word WITH simple;",
		},
		"domain without its default": {
			entries(domainEntry(`character varying(3) COLLATE pg_catalog."C" NOT NULL DEFAULT 'a'::character varying`)),
			entries(domainEntry(`character varying(3) COLLATE pg_catalog."C"`)),
			"ALTER DOMAIN public.d DROP DEFAULT; ALTER DOMAIN public.d DROP NOT NULL;",
		},
		"type of a domain": {
			entries(domainEntry("integer")), entries(domainEntry("bigint")),
			"DROP DOMAIN public.d; CREATE DOMAIN public.d AS bigint;",
		},
		"storage of a column": {
			entries(booksWith("ALTER TABLE ONLY public.books ALTER COLUMN t SET COMPRESSION pglz;",
				"ALTER TABLE ONLY public.books ALTER COLUMN t SET (n_distinct=-0.5, n_distinct_inherited=2);")),
			entries(booksWith()),
			"ALTER TABLE ONLY public.books ALTER COLUMN t SET COMPRESSION default; " +
				"ALTER TABLE ONLY public.books ALTER COLUMN t RESET (n_distinct, n_distinct_inherited);",
		},
		"storage of the type": {
			entries(booksWith("ALTER TABLE ONLY public.books ALTER COLUMN t SET STORAGE EXTERNAL;")), entries(booksWith()),
			"ALTER TABLE ONLY public.books ALTER COLUMN t SET STORAGE EXTENDED;",
		},
		"inheritance": {
			entries(books("id integer")),
			entries(entry("TABLE", "books", "CREATE TABLE public.books (\n    note text\n)\nINHERITS (public.things);", "DROP TABLE public.books;")),
			"ALTER TABLE public.books INHERIT public.things;",
		},
		"storage": {
			entries(books("id integer")),
			entries(entry("TABLE", "books", "CREATE UNLOGGED TABLE public.books (\n    id integer\n)\nWITH (fillfactor='70', autovacuum_enabled='false');", "DROP TABLE public.books;")),
			"-- warning: " + warnRewrite + " ALTER TABLE public.books SET UNLOGGED; " +
				"ALTER TABLE public.books SET (fillfactor='70'); ALTER TABLE public.books SET (autovacuum_enabled='false');",
		},
		"generated column of a column that changes its type": {
			entries(books("a integer,\n    b integer GENERATED ALWAYS AS ((a + 1)) STORED")),
			entries(books("a bigint,\n    b integer GENERATED ALWAYS AS ((a + 1)) STORED")),
			"-- warning: " + warnRewrite + " ALTER TABLE public.books DROP COLUMN b; " +
				"-- warning: " + warnRewrite + " ALTER TABLE public.books ALTER COLUMN a TYPE bigint USING a::bigint; " +
				"-- warning: " + warnRewrite + " ALTER TABLE public.books ADD COLUMN b integer GENERATED ALWAYS AS ((a + 1)) STORED;",
		},
		"dropped table with a serial column": {
			entries(append(serial("t"), books("id integer"))...), entries(books("id integer")),
			"-- warning: destroys data DROP TABLE public.t;",
		},
		"table with a serial column, under another name": {
			entries(serial("t")...), entries(serial("u")...),
			"ALTER SEQUENCE public.t_id_seq OWNED BY NONE; " +
				"-- warning: destroys data DROP TABLE public.t; CREATE TABLE public.u ( id integer NOT NULL ); " +
				"ALTER SEQUENCE public.t_id_seq OWNED BY public.u.id; " +
				"ALTER TABLE ONLY public.u ALTER COLUMN id SET DEFAULT nextval('public.t_id_seq'::regclass);",
		},
		"composite type": {
			entries(entry("TYPE", "a", "CREATE TYPE public.a AS (\n\tx integer,\n\ty text\n);", "DROP TYPE public.a;")),
			entries(entry("TYPE", "a", "CREATE TYPE public.a AS (\n\tx bigint,\n\tz integer\n);", "DROP TYPE public.a;")),
			"-- warning: destroys data ALTER TYPE public.a DROP ATTRIBUTE y CASCADE; " +
				"ALTER TYPE public.a ALTER ATTRIBUTE x TYPE bigint CASCADE; ALTER TYPE public.a ADD ATTRIBUTE z integer CASCADE;",
		},
		"composite type with an attribute in front": {
			entries(entry("TYPE", "a", "CREATE TYPE public.a AS (\n\tx integer\n);", "DROP TYPE public.a;"),
				entry("TABLE", "t", "CREATE TABLE public.t (\n    v public.a\n); -- a", "DROP TABLE public.t;")),
			entries(entry("TYPE", "a", "CREATE TYPE public.a AS (\n\tz integer,\n\tx integer\n);", "DROP TYPE public.a;"),
				entry("TABLE", "t", "CREATE TABLE public.t (\n    v public.a\n); -- a", "DROP TABLE public.t;")),
			"unresolved: type public.a: table public.t uses it",
		},
		"materialized view": {
			nil, entries(entry("MATERIALIZED VIEW", "a b", "CREATE MATERIALIZED VIEW public.\"a b\" AS\n SELECT 1\n  WITH NO DATA;", "DROP MATERIALIZED VIEW public.\"a b\";"), books("id integer")),
			"CREATE MATERIALIZED VIEW public.\"a b\" AS SELECT 1 WITH NO DATA; CREATE TABLE public.books ( id integer ); " +
				"-- warning: runs the query of the view REFRESH MATERIALIZED VIEW public.\"a b\";",
		},
		"extensions": {
			entries(entry("EXTENSION", "a", `CREATE EXTENSION IF NOT EXISTS a WITH SCHEMA extensions;`, "DROP EXTENSION a;")),
			entries(entry("EXTENSION", "b-c", `CREATE EXTENSION IF NOT EXISTS "b-c" WITH SCHEMA extensions;`, `DROP EXTENSION "b-c";`)),
			`CREATE EXTENSION IF NOT EXISTS "b-c" WITH SCHEMA extensions; ` + file.NoTransaction + ` -- warning: destroys data DROP EXTENSION IF EXISTS "a";`,
		},
		"partitioning": {
			entries(books("id integer")),
			entries(entry("TABLE", "books", "CREATE TABLE public.books (\n id integer\n)\nPARTITION BY RANGE (id);", "DROP TABLE public.books;")),
			"unresolved: table public.books: its partitioning differs",
		},
		"privileges of a type that a table uses": {
			entries(mood("'a', 'b'"), entry("ACL", "TYPE mood", "GRANT ALL ON TYPE public.mood TO anon; -- mood", ""), entry("TABLE", "books", "CREATE TABLE public.books (\n    m public.mood\n); -- mood", "DROP TABLE public.books;")),
			entries(mood("'a'"), entry("ACL", "TYPE mood", "GRANT ALL ON TYPE public.mood TO anon; -- mood", ""), entry("TABLE", "books", "CREATE TABLE public.books (\n    m public.mood\n); -- mood", "DROP TABLE public.books;")),
			`ALTER TYPE public.mood RENAME TO "mood_former"; CREATE TYPE public.mood AS ENUM ( 'a' ); -- warning: ` + warnReplaced +
				" ALTER TABLE public.books ALTER COLUMN m TYPE public.mood USING m::text::public.mood; " +
				`DROP TYPE public."mood_former";`,
		},
	} {
		w := writer{written: compare(test.from, test.to, nil)}
		result := w.result()
		got := strings.Join(strings.Fields(strings.Join(result.Files, " ")), " ")
		for _, d := range result.Differences {
			got = strings.TrimSpace(got + " unresolved: " + d.Kind + " " + d.Name + ": " + d.Message)
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
