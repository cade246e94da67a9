package schema

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// dataType is a database type that a column or a function may have.
type dataType struct {
	SQL         string // SQL with modifiers and brackets
	OID         uint32
	Base        uint32 // a domain's base type, else OID
	Name        string // for clients, without modifiers
	Textual     bool   // string type, or a domain over one
	Moment      bool   // date or time type, or a domain over one
	Composite   bool   // row type, or a domain over one
	identity    bool
	hasModifier bool
}

// types resolves types and caches them for one transaction.
type types struct {
	tx    pgx.Tx
	cache map[typeSpec]dataType
}

func newTypes(tx pgx.Tx) *types { return &types{tx: tx, cache: map[typeSpec]dataType{}} }

// get resolves a client's type. It fails with Unprocessable on the field for an unknown type, a
// pseudo-type, and types reserved for the platform or the catalog.
func (t *types) get(ctx context.Context, field, text string) (dataType, error) {
	if strings.TrimSpace(text) == "" {
		return dataType{}, fault.OnField(fault.Unprocessable, field, "required", "must not be empty")
	}

	spec, err := parseType(text)
	if err != nil {
		return dataType{}, badType(field, err.Error())
	}

	return t.resolve(ctx, field, spec)
}

func badType(field, message string) *fault.Error {
	return fault.OnField(fault.Unprocessable, field, "invalid_type", "%s", message)
}

// getNonSerial is get without the serial types.
func (t *types) getNonSerial(ctx context.Context, field, text string) (dataType, error) {
	d, err := t.get(ctx, field, text)
	if err == nil && d.identity {
		err = badType(field, "can't be serial here: use integer")
	}

	return d, err
}

// resolve is get for a parsed type.
func (t *types) resolve(ctx context.Context, field string, spec typeSpec) (dataType, error) {
	if d, ok := t.cache[spec]; ok {
		return d, nil
	}

	type row struct {
		dataType
		Usable bool
	}

	r, err := pg.One[row](ctx, t.tx, `
		with recursive named as (
			select `+resolvedType+` as sql
		), found as (
			select d.sql, t.oid, t.typtype, t.typcategory, t.typbasetype, coalesce(e.oid, t.oid) as element
			from named d
			join pg_catalog.pg_type t on t.oid = pg_catalog.to_regtype(d.sql)
			left join pg_catalog.pg_type e on e.oid = t.typelem and t.typcategory = 'A'
		), base as (
			select f.oid, f.typtype, f.typbasetype from found f
			union all
			select t.oid, t.typtype, t.typbasetype from base b join pg_catalog.pg_type t on t.oid = b.typbasetype
		)
		select f.sql, f.oid, b.oid as base, shown.name,
			f.typcategory = 'S' as textual, f.typcategory = 'D' as moment, b.typtype = 'c' as composite,
			e.typtype <> 'p' and case when n.nspname = 'pg_catalog'
				then e.typtype <> 'c' and (e.typname not like 'pg\_%' or e.typname in ('pg_lsn', 'pg_snapshot'))
				else `+userSchema+` end as usable
		from found f
		join base b on b.typtype <> 'd'
		join pg_catalog.pg_type e on e.oid = f.element
		join pg_catalog.pg_namespace n on n.oid = e.typnamespace
		cross join lateral (select pg_catalog.format_type(f.oid, null) as full_name) printed
		cross join lateral (select `+displayType+` as name) shown`,
		spec.arguments())
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && !r.Usable:
		return dataType{}, t.unknown(ctx, field, spec)
	case err != nil:
		return dataType{}, translate(err, func(state string) *fault.Error {
			switch state {
			case "42501": // insufficient_privilege, on the schema
				return badType(field, "is not a type of this database for columns and functions")
				// invalid_parameter_value, invalid_text_representation, syntax_error,
				// numeric_value_out_of_range
			case "22023", "22P02", "42601", "22003":
				return badType(field, errModifier.Error())
			}

			return nil
		})
	}

	d := r.dataType
	d.Name, d.identity, d.hasModifier = shortType(d.Name), spec.identity, spec.hasModifier
	t.cache[spec] = d

	return d, nil
}

// maxSuggestions bounds the types of a project among which the nearest name is searched.
const maxSuggestions = 500

// unknown returns the failure for a type that does not exist, with the nearest name that does.
func (t *types) unknown(ctx context.Context, field string, spec typeSpec) error {
	const message = "is not a type of this database for columns and functions"

	names, err := pg.Values[string](ctx, t.tx, `
		select case n.nspname when 'public' then '' else n.nspname || '.' end || t.typname
		from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
		where t.typtype in ('e', 'd') and `+userSchema+` and pg_catalog.has_schema_privilege(n.oid, 'usage')
		order by 1 limit @limit`, pgx.StrictNamedArgs{"limit": maxSuggestions})
	if err != nil {
		return err
	}

	name := spec.name()
	if near := nearestType(name, names); near != "" {
		return badType(field, message+": "+name+"; did you mean "+near+"?")
	}
	if len(name) <= maxName {
		return badType(field, message+": "+name)
	}

	return badType(field, message)
}

// resolvedType is the SQL expression for a [typeSpec]'s first name that resolves to a type, or for
// the first name if none does.
const resolvedType = `case when pg_catalog.to_regtype(@sql) is not null then @sql
	when @other0 <> '' and pg_catalog.to_regtype(@other0) is not null then @other0
	when @other1 <> '' and pg_catalog.to_regtype(@other1) is not null then @other1
	when @other2 <> '' and pg_catalog.to_regtype(@other2) is not null then @other2
	when @other3 <> '' and pg_catalog.to_regtype(@other3) is not null then @other3 else @sql end`

func (t typeSpec) arguments() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"sql": t.sql, "other0": t.fallbacks[0], "other1": t.fallbacks[1],
		"other2": t.fallbacks[2], "other3": t.fallbacks[3]}
}

// displayType is the SQL expression for a type's name for clients, from printed.full_name, the
// output of format_type. It removes the schemas public and extensions unless the bare name resolves
// to another type first. [shortType] completes it.
const displayType = `case
	when printed.full_name like 'public.%' and pg_catalog.to_regtype(pg_catalog.substr(printed.full_name, 8)) is null
	then pg_catalog.substr(printed.full_name, 8)
	when printed.full_name like 'extensions.%' and pg_catalog.to_regtype(pg_catalog.substr(printed.full_name, 12)) is null
		and pg_catalog.to_regtype('public.' || pg_catalog.substr(printed.full_name, 12)) is null
	then pg_catalog.substr(printed.full_name, 12) else printed.full_name end`

var longType = regexp.MustCompile(
	`^(character varying|character|timestamp|time)(\([0-9]+\))?( with time zone| without time zone)?((?:\[\])*)$`,
)

// shortType replaces SQL's long spellings by the common names.
func shortType(name string) string {
	m := longType.FindStringSubmatch(name)
	if m == nil {
		return name
	}

	word := m[1]
	switch {
	case word == "character varying":
		word = "varchar"
	case word == "character":
		word = "char"
	case m[3] == " with time zone":
		word += "tz"
	}

	return word + m[2] + m[4]
}
