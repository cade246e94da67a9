package plan

import (
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// builder writes a statement from left to right: text, identifiers, and arguments numbered by
// position. Requests of one shape therefore have the same text. It keeps the first error.
type builder struct {
	c             *catalog.Catalog
	r             *Request
	sql           []byte
	args          []any
	origins       []origin // by argument
	aliases       int
	releasesLocks bool // the statement releases advisory locks
	noUserCode    bool // it runs no user code
	countOnly     bool // it is a change that returns nothing
	single        bool // the body is a row, not an array of rows
	err           error
	// deprecatedNames lists embedded relations referenced by name despite an alias.
	deprecatedNames []string
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

// quote writes an identifier, as pg.Quote does. It fails for an empty one, as PostgreSQL does.
func (b *builder) quote(s string) {
	start := len(b.sql)
	if b.sql = enclose(b.sql, s, '"'); len(b.sql) == start+len(`""`) {
		b.fail(&query.Error{Status: 400, Code: "42601", Message: `zero-length delimited identifier at or near """"`})
	}
}

// literal writes an SQL literal that is independent of standard_conforming_strings.
func (b *builder) literal(s string) {
	if !strings.Contains(s, `\`) {
		b.sql = enclose(b.sql, s, '\'')
		return
	}

	b.text(" E")
	b.sql = enclose(b.sql, strings.ReplaceAll(s, `\`, `\\`), '\'')
}

// enclose appends s in quotation marks, doubling marks inside. It drops NUL, which no PostgreSQL
// identifier or text contains.
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

// row writes the whole row of an alias. A bare alias could be the name of a column.
func (b *builder) row(alias string) {
	b.quote(alias)
	b.text(".*")
}

// list writes identifiers separated by commas.
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

// arg writes the placeholder of an argument.
func (b *builder) arg(v any) {
	b.args, b.origins = append(b.args, v), append(b.origins, origin{})
	b.text("$")
	b.int(int64(len(b.args)))
}

// maxLiteralLength is the longest page whose length is part of the SQL text. For an unknown length
// PostgreSQL assumes a tenth of all rows; a custom plan then looks cheaper, and is made each time.
// Longer pages gain little, and have too many lengths to prepare a statement for each.
const maxLiteralLength = 1000

// length writes the length of a page.
func (b *builder) length(n int64) {
	if n <= maxLiteralLength {
		b.int(n)
		return
	}

	b.intArg(n)
}

func (b *builder) intArg(n int64) { b.arg(strconv.FormatInt(n, 10)) }

// types lists the type names that are SQL keywords. In quotes they would be unknown or another
// type.
var types = map[string]bool{
	"bigint": true, "bit": true, "bit varying": true, "boolean": true, "char": true, "char varying": true,
	"character": true, "character varying": true, "dec": true, "decimal": true, "double precision": true, "float": true,
	"int": true, "integer": true, "interval": true, "national char": true, "national character": true, "nchar": true,
	"numeric": true, "real": true, "smallint": true, "time": true, "time with time zone": true,
	"time without time zone": true, "timestamp": true, "timestamp with time zone": true,
	"timestamp without time zone": true, "varchar": true,
}

// namesObjects reports whether a cast to or from a type reveals the names or the existence of
// roles, relations or functions by their OIDs. Such types are reg* types, ACL items, rows of a
// system catalog, and arrays of those.
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

// cast writes the type of a cast, given by the client. The contract has it without quotes.
func (b *builder) cast(typ string) {
	typ = strings.ToLower(strings.TrimSpace(typ))
	if b.r.SharedOrigin && namesObjects(typ) {
		b.fail(noCast(typ))
		return
	}

	if types[typ] {
		b.text(typ)
		return
	}

	b.quote(typ)
}

// alias returns a unique alias for a relation. It resembles the relation's name, since PostgreSQL's
// messages show it. The root, the first alias, keeps its own name.
func (b *builder) alias(name string) string {
	b.aliases++
	// PostgreSQL names the rows of an upsert "excluded"
	if b.aliases == 1 && name != row && name != "excluded" && !numbered(name) {
		return name
	}

	const longest = 63 - len("_1000000")
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}

	return name + "_" + strconv.Itoa(b.aliases-1)
}

// row is the alias of the rows that the outermost SELECT aggregates, and of the body's rows.
const row = "_"

// numbered reports whether a name ends like a generated alias.
func numbered(name string) bool {
	short := strings.TrimRight(name, "0123456789")
	return len(short) < len(name) && strings.HasSuffix(short, "_")
}

// array returns the text of a PostgreSQL array.
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
