package rest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
)

// keyTypes are types of a key with values of it, in SQL.
var keyTypes = map[string][]string{
	"text": {"''", "'null'", "'NULL'", "' '", "'a b'", "'(1,2)'", "'{x}'", `'"a"'`, `'a\b'`,
		"'eq.1'", "'not.eq.1'", "'*'", "'%'", "'+&=#?;'", "'é🙂'", "E'a\\nb\\t'", "'not.null'"},
	"varchar(3)":        {"'abc'", "'a'"},
	"char(3)":           {"'a'", "'abc'"},
	"name":              {"'a'", "'b c'"},
	`"char"`:            {"'a'", "' '"},
	"bytea":             {`'\x'`, `'\x00ff'`, `'\x5c78'`},
	"boolean":           {"true", "false"},
	"smallint":          {"-1", "1"},
	"bigint":            {"9223372036854775807", "-9223372036854775808"},
	"numeric":           {"'NaN'", "1.50", "1e40", "'Infinity'", "-0.1"},
	"real":              {"'NaN'", "0.1", "1e30", "'-Infinity'"},
	"double precision":  {"'NaN'", "0.1", "1e300", "0.30000000000000004"},
	"money":             {"'1234.5'", "'-1'"},
	"date":              {"'2020-01-02'", "'infinity'", "'0044-03-15 BC'", "'12020-01-01'"},
	"time":              {"'01:02:03.4'", "'24:00'"},
	"timetz":            {"'01:02+03'", "'01:02-03:30'"},
	"timestamp":         {"'2020-01-02 03:04:05.678901'", "'-infinity'", "'0044-03-15 BC'"},
	"timestamptz":       {"'2020-01-02 03:04+05'", "'infinity'", "'0044-03-15 BC'"},
	"interval":          {"'1 year 2 months -3 days 04:05:06.7'", "'-00:00:01'"},
	"uuid":              {"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"},
	"inet":              {"'10.0.0.1'", "'10.0.0.0/8'", "'::1'"},
	"cidr":              {"'10.0.0.0/8'"},
	"macaddr":           {"'08:00:2b:01:02:03'"},
	"bit(3)":            {"B'101'", "B'000'"},
	"varbit":            {"B'1'", "B''"},
	"jsonb":             {`'{"a":[1,null,"x y"]}'`, "'null'", `'"null"'`, "'1.50'", "'[]'"},
	"int[]":             {"'{}'", "'{1,null}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'"},
	"text[]":            {"'{}'", `'{"a b",null,"null","","\"",","}'`, `'{"\\\\"}'`},
	"timestamptz[]":     {`'{"2020-01-02 03:04+05"}'`},
	"int4range":         {"'[1,3)'", "'empty'", "'(,)'", "'[,3)'"},
	"tstzrange":         {`'["2020-01-02 03:04+05",)'`, "'empty'"},
	"nummultirange":     {"'{}'", "'{[1,2],(3,)}'"},
	"pair":              {"row(1, 'a b')", "row(null, null)", `row(2, '","()\')`, "row(3, '')"},
	"pair[]":            {"array[row(1, 'a b')::pair]", "'{}'"},
	"mood":              {"'so so'", "'null'", "''"},
	"positive":          {"1", "2"},
	"color":             {"16", "255"},
	"oid":               {"1", "4294967295"},
	"regclass":          {"'pg_catalog.pg_class'", "'clients'", "'\"odd table\"'", "5"},
	"regtype":           {"'int'", "'pair'", "'text[]'"},
	"tsvector":          {"'a:1 b:2A'", "''", `'''a b'':1'`},
	"tsquery":           {"'a & !b'", "''"},
	"pg_lsn":            {"'16/B374D848'"},
	"xid8":              {"'42'"},
	"macaddr8":          {"'08:00:2b:ff:fe:01:02:03'"},
	"interval day":      {"'2 days'"},
	"numeric(5,2)":      {"1.5", "'NaN'"},
	"timestamp(0)":      {"'2020-01-02 03:04:05'"},
	"character varying": {"'a  '"},
	"mood[]":            {"'{\"so so\",null}'"},
	"datemultirange":    {"'{[2020-01-01,2020-02-01)}'"},
	"colors":            {"'{1,2}'"},
	"couple":            {"row(1, 'a b')"},
}

