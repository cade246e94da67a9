package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// asCSV sends rows as the body.
func asCSV(a *apitest.API, path, body string) *apitest.Reply {
	return a.Send("POST", path, body, "Content-Type: text/csv")
}

func TestImportTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)

	const file = "\xef\xbb\xbfID,First Name,price,when,zip,ok,note,at,Id,uid\r\n" +
		"1,\"O\"\"Neil, A\",1.50,2026-01-31,00123,true,\"two\nlines\",2026-01-01T10:00:00Z,7000000000,01890000-0000-7000-8000-000000000000\r\n" +
		"\r\n" +
		"-2,5\" disk,20,2026-02-01,9,FALSE,\"\",2026-01-01 10:00:00.123456+02:00,1,01890000-0000-7000-8000-000000000001"
	r := asCSV(a, "/tables/import?name=people", file).Want(201).Content("rows", 2).Content("rejected", 0).
		Content("table", "public.people").Content("dryRun", false)

	var got []string
	for _, c := range r.Get("columns").([]any) {
		m := c.(map[string]any)
		got = append(got, fmt.Sprint(m["name"], " ", m["type"]))
	}

	want := "id integer, first_name text, price numeric, when date, zip text, ok boolean, note text, at timestamptz, id_2 bigint, uid uuid"
	if strings.Join(got, ", ") != want {
		t.Errorf("got columns %s\nwant %s", strings.Join(got, ", "), want)
	}

	const rows = `[{"at": "2026-01-01T10:00:00+00:00", "id": 1, "ok": true, "uid": "01890000-0000-7000-8000-000000000000", "zip": "00123", "id_2": 7000000000, "note": "two\nlines", "when": "2026-01-31", "price": 1.50, "first_name": "O\"Neil, A"}, ` +
		`{"at": "2026-01-01T08:00:00.123456+00:00", "id": -2, "ok": false, "uid": "01890000-0000-7000-8000-000000000001", "zip": "9", "id_2": 1, "note": "", "when": "2026-02-01", "price": 20, "first_name": "5\" disk"}]`

	execute(t, a, "set timezone = 'UTC'")

	if got := query[string](t, a,
		"select (select jsonb_agg(to_jsonb(p) order by id desc) from public.people p)::text from (select set_config('timezone', 'UTC', false)) x"); got != rows {
		t.Errorf("got  %s\nwant %s", got, rows)
	}
	if !query[bool](t, a,
		"select relrowsecurity and relowner::regrole::text like '%owner' from pg_class where relname = 'people'") {
		t.Error("the table has the wrong owner or grants")
	}

	asCSV(a, "/tables/import?name=people", file).Want(409).Code("already_exists").Field("name")

	a.Send("POST", "/tables/import?name=lines",
		`{"n": 1, "s": "12", "o": {"a": [1]}}`+"\n\n"+`{"s": "x\ty\\", "b": true, "n": 12345678901}`+"\n",
		"Content-Type: application/x-ndjson").Want(201).
		Content("columns.0.type", "bigint").Content("columns.1.type", "text").Content("columns.2.type", "jsonb").
		Content("columns.3.type", "boolean")

	if got := query[string](t, a, `select string_agg(l::text, ' ' order by n) from public.lines l`); got !=
		`(1,12,"{""a"": [1]}",) (12345678901,"x	y\\",,t)` {
		t.Errorf("got %s", got)
	}

	body := part(`form-data; name="file"; filename="Q1;x.tsv"`, "", "a\tb\n\\N\t1\n") + end
	multipart := "Content-Type: multipart/form-data; boundary=" + boundary
	a.Send("POST", "/tables/import", body, multipart).Want(400).Field("name")
	a.Send("POST", "/tables/import?name=q1&null=%5CN", body, multipart).Want(201).Content("columns.0.type", "text").
		Content("columns.1.type", "integer")
	asCSV(a, "/tables/import?name=plain&header=false&delimiter=%3B", "1;x;2\n2;y;\n").Want(201).
		Content("columns.2.name", "column_3").Content("columns.2.header", "").Content("columns.2.type", "integer")

	asCSV(a, "/tables/import?name=latin&encoding=windows-1252", "name\ncaf\xe9 \x80\n").Want(201)
	asCSV(a, "/tables/import?name=wide&encoding=utf-16", "\xff\xfea\x00\n\x00\xe9\x00\n\x00").Want(201)

	if got := query[string](t, a, "select (select name from public.latin) || (select a from public.wide)"); got !=
		"café €é" {
		t.Errorf("got %q", got)
	}

	asCSV(a, "/tables/import?name=dry&dry_run=true", "a\n1\n").Want(201).Content("rows", 1).Content("tableId", nil)
	a.Get("/tables/dry").Want(404)
	asCSV(a, "/tables/import?name=heads", "a,b\n").Want(201).Content("rows", 0).Content("columns.0.type", "text")
}

