package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/sqllex"
)

// PostgreSQL keeps function bodies as text. A function whose text names a renamed or dropped object
// fails when it is called; the rename or drop succeeds.

const (
	maxMentions     = 100     // functions in a response
	maxMentionBytes = 8 << 20 // bytes of function bodies to search
)

// TableMentions returns the functions whose text names a table, or a table's column unless column
// is "". It fails as [GetTable] does.
func TableMentions(ctx context.Context, q pg.Querier, project uuid.UUID, ref, column string) ([]Dependent, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}

	if column == "" {
		return Mentions(ctx, q, t.Name)
	}

	return Mentions(ctx, q, t.Name, column)
}

// EnumMentions returns the functions whose text names an enum; ref is as for [GetEnum].
func EnumMentions(ctx context.Context, q pg.Querier, ref string) ([]Dependent, error) {
	e, err := GetEnum(ctx, q, ref)
	if err != nil {
		return nil, err
	}

	return Mentions(ctx, q, e.Name)
}

// Mentions returns the functions whose text has all names, as words outside comments. It returns at
// most [maxMentions], never nil.
func Mentions(ctx context.Context, q pg.Querier, names ...string) ([]Dependent, error) {
	all, err := pg.All[struct {
		Dependent
		Body string
	}](ctx, q, `
		select f.kind, f.name, f.body from (
			select i.type as kind, i.identity as name, p.prosrc as body,
				sum(octet_length(p.prosrc)) over (order by i.identity) as bytes
			from pg_catalog.pg_proc p
			join pg_catalog.pg_namespace n on n.oid = p.pronamespace
			join pg_catalog.pg_language l on l.oid = p.prolang
			cross join lateral pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0) i
			where `+userSchema+` and l.lanname not in ('c', 'internal') and p.prosqlbody is null
				and not exists (select from pg_catalog.unnest(@names::text[]) word
					where pg_catalog.strpos(pg_catalog.lower(p.prosrc), pg_catalog.lower(word)) = 0)
				and not exists (select from pg_catalog.pg_depend d
					where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e')
		) f
		where f.bytes <= @most order by f.name`, pgx.StrictNamedArgs{"names": names, "most": maxMentionBytes})

	mentions := []Dependent{}
	for _, f := range all {
		lacks := func(name string) bool { return !hasWord(f.Body, name) }
		if len(mentions) < maxMentions && !slices.ContainsFunc(names, lacks) {
			mentions = append(mentions, f.Dependent)
		}
	}

	return mentions, err
}

// hasWord reports whether a function body has a name as a word, outside comments. A string in it
// may be a statement.
func hasWord(body, name string) bool {
	l := sqllex.New(body)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		text := body[t.Start:t.End]
		switch t.Kind {
		case sqllex.Comment:
		case sqllex.String:
			if inText(text, name) {
				return true
			}
		case sqllex.QuotedName:
			if unquoted(text) == name {
				return true
			}
		default:
			if strings.EqualFold(text, name) {
				return true
			}
		}
	}

	return false
}

// inText reports whether a text has a name between characters that no name has.
func inText(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for {
		head, tail, ok := strings.Cut(text, name)
		if !ok {
			return false
		}

		if (head == "" || !isWordByte(head[len(head)-1])) && (tail == "" || !isWordByte(tail[0])) {
			return true
		}

		text = tail
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
