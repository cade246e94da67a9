package projectdb

import (
	"context"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// Extension is an extension in a project's database. Its script ran as a superuser, so the platform
// or an operator installed it.
type Extension struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
}

// Extensions returns the extensions in q's database, in creation order, and then the emulated ones,
// see [schema.IsEmulated]. It omits plpgsql, which every database has.
func Extensions(ctx context.Context, q pg.Querier) ([]Extension, error) {
	all, err := pg.All[Extension](ctx, q, `
		select e.extname as name, n.nspname as schema
		from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
		where e.extname <> 'plpgsql' order by e.oid`)
	if err != nil {
		return nil, err
	}

	emulated, err := schema.EmulatedExtensions(ctx, q)
	for _, name := range emulated {
		all = append(all, Extension{name, schema.ExtensionsSchema})
	}

	return all, err
}

// ExtensionMember is an extension's table.
type ExtensionMember struct {
	Schema, Name string
	Filled       bool // a configuration table, whose user rows are in dumps
}

// ExtensionMembers returns the tables that belong to a database's extensions.
func ExtensionMembers(ctx context.Context, q pg.Querier) ([]ExtensionMember, error) {
	return pg.All[ExtensionMember](ctx, q, `
		select n.nspname as schema, c.relname as name, c.oid = any(coalesce(e.extconfig, '{}')) as filled
		from pg_depend d
		join pg_extension e on e.oid = d.refobjid
		join pg_class c on c.oid = d.objid
		join pg_namespace n on n.oid = c.relnamespace
		where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and c.relkind = 'r'`)
}