func TestImportRows(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a,
		`create type public.mood as enum ('ok'); create table public.goods (id int primary key, name varchar(5) not null, price numeric(5,2) default 9, mood public.mood,
		twice int generated always as (id * 2) stored, parent int references public.goods, check (price > 0))`)

	const path = "/tables/goods/import"
	asCSV(a, path, "name,id\nx,1\ny,2\n").Want(201).Content("rows", 2).Content("columns.0.type", "").
		Content("table", "public.goods")

	if got := query[string](t, a, "select string_agg(price::text, ' ') from public.goods"); got != "9.00 9.00" {
		t.Errorf("got %s", got)
	}

	const mixed = "id,name,price,mood,parent\n3,good,1,ok,1\n3,twice,1,ok,\nx,bad,1,,\n4,,1,,\n5,toolong,1,,\n6,a,-1,,\n7,a,1e9,,\n8,a,1,sad,\n9,a,1,,77\n10,a\n11,a,1,,,\n12,\"a\"b,1,,\n13,\xff,1,,\n14,last,,,3\n\"15"
	r := asCSV(a, path+"?on_error=skip", mixed).Want(201).Content("rows", 2).Content("rejected", 13)

	var got []string
	for _, l := range r.Get("rejectedLines").([]any) {
		m := l.(map[string]any)
		got = append(got, fmt.Sprint(m["line"], " ", m["column"], " ", m["code"]))
	}

	want := "3 <nil> already_exists, 4 id invalid_value, 5 name required, 6 name too_long, 7 <nil> check, 8 price out_of_range, 9 mood invalid_value, 10 <nil> reference, 11 <nil> ragged, 12 <nil> ragged, 13 <nil> malformed, 14 <nil> invalid_encoding, 16 <nil> malformed"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}

	before := query[int](t, a, "select count(*) from public.goods")
	r = asCSV(a, path, "id,name\n20,a\n21,b\nx,c\n22,d\n").Want(422).Field("file").Code("invalid_value")
	if got := fmt.Sprint(r.Metadata("rejectedLines.0.line"), r.Metadata("rejectedLines.0.column")); got != "4id" {
		t.Errorf("got %s", got)
	}

	asCSV(a, path+"?dry_run=true&on_error=skip", "id,name\n20,a\nx,b\n").Want(201).Content("rows", 1).
		Content("rejected", 1).Content("dryRun", true)
	a.Send("POST", path, `{"id": 30, "name": "j"}`+"\n"+`{"id": 31, "name": "k", "price": 2}`,
		"Content-Type: application/x-ndjson").Want(201).Content("rows", 2)

	a.Send("POST", path, `{"id": 32, "name": "j", "nope": 1}`, "Content-Type: application/x-ndjson").Want(422).
		Code("unknown_column")

	asCSV(a, path+"?header=false", "40,a,1,ok,\n").Want(201)

	if after := query[int](t, a, "select count(*) from public.goods"); after != before+3 {
		t.Errorf("got %d rows, want %d", after, before+3)
	}

	const unknown = ", which is not a column of the table; if another line names the columns, import with header_line"
	for head, want := range map[string]string{
		"id,nope\n1,2\n": `has the header "nope"` + unknown,
		"id,\n1,2\n":     `has the header ""` + unknown,
		"id,id\n1,2\n":   `has the header "id" twice`,
		"id;name,x\n":    `has the header "id;name"` + unknown,
		"twice\n50\n":    "must not be empty",
		"\"id\"x\n":      `can't be imported: line 1 has text after a closing quote`,
	} {
		r := asCSV(a, path, head).Want(422).Field("file")
		if got := r.Metadata("fields.0.message"); got != want {
			t.Errorf("%q: got %q, want %q", head, got, want)
		}
	}

	asOwner(t, a,
		`create function public.fail() returns trigger language plpgsql as $$ begin raise 'no' using errcode = 'P0001'; end $$; create trigger f before insert on public.goods execute function public.fail()`)

	asCSV(a, path, "id,name\n60,a\n").Want(422).Code("refused")
}