// keyed is a table with a key column, and the key values of its rows.
type keyed struct {
	table, column, of string
	values            []string // SQL
}

// statements creates the table. A trigger sets the key of row n to the n-th value.
func (k keyed) statements(number int) string {
	var cases strings.Builder
	for i, v := range k.values {
		fmt.Fprintf(&cases, " when %d then (%s)::%s", i, v, k.of)
	}

	return fmt.Sprintf(`create table %[1]s (n int, %[2]s %[3]s primary key); grant all on %[1]s to authenticated;
		create function key_%[4]d() returns trigger language plpgsql set search_path = public as
			$do$ begin new.%[2]s := case new.n %[5]s end; return new; end $do$;
		create trigger key before insert on %[1]s for each row execute function key_%[4]d();
		`, pg.Quote(k.table), pg.Quote(k.column), k.of, number, cases.String())
}

// TestLocationLeadsToItsRow inserts rows with keys of all types, and keys and tables of hostile
// names. A read of each Location returns the row, and a deletion deletes it alone.
func TestLocationLeadsToItsRow(t *testing.T) {
	t.Parallel()

	var all []keyed
	for i, name := range []string{"limit", "select", "or", "a.b", `q"z`} {
		all = append(all, keyed{fmt.Sprintf("named_%d", i), name, "int", []string{"1", "2"}},
			keyed{"a b?c&d=%20#" + name, "id", "int", []string{"1", "2"}})
	}
	for i, of := range slices.Sorted(maps.Keys(keyTypes)) {
		all = append(all, keyed{fmt.Sprintf("typed_%d", i), "limit", of, keyTypes[of]})
	}

	ddl := `create type pair as (a int, b text); create type mood as enum ('so so', 'null', '');
		create table "odd table" (); create domain positive as int check (value > 0); create domain color as int;
		create domain colors as int[]; create domain couple as pair;
		create function color_json(color) returns json language sql immutable as $$ select to_json('#' || to_hex($1)) $$;
		create function text_color(text) returns color language sql immutable as
			$$ select ('x' || lpad(substr($1, 2), 8, '0'))::bit(32)::int::color $$;
		create cast (color as json) with function color_json(color) as implicit;
		create cast (text as color) with function text_color(text) as implicit;`
	for i, k := range all {
		ddl += k.statements(i)
	}

	ddl += keyed{"two", "order", "text", []string{"'a'", "'a&limit=2'"}}.statements(len(all)) + `
		alter table two add "limit" int generated always as identity, drop constraint two_pkey, add primary key ("order", "limit");`
	all = append(all, keyed{table: "two", values: []string{"'a'", "'a&limit=2'"}})

	a := newAPI(t, ddl)
	for _, k := range all {
		path := "/" + url.PathEscape(k.table)
		var locations []string
		for n := range k.values {
			made := a.do("POST", path, fmt.Sprintf(`{"n":%d}`, n), "Prefer", "return=headers-only")
			location := made.header.Get("Location")
			if made.status != 201 || location == "" {
				t.Fatalf("%s %s: got %d %s, Location %q", k.of, k.values[n], made.status, made.body, location)
			}

			locations = append(locations, location)
		}

		for n, location := range locations {
			got := a.do("GET", location+"&select=n", "")
			if want := fmt.Sprintf(`[{"n":%d}]`, n); got.body != want {
				t.Errorf("%s %s: GET %s: got %d %s, want %s", k.of, k.values[n], location, got.status, got.body, want)
			}

			if got := a.do("DELETE", location, "", "Prefer", "count=exact"); got.header.Get("Content-Range") != "*/1" {
				t.Errorf("%s %s: DELETE %s: got %d %s, Content-Range %s, want one row", k.of, k.values[n], location,
					got.status, got.body, got.header.Get("Content-Range"))
			}
		}
	}
}
