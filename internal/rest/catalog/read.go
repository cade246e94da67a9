package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Options select the exposed part of a database.
type Options struct {
	Schemas    []string // exposed, the default one first
	SearchPath []string // further schemas searched for media type aggregates
	// function settings that apply to a call's whole transaction; nil means the contract's
	Hoisted []string
}

// defaultHoisted lists the settings that apply to a call's transaction by default. All settings
// apply within the function anyway.
var defaultHoisted = []string{"statement_timeout", "plan_filter.statement_cost_limit", "default_transaction_isolation"}

// Read reads the catalog of the database behind q. q must have the search path of [pg.PoolConfig],
// so that types and functions outside pg_catalog print schema-qualified. A repeatable read
// transaction sees a consistent catalog; without it, concurrent DDL can hide the objects that it
// touches. Read locks only views, each for the moment in which PostgreSQL determines whether it is
// updatable.
//
// It sends all statements at once: there are twelve, and on a busy machine a round trip costs more
// than most of them.
func Read(ctx context.Context, q Querier, o Options) (*Catalog, error) {
	r := reader{
		options: o,
		catalog: &Catalog{
			Schemas: o.Schemas, Relations: map[Name]*Relation{}, Comments: map[string]string{},
			Links: map[Name][]*Link{}, Functions: map[Name][]*Function{},
		},
		relations: map[uint32]*Relation{}, views: map[uint32][]attribute{},
		codeInReads: map[uint32]bool{}, codeInWrites: map[uint32]bool{}, codeInTypes: map[uint32]bool{},
	}

	schemas := pgx.StrictNamedArgs{"schemas": o.Schemas}
	path := pgx.StrictNamedArgs{"schemas": o.Schemas, "path": slices.Concat(o.Schemas, o.SearchPath)}
	steps := []struct {
		what, sql string
		args      []any
		read      func(pgx.Rows) error
	}{
		{"schemas", selectComments, []any{schemas}, r.readComments},
		{"relations", selectRelations, []any{schemas}, r.readRelations},
		{"casts", selectCasts, nil, r.readCasts},
		{"columns", selectColumns, []any{schemas}, r.readColumns},
		{"views", selectViews, []any{schemas}, r.readViews},
		{"harmless functions", selectHarmless, nil, r.readHarmless},
		{"function bodies", selectBodies, nil, r.readBodies},
		{"expressions", selectTrees, []any{schemas}, r.readTrees},
		{"constraints", selectConstraints, nil, r.readConstraints},
		{"functions", selectFunctions, []any{schemas}, r.readFunctions},
		{"media types", selectHandlers, []any{path}, r.readHandlers},
		{"geometries", selectGeoJSON, nil, r.readGeoJSON},
	}

	batch := &pgx.Batch{}
	for _, step := range steps {
		batch.Queue(step.sql, step.args...)
	}

	results := q.SendBatch(ctx, batch)
	for _, step := range steps {
		rows, err := results.Query()
		if err == nil {
			err = step.read(rows)
		}
		if err != nil {
			_ = results.Close() // the batch has failed already
			return nil, fmt.Errorf("read the catalogue's %s: %w", step.what, pg.Fault(err))
		}
	}

	if err := results.Close(); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", pg.Fault(err))
	}

	r.catalog.sortLinks()
	return r.catalog, nil
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// collect reads rows into T structs by column name.
func collect[T any](rows pgx.Rows) ([]T, error) {
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// reader builds a catalog. It holds object OIDs until the catalog is complete.
type reader struct {
	options Options
	catalog *Catalog

	relations map[uint32]*Relation      // exposed
	casts     map[uint32]representation // by domain
	columns   []column                  // exposed relations' columns, grouped by relation
	views     map[uint32][]attribute    // origins of a view's columns, in column order

	harmless      map[uint32]bool // functions that run no user code and do not change the session
	hasExtensions bool            // any expression can run user code
	codeInReads   map[uint32]bool // relations that run user code on reads
	codeInWrites  map[uint32]bool // on writes only
	codeInTypes   map[uint32]bool // when a value is shown or read
}

// column is an exposed relation's column.
type column struct {
	attribute
	name string
}

// attribute is a column of any relation in the database.
type attribute struct {
	relation uint32
	number   int16 // from 1; 0 means no column
}

// relationCondition selects the catalog's relations.
const relationCondition = `c.relkind in ('r', 'v', 'm', 'f', 'p') and not c.relispartition ` +
	`and n.nspname = any (@schemas)`

const selectComments = `
		select n.nspname as schema, d.description as comment
		from pg_catalog.pg_namespace n
		join pg_catalog.pg_description d on d.objoid = n.oid and d.objsubid = 0
			and d.classoid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
		where n.nspname = any (@schemas)`

func (r *reader) readComments(read pgx.Rows) error {
	type row struct{ Schema, Comment string }
	rows, err := collect[row](read)
	for _, row := range rows {
		r.catalog.Comments[row.Schema] = row.Comment
	}

	return err
}

// Bits that pg_relation_is_updatable returns.
const (
	updatable  = 1 << 2
	insertable = 1 << 3
	deletable  = 1 << 4
)

// selectRelations returns the possible writes as bits; 28 is all. It queries views and foreign
// tables only, except foreign tables without a handler: a query for one of them would fail the
// whole statement.
const selectRelations = `
		select c.oid as id, n.nspname as schema, c.relname as name, c.relkind as kind,
			coalesce(d.description, '') as description,
			case when c.relkind in ('r', 'p') then 28
				when c.relkind = 'v' or w.fdwhandler <> 0 then pg_catalog.pg_relation_is_updatable(c.oid, true)
				else 0 end as writes,
			c.relkind = 'p' or c.relkind = 'r' and not c.relhassubclass as constrained,
			c.relhasrules or exists (select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal) as write_runs,
			c.reltype in (select p.proargtypes[0] from pg_catalog.pg_proc p where p.pronargs = 1 and p.provolatile = 'v')
				or exists (
					select from pg_catalog.pg_policy o
					join pg_catalog.pg_depend u on u.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass and u.objid = o.oid
					join pg_catalog.pg_proc p on u.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = u.refobjid
					where o.polrelid = c.oid and p.provolatile = 'v')
				or exists (
					select from pg_catalog.pg_rewrite w
					join pg_catalog.pg_depend u on u.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and u.objid = w.oid
					join pg_catalog.pg_proc p on u.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = u.refobjid
					where w.ev_class = c.oid and p.provolatile = 'v') as read_runs
		from pg_catalog.pg_class c
		join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		left join pg_catalog.pg_description d on d.objoid = c.oid and d.objsubid = 0
			and d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
		left join pg_catalog.pg_foreign_table f on f.ftrelid = c.oid
		left join pg_catalog.pg_foreign_server s on s.oid = f.ftserver
		left join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
		where ` + relationCondition

func (r *reader) readRelations(read pgx.Rows) error {
	type row struct {
		ID                        uint32
		Schema, Name, Description string
		Kind                      byte
		Writes                    int32
		Constrained               bool
		ReadRuns, WriteRuns       bool
	}

	rows, err := collect[row](read)
	for _, row := range rows {
		relation := &Relation{
			Name: Name{row.Schema, row.Name}, Description: row.Description,
			Kind: row.Kind, ByName: map[string]*Column{},
			Insertable: row.Writes&insertable != 0,
			Updatable:  row.Writes&updatable != 0, Deletable: row.Writes&deletable != 0,
			Constrained: row.Constrained, ReadRunsUserCode: row.ReadRuns,
		}

		r.relations[row.ID], r.codeInWrites[row.ID] = relation, row.WriteRuns
		r.catalog.Relations[relation.Name] = relation
	}

	return err
}

const selectGeoJSON = `
		select n.nspname as schema, p.proname as name
		from pg_catalog.pg_proc p
		join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		where p.proname = 'st_asgeojson' and p.proargtypes[0] = 'pg_catalog.record'::pg_catalog.regtype
		order by n.nspname`

func (r *reader) readGeoJSON(read pgx.Rows) error {
	names, err := collect[Name](read)
	if len(names) > 0 {
		r.catalog.GeoJSON = names[0]
	}

	return err
}