// TestImportDetectsDelimiter imports the files that spreadsheets write in many countries.
func TestImportDetectsDelimiter(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("parts", "name text", "price numeric")

	const file = "id;name;price\r\n1;a, b;2.5\r\n"
	asCSV(a, "/tables/parts/import", file).Want(201).Content("rows", 1)
	asCSV(a, "/tables/import?name=newparts", file).Want(201).Content("columns.2.type", "numeric")
	asCSV(a, "/tables/import?name=onecolumn&delimiter=,", "id;name\n1;a\n").Want(201).
		Content("columns.0.name", "id_name")

	for _, table := range []string{"parts", "newparts"} {
		if got := query[string](t, a, "select p::text from public."+table+" p"); got != `(1,"a, b",2.5)` {
			t.Errorf("%s: got %s", table, got)
		}
	}
}

// TestImportDates checks that no date is stored with its day and month swapped.
func TestImportDates(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public.days (day date, at timestamptz, note text)`)

	r := asCSV(a, "/tables/days/import?on_error=skip", "day;at;note\n"+
		"2020-02-01;2020-02-01 10:00Z;1.2.3\n01.02.2020;;\n;1/2/2020 10:00;\n").Want(201).
		Content("rows", 1).Content("rejected", 2)
	for i, column := range []string{"day", "at"} {
		line := fmt.Sprintf("rejectedLines.%d.", i)
		r.Content(line+"line", i+3).Content(line+"column", column).Content(line+"code", "invalid_value").
			Content(line+"message", `has the date "`+[]string{"01.02.2020", "1/2/2020 10:00"}[i]+
				`", whose day and month can be swapped; write it as 2026-12-31`)
	}

	asCSV(a, "/tables/days/import", "day;at\n01.02.2021;31.12.2021 10:00Z\n").Want(201).
		Content("notes.0.code", "day_first").Content("notes.1.code", "day_first")
	if got := query[string](t, a, "select day || ' ' || (at at time zone 'UTC') from public.days where day > '2021-01-01'"); got !=
		"2021-02-01 2021-12-31 10:00:00" {
		t.Errorf("got %s", got)
	}
}

