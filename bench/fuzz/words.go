package main

import "strings"

// likelyValues are common values of members, so that requests pass the first validation.
var likelyValues = map[string][]string{
	"type": {"integer", "text", "varchar(80)", "numeric(10,2)", "jsonb", "timestamptz", "text[]", "uuid", "serial",
		"number", "select", "date", "email", "varchar(0)", "numeric(1001)", "setof integer", "int[][][][][][]",
		"pg_class", "public.nothing", "interval day to second(3)", "bit varying(5)"},
	"defaultValue": {"0", "now()", "draft", "'it''s'", "{}", "null", "1, ADD COLUMN x int", "1) CHECK (true",
		"gen_random_uuid()", "nextval('s')", "'x'::text", "current_date"},
	"language":    {"sql", "plpgsql"},
	"return_type": {"integer", "void", "setof text", "table(a int, b text)", "trigger"},
	"definition": {"select 1", "begin return 1; end", "begin end", "select", "select * from nothing", "$$",
		"select 'x'; drop table books"},
	"email":           {"a@example.com", "b@example.com", "x", "a@b@c", "é@example.com"},
	"password":        {"correct horse battery", "12345678", "short"},
	"options":         {"a,b", `["a","b"]`, "", "a,a"},
	"pattern":         {"^a+$", "(a+)+$", "(", "(?=a)", "(?:a{1000}){1000}"},
	"date_format":     {"YYYY-MM-DD", "DD.MM.YYYY", "HH:mm", "x"},
	"start_date":      {"2026-01-01", "2026-12-31", "12:00", "x"},
	"end_date":        {"2026-01-01", "2026-12-31", "x"},
	"referenceTable":  {"books", "pg_catalog.pg_class", "auth.users"},
	"referenceColumn": {"id"},
	"kind":            {"publishable", "secret"},
}

var commonValues = []string{"books", "id", "a/b/c.txt", "01890000-0000-7000-8000-000000000000", "public", "1", "x"}

var hostileValues = []string{
	"'; drop table users; --", `x"; drop table users; --`, "$$", "1 or 1=1", "../../etc/passwd", "..", ".", "a//b",
	"/x", "%00", "\x00", "a\x00b", "\n\r\nX: y", "pg_catalog.pg_class", "information_schema.tables", "auth.users",
	"socle.migrations", "a.b.c", "ctid", "oid", "\u202e", "\u200b", "😀", "é", "ｆｕｌｌ", "<script>alert(1)</script>",
	`{"$ne": null}`, "-rf", "dbname=x", `\! id`, "\\", "", " ", "null", "true", "-1", "1e400", "9223372036854775808",
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("é", 32), strings.Repeat("x", 10_000),
	strings.Repeat("(", 5_000), strings.Repeat("a.", 3_000), "now", "select", "table", "order", "CON", "a\tb",
	"socle_secret_aaaa", "Bearer x",
}
