package catalog

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// selectFunctions omits functions that only PostgreSQL itself calls.
const selectFunctions = `
	with recursive ` + domains + `
	select n.nspname as schema, p.proname as name, coalesce(comment.description, '') as description,
		p.provolatile as volatility, p.provariadic <> 0 as variadic,
		coalesce(p.proconfig, '{}') as config, p.pronargdefaults as defaults,
		coalesce(p.proargnames, '{}') as names, coalesce(pg_catalog.array_to_string(p.proargmodes, ''), '') as modes,
		array(select pg_catalog.format_type(argument.type, -1)
			from unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) with ordinality argument (type, place)
			order by argument.place) as types,
		p.proretset as set, p.prorettype = 'pg_catalog.void'::pg_catalog.regtype as void, base.typtype = 'c' as composite,
		pg_catalog.format_type(p.prorettype, -1) as type,
		coalesce(rn.nspname, '') as relation_schema, coalesce(rc.relname, '') as relation_name,
		coalesce(rc.oid, 0) as relation_id, not p.proretset or p.prorows = 1 as single,
		coalesce(argument.typrelid, 0) as argument_id
	from pg_catalog.pg_proc p
	join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	left join domains domain on domain.id = p.prorettype
	join pg_catalog.pg_type base on base.oid = coalesce(domain.base, p.prorettype)
	left join pg_catalog.pg_class rc on rc.oid = base.typrelid and rc.relkind <> 'c'
	left join pg_catalog.pg_namespace rn on rn.oid = rc.relnamespace
	left join pg_catalog.pg_type argument on p.pronargs = 1 and argument.oid = p.proargtypes[0]
	left join pg_catalog.pg_description comment on comment.objoid = p.oid and comment.objsubid = 0
		and comment.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass
	where p.prokind = 'f' and n.nspname = any (@schemas)
		and p.prorettype not in ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
	order by n.nspname, p.proname, p.pronargs, types`

type functionRow struct {
	Schema, Name, Description    string
	Volatility                   byte
	Variadic                     bool
	Config                       []string
	Defaults                     int
	Names                        []string
	Modes                        string
	Types                        []string
	Set, Void, Composite         bool
	Type                         string
	RelationSchema, RelationName string
	RelationID                   uint32
	Single                       bool
	ArgumentID                   uint32
}

func (r *reader) readFunctions(read pgx.Rows) error {
	rows, err := collect[functionRow](read)
	var links []computed
	settings := r.options.Hoisted
	if settings == nil {
		settings = defaultHoisted
	}

	for _, row := range rows {
		f := row.function(settings)
		if callable(f.Params) {
			r.catalog.Functions[f.Name] = append(r.catalog.Functions[f.Name], f)
		}

		from, to := r.relations[row.ArgumentID], r.relations[row.RelationID]
		if from != nil && to != nil {
			links = append(links, computed{f, from.Name, to.Name, row.Single})
		}
	}

	r.catalog.linkComputed(links)
	return err
}

// Parameter modes in pg_proc.
const (
	inputs   = "ibv" // in, inout, variadic
	outputs  = "obt" // out, inout, table
	variadic = 'v'
)

func (row functionRow) function(settings []string) *Function {
	f := &Function{
		Name: Name{row.Schema, row.Name}, Description: row.Description,
		Returns: Returned{Set: row.Set, Void: row.Void, Composite: row.Composite ||
			strings.ContainsAny(row.Modes, outputs),
			Relation: Name{row.RelationSchema, row.RelationName}, Type: row.Type},
		Volatility: row.Volatility, Variadic: row.Variadic,
	}

	for i, typ := range row.Types {
		mode := byte('i')
		if row.Modes != "" {
			mode = row.Modes[i]
		}
		if strings.IndexByte(outputs, mode) >= 0 && i < len(row.Names) {
			f.Returns.Columns = append(f.Returns.Columns, Parameter{Name: row.Names[i], Type: typ})
		}

		if strings.IndexByte(inputs, mode) < 0 {
			continue
		}

		p := Parameter{Type: typ, Required: true, Variadic: mode == variadic}
		if i < len(row.Names) {
			p.Name = row.Names[i]
		}

		f.Params = append(f.Params, p)
	}

	// Parameters with a default are the last ones.
	for i := max(len(f.Params)-row.Defaults, 0); i < len(f.Params); i++ {
		f.Params[i].Required = false
	}

	for _, setting := range row.Config {
		name, value, _ := strings.Cut(setting, "=")
		if !slices.Contains(settings, name) {
			continue
		}

		if f.Settings == nil {
			f.Settings = map[string]string{}
		}

		f.Settings[name] = value
	}

	return f
}

// callable reports whether a request can name the parameters, or pass its body as the only one.
func callable(params []Parameter) bool {
	isUnnamed := func(p Parameter) bool { return p.Name == "" }
	if !slices.ContainsFunc(params, isUnnamed) {
		return true
	}

	return len(params) == 1 && slices.Contains([]string{"json", "jsonb", "text", "xml", "bytea"}, params[0].Type)
}

const selectHandlers = `
		with recursive ` + domains + `,
		media as (
			select t.oid as id, pg_catalog.lower(t.typname) as name, d.base = 'bytea'::pg_catalog.regtype as binary,
				d.base = 'xml'::pg_catalog.regtype as xml
			from domains d
			join pg_catalog.pg_type t on t.oid = d.id
			where t.typname ~ '^[A-Za-z0-9.-]+/[A-Za-z0-9.+-]+$' or t.typname = '*/*'
		)
		select m.name as media_type, n.nspname as schema, p.proname as name, m.binary, m.xml, p.prokind = 'a' as aggregate,
			coalesce(rn.nspname, '') as relation_schema, coalesce(rc.relname, '') as relation_name
		from media m
		join pg_catalog.pg_proc p on p.prorettype = m.id
		join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		left join pg_catalog.pg_class rc on p.prokind = 'a' and rc.reltype = p.proargtypes[0] and rc.relkind <> 'c'
		left join pg_catalog.pg_namespace rn on rn.oid = rc.relnamespace
		where n.nspname = any (@path::text[])
			and (p.prokind = 'f' and not p.proretset and n.nspname = any (@schemas)
				or p.prokind = 'a' and p.pronargs = 1
					and (rc.oid is not null or p.proargtypes[0] = 'pg_catalog.anyelement'::pg_catalog.regtype))
		order by pg_catalog.array_position(@path::text[], n.nspname::text), n.nspname, p.proname, p.oid`

func (r *reader) readHandlers(read pgx.Rows) error {
	type row struct {
		MediaType, Schema, Name string
		Binary, XML, Aggregate  bool
		RelationSchema          string
		RelationName            string
	}

	rows, err := collect[row](read)
	for _, row := range rows {
		h := Handler{MediaType: row.MediaType, Function: Name{row.Schema, row.Name}, Binary: row.Binary,
			XML: row.XML, For: Name{row.RelationSchema, row.RelationName}}

		if !row.Aggregate {
			h.For = h.Function
		}

		r.catalog.Handlers = append(r.catalog.Handlers, h)
	}

	return err
}