// TestImportNumbers stores numbers as the whole file writes them, in new and in existing tables.
func TestImportNumbers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public.stock ("Artikel" text, "Betrag" numeric, "Menge" int)`)

	const file = "Artikel;Betrag;Menge\nStuhl;1.234,56;1.000\nTisch;99,00;2.000\n"
	asCSV(a, "/tables/stock/import", file).Want(201).Content("rows", 2).Content("notes.0.code", "decimal_comma").
		Content("notes.0.column", "Betrag")
	asCSV(a, "/tables/import?name=bestand", file).Want(201).Content("columns.1.type", "numeric").
		Content("columns.2.type", "integer")
	for _, table := range []string{"stock", "bestand"} {
		if got := query[string](t, a, "select string_agg(s::text, ' ') from public."+table+" s"); got !=
			"(Stuhl,1234.56,1000) (Tisch,99.00,2000)" {
			t.Errorf("%s: got %s", table, got)
		}
	}

	const unclear = "Artikel;Betrag\nStuhl;1.000\n"
	asCSV(a, "/tables/stock/import", unclear).Want(422).Code("invalid_value").Field("file")
	asCSV(a, "/tables/stock/import?decimal=point", unclear).Want(201).Content("rows", 1)
	asCSV(a, "/tables/import?name=unclear", unclear).Want(201).Content("columns.1.type", "text").
		Content("notes.0.code", "unclear_numbers").Content("notes.0.column", "betrag")

	asCSV(a, "/tables/import?name=titled&header_line=3", "Costs\n\n名前,Straße\nA,1\n").Want(201).
		Content("columns.0.name", "名前").Content("columns.1.name", "straße").Content("columns.1.type", "integer")
	r := asCSV(a, "/tables/import?name=ragged", "Costs\n\nname,cost\nA,1\n").Want(422).Code("ragged")
	if got := fmt.Sprint(r.Metadata("fields.0.message")); !strings.HasSuffix(got, "import with header_line=3") {
		t.Errorf("got %s, want a hint on header_line", got)
	}

	a.Send("POST", "/tables/import?name=elements", `[{"a": 1}, {"a": 2}]`, "Content-Type: application/json").Want(201).
		Content("rows", 2)
	a.Send("POST", "/tables/import?name=x&decimal=comma", `{"a": 1}`, "Content-Type: application/json").Want(400).
		Field("decimal")
}

// TestImportWithoutRow checks the failure of files of which no row can be read.
func TestImportWithoutRow(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("objects", "name text")

	const jsonl = "Content-Type: application/x-ndjson"
	for _, path := range []string{"/tables/objects/import?on_error=skip", "/tables/import?name=newobjects"} {
		for body, want := range map[string]string{
			`[5]`:   "can't be imported: line 1 is not a JSON object",
			"\n{\n": "can't be imported: line 2 begins a JSON object that is not closed",
		} {
			r := a.Send("POST", path, body, jsonl).Want(422).Code("malformed").Field("file")
			if got := r.Metadata("fields.0.message"); got != want {
				t.Errorf("%s %q: got %q, want %q", path, body, got, want)
			}
		}
	}

	asCSV(a, "/tables/import?name=newobjects&header=false", "a,\"b\n").Want(422).Code("malformed")
	a.Send("POST", "/tables/objects/import", "[]", "Content-Type: application/octet-stream").Want(400).Field("format")
}

// TestImportOfExport checks that an import restores every row of an export, also null in the only
// column.
func TestImportOfExport(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public.notes (note text); create table public.copied (note text);
		insert into public.notes values (null), (''), ('a'), (null)`)

	for i, format := range []string{"csv", "tsv"} {
		exported := string(a.Get("/tables/notes/export?format=" + format).Want(200).Body)
		asCSV(a, "/tables/copied/import?format="+format, exported).Want(201).Content("rows", 4)

		if got := query[int](t, a, "select count(*) from public.copied where note is null"); got != 2*(i+1) {
			t.Errorf("%s: got %d rows with null, want %d", format, got, 2*(i+1))
		}
	}
}

// TestImportOfEveryType checks that each format returns every value of every type, and that the
// header of an export is accepted with its generated columns.
func TestImportOfEveryType(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `
		create type public.pair as (n int, "a b" text[]);
		create domain public.pairs as public.pair[];
		create type public.mood as enum ('so so', 'b"ad');
		create table public.everything (
			id int generated always as identity primary key, twice int generated always as (id * 2) stored,
			t text, c char(3), v varchar, ch "char", n name, b bytea, i2 smallint, i8 bigint, nu numeric, nm numeric(9,3), f4 real, f8 double precision,
			m money, bo boolean, d date, ts timestamp, tz timestamptz, ti time, tt timetz, iv interval, u uuid, j json, jb jsonb, x xml,
			ip inet, ci cidr, ma macaddr, bi bit(3), vb varbit, pt point, bx box, bxs box[], r int4range, mr nummultirange, tv tsvector, o oid, rc regclass,
			mood public.mood, p public.pair, ps public.pairs, ia int[], ta text[], ia2 int[], ja jsonb[], da date[], ba bytea[], ra int4range[]);
		insert into public.everything default values;
		insert into public.everything overriding system value values (7, default, E'a\\\\b"c,\\td\\n\\r\\\\N', 'x', '', E'\\\\', 'N', '\x00ff5c', -3, 9007199254740993, 'NaN', 1.000, 1.5e-7, 'Infinity',
			'-1234.56', true, '0044-03-15 BC', 'infinity', '2026-01-01 00:00:00.123456+00', '24:00', '10:00:00+02', '-1 mon 3 days 04:05:06.7',
			'01890000-0000-7000-8000-000000000000', '{"a":  "x\\ny"}', '"text\\\\ \\u00e9"', '<a b="c">d</a>', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03',
			B'101', B'', '(1,2)', '((1,2),(3,4))', array['((1,2),(3,4))'::box], '[1,)', '{[1.5,2),(3,4]}', 'a:1 ''b c'':2A', 4294967295, 'public.everything',
			'b"ad', row(null, array['x"y', null, '', 'NULL', E'\\\\']), array[row(1, '{}')::public.pair, null, row(2, null)::public.pair],
			'{}', array['', null, 'NULL', 'a,"b"', E'c\\\\d{}'], '{{1,2},{3,null}}', array['{"a": [1]}'::jsonb, 'null', '"s"'],
			array['infinity'::date, null], array['\x00'::bytea], array['empty'::int4range])`)

	for _, format := range []string{"csv", "tsv", "jsonl"} {
		asOwner(t, a, "create table public."+format+" (like public.everything including all)")
		exported := string(a.Get("/tables/everything/export?format=" + format).Want(200).Body)

		asCSV(a, "/tables/"+format+"/import?format="+format, exported).Want(201).Content("rows", 2).
			Content("notes.0.code", "generated_column").Content("notes.0.column", "twice")
		if got := query[string](t, a, `
			select coalesce(string_agg(before.key || ': ' || coalesce(before.value, 'null') || ' is ' || coalesce(after.value, 'null'), E'\n'), '')
			from public.everything a1 full join public.`+format+` a2 using (id),
			     json_each_text(row_to_json(a1)) before join json_each_text(row_to_json(a2)) after using (key)
			where before.value is distinct from after.value`); got != "" {
			t.Errorf("%s: %s", format, got)
		}
	}
}

