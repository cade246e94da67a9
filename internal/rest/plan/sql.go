package plan

import (
	"strconv"
	"strings"

	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

// builder writes a statement from left to right: text, identifiers, and arguments numbered in the order of their
// places, so that requests of one shape have one text. The first failure stays.
type builder struct {
	c       *catalog.Catalog
	r       *Request
	sql     []byte
	args    []any
	origins []origin // of the arguments
	aliases int
	unlocks bool // the statement gives up advisory locks
	quiet   bool // it runs no code of the database's
	bare    bool // it is a change that returns nothing
	single  bool // the body is a row, not an array of rows
	err     error
	// outdated are embedded relations that are not named by their alias.
	outdated []string
}

func newBuilder(c *catalog.Catalog, r *Request) *builder {
	return &builder{c: c, r: r, sql: make([]byte, 0, 1024), args: make([]any, 0, 8), origins: make([]origin, 0, 8)}
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) text(s string) { b.sql = append(b.sql, s...) }

// quote writes an identifier, as pg.Quote does. One without characters is refused as PostgreSQL does.
func (b *builder) quote(s string) {
	start := len(b.sql)
	if b.sql = enclose(b.sql, s, '"'); len(b.sql) == start+len(`""`) {
		b.fail(&query.Error{Status: 400, Code: "42601", Message: `zero-length delimited identifier at or near """"`})
	}
}

// literal writes text as an SQL literal that means the same under any setting of standard_conforming_strings.
func (b *builder) literal(s string) {
	if !strings.Contains(s, `\`) {
		b.sql = enclose(b.sql, s, '\'')
		return
	}

	b.text(" E")
	b.sql = enclose(b.sql, strings.ReplaceAll(s, `\`, `\\`), '\'')
}

// enclose appends s between marks, doubling those inside. A NUL, which no identifier and no text of PostgreSQL has,
// is left out.
func enclose(sql []byte, s string, mark byte) []byte {
	sql = append(sql, mark)
	for i := range len(s) {
		switch s[i] {
		case 0:
		case mark:
			sql = append(sql, mark, mark)
		default:
			sql = append(sql, s[i])
		}
	}

	return append(sql, mark)
}

func (b *builder) name(n catalog.Name) {
	b.quote(n.Schema)
	b.text(".")
	b.quote(n.Name)
}

func (b *builder) column(alias, name string) {
	b.quote(alias)
	b.text(".")
	b.quote(name)
}

// row writes the whole row of a relation of the statement. (A bare alias could be a column's name.)
func (b *builder) row(alias string) {
	b.quote(alias)
	b.text(".*")
}

// list writes names with commas between.
func (b *builder) list(names []string) {
	for i, n := range names {
		b.comma(i)
		b.quote(n)
	}
}

func (b *builder) comma(i int) {
	if i > 0 {
		b.text(", ")
	}
}

func (b *builder) int(n int64) { b.sql = strconv.AppendInt(b.sql, n, 10) }

// arg writes the place of an argument.
func (b *builder) arg(v any) {
	b.args, b.origins = append(b.args, v), append(b.origins, origin{})
	b.text("$")
	b.int(int64(len(b.args)))
}

// literalMost is the longest page whose length stands in the statement's text. Of a length that it does not know PostgreSQL
// takes it for a tenth of all rows; a plan for the one request then looks cheaper, and it makes one every time. Longer pages
// gain little, and are too many lengths to prepare a statement for each.
const literalMost = 1000

// length writes how many rows a page may have.
func (b *builder) length(n int64) {
	if n <= literalMost {
		b.int(n)
		return
	}

	b.intArg(n)
}

func (b *builder) intArg(n int64) { b.arg(strconv.FormatInt(n, 10)) }

// types are the names of types that SQL has as words of its own, which in quotes would mean nothing or something else.
var types = map[string]bool{
	"bigint": true, "bit": true, "bit varying": true, "boolean": true, "char": true, "char varying": true,
	"character": true, "character varying": true, "dec": true, "decimal": true, "double precision": true, "float": true,
	"int": true, "integer": true, "interval": true, "national char": true, "national character": true, "nchar": true,
	"numeric": true, "real": true, "smallint": true, "time": true, "time with time zone": true,
	"time without time zone": true, "timestamp": true, "timestamp with time zone": true,
	"timestamp without time zone": true, "varchar": true,
}

// namesObjects reports whether a cast to or from a type tells names of roles, relations or functions by their numbers, or
// whether there are such: it is a type of references, of privileges, a row of a catalogue, or an array of those.
func namesObjects(typ string) bool {
	typ = strings.TrimPrefix(typ, "_")
	switch typ {
	case "aclitem", "regclass", "regcollation", "regconfig", "regdatabase", "regdictionary", "regnamespace", "regoper",
		"regoperator", "regproc",
		"regprocedure", "regrole", "regtype":
		return true
	}

	return strings.HasPrefix(typ, "pg_")
}

// cast writes the type of a cast, which is the client's text: the contract has it without quotes.
func (b *builder) cast(typ string) {
	typ = strings.ToLower(strings.TrimSpace(typ))
	if b.r.Confined && namesObjects(typ) {
		b.fail(noCast(typ))
		return
	}

	if types[typ] {
		b.text(typ)
		return
	}

	b.quote(typ)
}

// alias makes a name for a relation in the statement that no other has, and that looks like the relation's, since
// PostgreSQL's messages show it. The first one, the root's, is the relation's own.
func (b *builder) alias(name string) string {
	b.aliases++
	// PostgreSQL itself names the rows of an upsert so
	if b.aliases == 1 && name != row && name != "excluded" && !numbered(name) {
		return name
	}

	const longest = 63 - len("_1000000")
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}

	return name + "_" + strconv.Itoa(b.aliases-1)
}

// row is the alias of what the statement's outermost part aggregates, and of the rows that a body has.
const row = "_"

// numbered says whether a name ends like those that alias makes.
func numbered(name string) bool {
	short := strings.TrimRight(name, "0123456789")
	return len(short) < len(name) && strings.HasSuffix(short, "_")
}

// array is the text of an array of PostgreSQL's with these elements.
func array(list []string) string {
	n := 2
	for _, s := range list {
		n += len(s) + 3
	}

	text := make([]byte, 0, n)
	text = append(text, '{')
	for i, s := range list {
		if i > 0 {
			text = append(text, ',')
		}

		text = append(text, '"')
		for j := range len(s) {
			if s[j] == '"' || s[j] == '\\' {
				text = append(text, '\\')
			}
			text = append(text, s[j])
		}

		text = append(text, '"')
	}

	return string(append(text, '}'))
}
