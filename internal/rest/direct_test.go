package rest

import (
	"fmt"
	"strings"
	"testing"
)

// TestValuesOfOneObject compares a body of one object, whose values become arguments, with an
// array, whose values PostgreSQL reads from JSON. Both must write the same, or fail alike.
func TestValuesOfOneObject(t *testing.T) {
	t.Parallel()

	types := []string{
		"int", "smallint", "bigint", "numeric(6,2)", "real", "double precision", "boolean", "text", "varchar(5)",
		"char(4)", `"char"`, "bytea", "bit(3)", "json", "jsonb", "date", "timestamptz", "timestamp(0)", "time",
		"interval", "uuid", "inet", "money", "xml", "oid", "regclass", "point", "int4range", "tsvector", "int[]",
		"text[]", "jsonb[]", "mood", "mood[]", "pair", "pair[]", "positive", "words", "noted", "shouted",
	}

	values := []string{
		`null`, `true`, `false`, `1`, `-0`, `1.5`, `1e3`, `1E-2`, `9999.995`, `0.005`, `12345678901234567890`, `""`,
		`" "`, `"1"`, `"t"`, `"null"`, `"abc"`, `"abcdefgh"`, `"ab   "`, `"101"`, `"\\x41"`, `"\u0041\n\"é😀"`,
		`"\ud83d\ude00"`, `"\u0000"`, `"\ud800"`, `"{1,2}"`, `"{a,b}"`, `"(1,x)"`, `"[1,2)"`, `"2024-02-30"`,
		`"2024-02-29"`, `"2024-02-29T12:00:00.6"`, `"infinity"`, `"NaN"`, `"1 day"`, `"happy"`,
		`"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`, `"10.0.0.1"`, `"$1.50"`, `"<a/>"`, `"clients"`, `[]`, `[1, 2]`,
		`["a", null]`, `[[1],[2]]`, `{}`, `{"a": 1,  "b":"x", "b": "y"}`, `[{"a": 1}]`,
	}

	columns := make([]string, len(types))
	for i, typ := range types {
		columns[i] = fmt.Sprintf("c%d %s", i, typ)
	}

	a := newAPI(t, `
		create type mood as enum ('sad', 'happy');
		create type pair as (a int, b text);
		create domain positive as int check (value > 0);
		create domain words as text[];
		create domain noted as jsonb check (value <> '{}');
		create domain shouted as text;
		create function shouted(json) returns shouted language sql immutable as $$ select upper($1 #>> '{}') $$;
		create cast (json as shouted) with function shouted(json) as implicit;
		create table every (`+strings.Join(columns, ", ")+`);
		grant all on every to authenticated`, func(c *Config) { c.Features.TxOverride = true })

	a.exec("insert into public.every default values")

	for i, typ := range types {
		for j, value := range values {
			method := "POST"
			if (i+j)%4 == 0 {
				method = "PATCH"
			}

			path, one := fmt.Sprintf("/every?select=c%d&limit=1", i), fmt.Sprintf(`{"c%d": %s}`, i, value)
			direct := a.do(method, path, one, "Prefer", "return=representation, tx=rollback")
			read := a.do(method, path, "["+one+"]", "Prefer", "return=representation, tx=rollback")
			if direct.status != read.status || direct.body != read.body {
				t.Errorf("%s %s as %s: %d %s, in an array %d %s", method, one, typ, direct.status, direct.body,
					read.status, read.body)
			}
		}
	}
}