// TestImportAdvancesSequences checks that a row without a value gets a free one after an import
// with values.
func TestImportAdvancesSequences(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `
		create table public.subscribers (id int generated by default as identity primary key, ticket bigserial,
			countdown int generated always as identity (increment by -10 start 100 maxvalue 100 minvalue -1000), name text);
		create sequence public.elsewhere; insert into public.subscribers (name) values ('first')`)

	const path = "/tables/subscribers/import?"
	next := func(want string) {
		t.Helper()

		asOwner(t, a, "insert into public.subscribers (name) values ('next')")

		if got := query[string](t, a, `select id || ' ' || ticket || ' ' || countdown from public.subscribers
			where name = 'next' order by id desc limit 1`); got != want {
			t.Errorf("got the values %s, want %s", got, want)
		}
	}

	asCSV(a, path, "id,name\n2,x\n500,y\n20,z\n").Want(201).Content("rows", 3)
	next("501 5 60")
	asCSV(a, path, "id,ticket,countdown,name\n7,7,70,a\n,8,15,b\n").Want(422).Code("required")
	asCSV(a, path+"on_error=skip", "id,ticket,countdown,name\n7,7,70,a\n8,900,15,b\n600,x,10,c\n501,950,0,d\n").Want(201).
		Content("rows", 2)
	next("502 901 5")
	asCSV(a, path+"dry_run=true", "id,name\n9000,x\n").Want(201)
	asCSV(a, path+"mode=upsert", "id,name\n800,x\n502,y\n").Want(201)
	a.Send("POST", path, `{"id": 900, "name": "j"}`, "Content-Type: application/x-ndjson").Want(201)
	asCSV(a, path, "id,name\n-5,x\n").Want(201)
	next("901 907 -55")
}

