package plan

// body writes the conversion of the rows to the response's media type. The rows have the alias row.
func (b *builder) body() {
	if b.r.Head {
		b.text("null::text")
		return
	}

	switch b.r.Format {
	case Object:
		b.objects("pg_catalog.row_to_json(", ")::text")
	case StrippedObject:
		b.objects("pg_catalog.json_strip_nulls(pg_catalog.row_to_json(", "))::text")
	case StrippedJSON:
		if b.single {
			b.wrap("pg_catalog.json_strip_nulls(coalesce(pg_catalog.json_agg(", ")->0, 'null'))")
			return
		}

		b.wrap("pg_catalog.json_strip_nulls(coalesce(pg_catalog.json_agg(", "), '[]'))")
	case CSV:
		b.csv()
	case GeoJSON:
		b.text("pg_catalog.json_build_object('type', 'FeatureCollection', 'features', coalesce(pg_catalog.json_agg(")
		b.name(b.c.GeoJSON)
		b.wrap("(", ")::json), '[]'))")
	case Custom:
		b.custom()
	default:
		if b.single {
			b.wrap("coalesce(pg_catalog.json_agg(", ")->0, 'null')")
			return
		}

		// json_agg is PostgreSQL's fastest way for few rows and for many. A cast to text would copy
		// a long result twice more.
		b.wrap("coalesce(pg_catalog.json_agg(", "), '[]')")
	}
}

// wrap writes an expression over the rows.
func (b *builder) wrap(before, after string) {
	b.text(before)
	b.row(row)
	b.text(after)
}

// objects writes the rows' objects, concatenated. The caller expects one.
func (b *builder) objects(before, after string) {
	b.text("pg_catalog.string_agg(")
	b.wrap(before, after)
	b.text(", '')")
}

// csv writes the rows below a header of column names, by RFC 4180. Of a column alone, null is NULL:
// an empty line would be no row.
func (b *builder) csv() {
	b.text(`coalesce((select pg_catalog.string_agg(case when k ~ '[",\r\n]' or k = 'NULL' then ` +
		`'"' || pg_catalog.replace(k, '"', '""') || '"' else k end, ',') from (select ` +
		`pg_catalog.json_object_keys(pg_catalog.row_to_json(p.*)) as k from (select * from page limit 1) as p) as ` +
		`n), '') || E'\n' || coalesce(pg_catalog.string_agg(`)
	b.csvLine(`"_".*`, "NULL")
	b.text(`, E'\n'), '')`)
}

// csvLine writes the conversion of a composite to a line of CSV. PostgreSQL's row syntax is CSV in
// parentheses, except for doubled backslashes. A text NULL is quoted: without quotes it is null.
func (b *builder) csvLine(composite, null string) {
	b.text(`(select case when line = '' then `)
	b.literal(null)
	b.text(` when pg_catalog.strpos(line, 'NULL') = 0 then line else (select pg_catalog.string_agg(` +
		`case when n % 2 = 0 then part else pg_catalog.regexp_replace(part, '(^|,)NULL(?=,|$)', '\1"NULL"', 'g') end, ` +
		`'"' order by n) from unnest(pg_catalog.string_to_array(line, '"')) with ordinality as parts(part, n)) end ` +
		`from (select pg_catalog.replace(pg_catalog.right(pg_catalog.left(` + composite +
		`::text, -1), -1), E'\\\\', E'\\') as line) as lines)`)
}

// xmlText surrounds a value of type xml that is to be shown like its output: without the newline
// before the first element, which a cast to text keeps.
var xmlText = [2]string{"pg_catalog.textin(pg_catalog.xml_out(", "))"}

// custom writes the result of a user-defined aggregate over the rows.
func (b *builder) custom() {
	h := b.r.Handler
	switch {
	case h.Binary:
		b.text("pg_catalog.encode(")
	case h.XML:
		b.text(xmlText[0])
	}

	b.name(h.Function)
	b.text("(")

	if h.For.Name == "" {
		b.row(row)
	} else {
		b.wrap("cast(", " as ")
		b.name(h.For)
		b.text(")")
	}

	b.text(")")

	switch {
	case h.Binary:
		b.text(", 'hex')")
	case h.XML:
		b.text(xmlText[1])
	default:
		b.text("::text")
	}
}