// TestImportUpsert checks that existing rows are replaced or kept, and that columns missing in the
// file keep their values.
func TestImportUpsert(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("goods", "code text", "name text", "price integer")
	asOwner(t, a,
		`create unique index on public.goods (code, name); create unique index on public.goods (lower(code)); create unique index on public.goods (price) where id > 9;
		alter table public.goods add check (price > 0); insert into public.goods values (1, 'a', 'one', 10), (2, 'b', 'two', 20)`)

	const path = "/tables/goods/import?"

	rows := func(want string) {
		t.Helper()

		if got := query[string](t, a, "select string_agg(g::text, ' ' order by id) from public.goods g"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	asCSV(a, path+"on_error=skip", "id,price\n1,11\n3,30\n").Want(201).Content("rows", 1).
		Content("rejectedLines.0.code", "already_exists")

		// The last row with a key wins.
	asCSV(a, path+"mode=upsert", "id,price\n1,11\n4,40\n4,41\n1,12\n").Want(201).Content("rows", 4).
		Content("rejected", 0)

	rows("(1,a,one,12) (2,b,two,20) (3,,,30) (4,,,41)")
	asCSV(a, path+"mode=ignore", "id,price\n1,99\n5,50\n5,51\n").Want(201).Content("rows", 1)
	asCSV(a, path+"mode=upsert&on_conflict=name,code", "code,price,name,id\na,13,one,6\n").Want(201).Content("rows", 1)
	rows("(2,b,two,20) (3,,,30) (4,,,41) (5,,,50) (6,a,one,13)")
	asCSV(a, path+"mode=upsert", "id\n6\n7\n").Want(201).Content("rows", 1) // no column to update
	asCSV(a, path+"mode=upsert&dry_run=true", "id,price\n6,99\n").Want(201).Content("rows", 1)
	asCSV(a, path+"mode=upsert&on_error=skip", "id,price\n2,21\n3,-1\n4,x\n8,80\n").Want(201).Content("rows", 2).
		Content("rejectedLines.0.code", "check").Content("rejectedLines.0.line", 3).
		Content("rejectedLines.1.code", "invalid_value").Content("rejectedLines.1.column", "price")

	asCSV(a, path+"mode=upsert", "id,price\n2,22\n3,-1\n").Want(422).Code("check")
	rows("(2,b,two,21) (3,,,30) (4,,,41) (5,,,50) (6,a,one,13) (7,,,) (8,,,80)")

	for query, code := range map[string]string{"on_conflict=price": "not_unique", "on_conflict=code": "not_unique",
		"on_conflict=nope": "not_unique", "on_conflict=id%29": "not_unique", "on_conflict=code,name": "missing",
		"on_conflict=,": "not_unique"} {
		asCSV(a, path+"mode=upsert&"+query, "id,price\n1,1\n").Want(400).Code(code).Field("on_conflict")
	}

	asCSV(a, path+"mode=replace", "id\n1\n").Want(400).Field("mode")
	asOwner(t, a, "create table public.keyless (id integer)")
	asCSV(a, "/tables/keyless/import?mode=ignore", "id\n1\n").Want(400).Code("required").Field("on_conflict")

	// UTF-16 is detected by its byte order mark.
	asCSV(a, path+"mode=upsert", "\xff\xfe"+strings.Join(strings.Split("id,name\n8,x\n", ""), "\x00")+"\x00").Want(201)
	asCSV(a, path+"mode=upsert", "\xfe\xff\x00"+strings.Join(strings.Split("id,name\n8,y\n", ""), "\x00")).Want(201)

	if got := query[string](t, a, "select name from public.goods where id = 8"); got != "y" {
		t.Errorf("got %q", got)
	}
}

// TestImportRefuses imports invalid files.
func TestImportRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	before := databaseState(t, a)

	for _, path := range []string{"/tables/import?name=new", "/tables/orders/import"} {
		and := "&"
		if !strings.Contains(path, "?") {
			and = "?"
		}

		for _, bad := range []string{
			"delimiter=%22", "delimiter=", "delimiter=ab", "delimiter=%C3%A9", "format=xml", "encoding=ebcdic",
			"header=yes", "on_error=stop", "dry_run=1", "unknown=1",
		} {
			asCSV(a, path+and+bad, "id\n1\n").Want(400)
		}

		a.Send("POST", path, "id\n1\n", "Content-Type: application/octet-stream").Want(400).Field("format")
		a.Send("POST", path, "id\n1\n", "Content-Type: application/xml").Want(400).Field("Content-Type")
		a.Send("POST", path, "id\n1\n", "Content-Type: text/csv", "Content-Encoding: gzip").Want(400)
		asCSV(a, path, "").Want(422).Code("required")
		asCSV(a, path, "id,note\n1,\""+strings.Repeat("x", 10<<20)+"\"\n").Want(422).Code("too_long")
		asCSV(a, path, "id,note\n1,\""+strings.Repeat(strings.Repeat("x", 1023)+"\n", 9<<10)).Want(422).Code("too_long")
		asCSV(a, path, strings.Repeat("a,", 100_000)+"\n").Want(422)
		asCSV(a, path, "id,note\n1,"+strings.Repeat(",", 100_000)+"\n").Want(422).Code("ragged")
		asCSV(a, path, "id,note\n1,"+strings.Repeat(`"",`, 100_000)+"\n").Want(422).Code("ragged")
		asCSV(a, path, "id,note\n1,a\x00b\n").Want(422).Code("invalid_character")
		a.Send("POST", path, `{"id": 1`, "Content-Type: application/x-ndjson").Want(422)
		a.Send("POST", path, `[]`, "Content-Type: application/x-ndjson").Want(422)
		asCSV(a.Member(5), path, "id\n1\n").Want(403)
		asCSV(a.OtherUser(), path, "id\n1\n").Want(401)

		huge := a.Request("POST", path, io.LimitReader(zeros{}, 3<<30), "Content-Type: text/csv")
		huge.ContentLength = 3 << 30
		res, err := http.DefaultTransport.RoundTrip(huge)
		if err != nil {
			t.Fatal(err)
		}

		res.Body.Close()

		if res.StatusCode != 413 {
			t.Errorf("%s: got %d, want 413", path, res.StatusCode)
		}

		short := a.Request("POST", path, io.MultiReader(strings.NewReader("id\n1\n"), &brokenReader{}),
			"Content-Type: text/csv")
		if res, err := http.DefaultTransport.RoundTrip(short); err == nil {
			res.Body.Close()
			t.Errorf("%s: a truncated file: got %d", path, res.StatusCode)
		}
	}

	for _, name := range []string{"a%22b", "", "x%3B", strings.Repeat("x", 64), "1a", "%C3%A9"} {
		asCSV(a, "/tables/import?name="+name, "id\n1\n").Want(400).Field("name")
	}

	asCSV(a, "/tables/import?name=x&schema=auth", "id\n1\n").Want(400).Field("schema")
	asCSV(a, "/tables/import?name=x&schema=nothing", "id\n1\n").Want(422).Field("schema")
	asCSV(a, "/tables/missing/import", "id\n1\n").Want(404)

	if after := databaseState(t, a); after != before || len(blobs(t, a)) > 0 {
		t.Errorf("a refused request changed\n%s\ninto\n%s %v", before, after, blobs(t, a))
	}

	tx, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := tx.Exec(t.Context(), "lock table public.orders"); err != nil {
		t.Fatal(err)
	}

	asCSV(a, "/tables/orders/import", "id\n1\n").Want(409).Code("busy")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	counts := concurrently(5, func(int) *apitest.Reply { return asCSV(a, "/tables/import?name=same", "id\n1\n") })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
}

// brokenReader is a body that fails in the middle.
type brokenReader struct{}

func (*brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestImportMany imports several batches, with invalid rows among them, and exports every valid row
// again.
func TestImportMany(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("many", "note text")

	var file strings.Builder
	file.WriteString("id,note\n")

	for i := range 20_000 {
		note := fmt.Sprintf("\"note, %d \\ \t\"", i)
		if i%4999 == 7 {
			note = "a\",b"
		}

		fmt.Fprintf(&file, "%d,%s\n", i, note)
	}

	file.WriteString("5,again\n")
	asCSV(a, "/tables/many/import?on_error=skip", file.String()).Want(201).Content("rows", 19_996).
		Content("rejected", 5)

	if got := query[bool](t, a, `select bool_and(note = 'note, ' || id || E' \\ \t') from public.many`); !got {
		t.Error("the stored notes differ from the sent ones")
	}

	exported := string(a.Get("/tables/many/export").Want(200).Body)
	asCSV(a, "/tables/import?name=copied", exported).Want(201).Content("rows", 19_996)

	if got := string(a.Get("/tables/copied/export").Want(200).Body); len(got) != len(exported) {
		t.Errorf("got %d bytes, want %d", len(got), len(exported))
	}
}

func TestImportTooLarge(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("people")
	a.Exec(`insert into platform.settings (name, value, updated_by) values ('max_upload_size', '8', gen_random_uuid())`)

	for _, path := range []string{"/tables/import?name=others", "/tables/people/import"} {
		asCSV(a, path, "id\n12345678\n").Want(413).Code("too_large").Field("file")
	}

	a.Get("/tables/others").Want(404)
}
