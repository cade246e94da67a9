package schema

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Index is a table index.
type Index struct {
	Name             string   `json:"name"`
	Columns          []string `json:"columns" nullable:"false" doc:"In the order of the index, without expressions."`
	Keys             []string `json:"keys" nullable:"false" doc:"Columns and expressions, in the order of the index, as the database prints them."`
	Include          []string `json:"include" nullable:"false" doc:"Columns stored in the index that are not keys."`
	Where            *string  `json:"where" nullable:"true" doc:"Condition of a partial index, as the database prints it; null for all rows."`
	Unique           bool     `json:"unique"`
	NullsNotDistinct bool     `json:"nullsNotDistinct" doc:"For unique: nulls are equal to each other."`
	Primary          bool     `json:"primary"`
	Constraint       bool     `json:"constraint" doc:"The index belongs to a constraint and is deleted with it."`
	Method           string   `json:"method" example:"btree"`
	Definition       string   `json:"definition" doc:"As the database prints it; empty until the index exists."`
	Status           string   `json:"status" enum:"building,ready,failed"`
	Error            string   `json:"error" doc:"Reason of the failure; empty unless the status is failed."`
}

// NewIndex describes an index to create. An empty method means btree.
type NewIndex struct {
	Name             string     `json:"name,omitempty" doc:"1 to 63 letters, digits or _, not starting with a digit. The default is derived from the names of the table and the columns."`
	Columns          []string   `json:"columns,omitempty" minItems:"1" maxItems:"32" doc:"Key columns; use keys instead for expressions and options."`
	Keys             []IndexKey `json:"keys,omitempty" minItems:"1" maxItems:"32"`
	Include          []string   `json:"include,omitempty" maxItems:"31" doc:"Additional columns to store in the index, for index-only scans."`
	Where            string     `json:"where,omitempty" maxLength:"10000" doc:"An SQL condition on one row: the index contains only rows that satisfy it."`
	Unique           bool       `json:"unique,omitempty"`
	NullsNotDistinct bool       `json:"nulls_not_distinct,omitempty" doc:"For unique: allow at most one null."`
	Method           string     `json:"method,omitempty" enum:"btree,hash,gin,gist,brin" doc:"The default is btree."`
}

// Tables above these limits are large: their indexes are built concurrently with writes.
const (
	largeTableRows  = 100_000
	largeTableBytes = 64 << 20
)

// relationNameIndex is pg_class's unique index on names, which concurrent creations with one name
// violate.
const relationNameIndex = "pg_class_relname_nsp_index"

const selectIndexes = `
	select x.relname as name, i.indisunique as unique, i.indisprimary as primary, m.amname as method,
		array(select a.attname::text from pg_catalog.unnest(i.indkey::int2[]) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = n.number
			where n.at <= i.indnkeyatts order by n.at) as columns,
		array(select coalesce(pg_catalog.pg_get_indexdef(i.indexrelid, n, true), '') from pg_catalog.generate_series(1, i.indnkeyatts) n order by n) as keys,
		array(select a.attname::text from pg_catalog.unnest(i.indkey::int2[]) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = n.number
			where n.at > i.indnkeyatts order by n.at) as include,
		pg_catalog.pg_get_expr(i.indpred, i.indrelid) as "where", i.indnullsnotdistinct as nulls_not_distinct,
		exists (select from pg_catalog.pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')) as constraint,
		coalesce(pg_catalog.pg_get_indexdef(i.indexrelid), '') as definition, -- null if dropped concurrently
		case when i.indisvalid then 'ready'
			when exists (select from pg_catalog.pg_stat_progress_create_index b where b.index_relid = i.indexrelid) then 'building'
			else 'failed' end as status, '' as error
	from pg_catalog.pg_index i
	join pg_catalog.pg_class x on x.oid = i.indexrelid
	join pg_catalog.pg_am m on m.oid = x.relam
	where i.indrelid = @table
	order by x.relname`

// ListIndexes returns a table's indexes by name.
func ListIndexes(ctx context.Context, q pg.Querier, table uint32) ([]Index, error) {
	return pg.All[Index](ctx, q, selectIndexes, pgx.StrictNamedArgs{"table": table})
}

func indexByName(ctx context.Context, q pg.Querier, table uint32, name string) (Index, error) {
	all, err := ListIndexes(ctx, q, table)
	if err != nil {
		return Index{}, err
	}

	i := slices.IndexFunc(all, func(x Index) bool { return x.Name == name })
	if i < 0 {
		return Index{}, fault.New(fault.NotFound, "there is no such index")
	}

	return all[i], nil
}

// CreateIndex creates an index on a table. If the table is large, CreateIndex only tries the index
// on an empty table and returns it with status building; later is then the input of [BuildIndex].
// It fails as [GetTable] does, with Conflict on name if the name is taken, with Conflict, code
// busy, if the table is locked, and with Unprocessable on the field at fault.
func CreateIndex(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, n NewIndex,
) (index Index, later *IndexBuild, err error) {
	err = changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		if err := lockInMode(ctx, tx, t, "access share"); err != nil {
			return err
		}

		if n.Name != "" {
			if err := checkName(fault.Unprocessable, "name", n.Name); err != nil {
				return err
			}
		}

		n := n.withDefaults(t)

		large, err := isLarge(ctx, tx, t)
		if err != nil {
			return err
		}

		err = withSearchPath(ctx, tx, t.Schema, func() error {
			if err := n.validate(ctx, tx, t); err != nil {
				return err
			}
			if large {
				return n.try(ctx, tx, t)
			}

			return n.make(ctx, tx, t)
		})
		if err != nil {
			return err
		}

		if large {
			index, later = n.Planned("building", ""), &IndexBuild{t.ID, n}
			return errTrial
		}

		index, err = indexByName(ctx, tx, t.ID, n.Name)
		return err
	})
	if errors.Is(err, errTrial) {
		err = nil
	}

	return index, later, err
}

// IndexBuild is an index to build on a table concurrently with writes.
type IndexBuild struct {
	Table uint32
	Index NewIndex
}

// errTrial rolls back an index trial.
var errTrial = errors.New("the index is built later")

// withDefaults returns the index with default name and method.
func (n NewIndex) withDefaults(t Table) NewIndex {
	if n.Name == "" {
		n.Name = t.Name
		for _, k := range n.allKeys() {
			n.Name += "_" + cmp.Or(k.Column, "expr")
		}

		n.Name = strings.ToValidUTF8(n.Name[:min(len(n.Name), 59)], "") + "_idx"
	}

	if n.Method == "" {
		n.Method = "btree"
	}

	return n
}

// make creates the index.
func (n NewIndex) make(ctx context.Context, tx pgx.Tx, t Table) error {
	if err := lockInMode(ctx, tx, t, "share"); err != nil {
		return err
	}

	err := execute(ctx, tx, n.statement("", pg.Quote(t.Schema, t.Name)))
	if pg.Violates(err, relationNameIndex) {
		return indexNameTaken().WithCause(err)
	}

	return translate(err, n.explain)
}

// statement returns the SQL that creates the index. Columns exist in the table, methods come from
// the API's closed list, and expressions are checked.
func (n NewIndex) statement(way, table string) string {
	kind := "create index "
	if n.Unique {
		kind = "create unique index "
	}

	keys := make([]string, 0, 32)
	for _, k := range n.allKeys() {
		keys = append(keys, k.sql())
	}

	sql := kind + way + pg.Quote(n.Name) + " on " + table + " using " + n.Method + " (" + strings.Join(keys, ", ") + ")"
	if len(n.Include) > 0 {
		sql += " include (" + quoted(n.Include) + ")"
	}
	if n.NullsNotDistinct {
		sql += " nulls not distinct"
	}
	if n.Where != "" {
		sql += " where (" + n.Where + ")"
	}

	return sql
}

func isLarge(ctx context.Context, tx pgx.Tx, t Table) (bool, error) {
	return pg.Value[bool](ctx, tx, `
		select c.relkind = 'r' and (c.reltuples > @rows or pg_catalog.pg_relation_size(c.oid) > @bytes)
		from pg_catalog.pg_class c where c.oid = @table`,
		pgx.StrictNamedArgs{"table": t.ID, "rows": float32(largeTableRows), "bytes": int64(largeTableBytes)})
}

// try creates the index on an empty table, to report errors now instead of during the build.
func (n NewIndex) try(ctx context.Context, tx pgx.Tx, t Table) error {
	if err := CheckIndexName(ctx, tx, t.ID, n.Name); err != nil {
		return err
	}
	if err := execute(ctx, tx,
		"create temporary table socle_trial (like "+pg.Quote(t.Schema, t.Name)+") on commit drop"); err != nil {
		return translate(err, nil)
	}

	return translate(execute(ctx, tx, n.statement("", "pg_temp.socle_trial")), n.explain)
}

// CheckIndexName fails with Conflict on name if a table's schema has a relation with that name.
func CheckIndexName(ctx context.Context, q pg.Querier, table uint32, name string) error {
	exists, err := pg.Value[bool](ctx, q, `
		select exists (select from pg_catalog.pg_class c join pg_catalog.pg_class t on t.relnamespace = c.relnamespace
			where t.oid = @table and c.relname = @name)`, pgx.StrictNamedArgs{"table": table, "name": name})
	if err == nil && exists {
		return indexNameTaken()
	}

	return err
}

// BuildIndex builds an index concurrently with writes, without a time limit. It drops invalid
// remains from earlier attempts, and its own if it fails. An existing valid index is a success. It
// fails with NotFound for an unknown table, and as [CreateIndex] does.
func BuildIndex(ctx context.Context, owner *pgxpool.Pool, table uint32, n NewIndex) error {
	conn, err := pg.Acquire(ctx, owner)
	if err != nil {
		return err
	}
	defer conn.Release()

	// Set for the session, since the statement can't run in a transaction; the pool resets the
	// session afterwards.
	if _, err := pg.Exec(ctx, conn, strings.NewReplacer("true", "false", "'5s'", "'15min'").
		Replace(sessionSettings)); err != nil {
		return err
	}

	t, err := tableByID(ctx, conn, table)
	if err != nil {
		return err
	}

	if valid, err := dropInvalid(ctx, conn, t, n.Name); valid || err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, conn, `select pg_catalog.set_config('search_path', @path, false)`,
		pgx.StrictNamedArgs{"path": searchPath(t.Schema)}); err != nil {
		return err
	}

	buildErr := executeOn(ctx, conn, n.statement("concurrently ", pg.Quote(t.Schema, t.Name)))
	if buildErr == nil {
		return nil
	}

	if _, err := dropInvalid(context.WithoutCancel(ctx), conn, t, n.Name); err != nil && !conn.Conn().IsClosed() {
		return pg.Fault(err)
	}

	return pg.Fault(translate(buildErr, n.explain))
}

// dropInvalid drops the index if it is invalid, and reports whether it exists and is valid.
func dropInvalid(ctx context.Context, conn *pgxpool.Conn, t Table, name string) (valid bool, err error) {
	x, err := indexByName(ctx, conn, t.ID, name)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err != nil:
		return false, err
	case x.Status == "ready":
		return true, nil
	}

	return false, executeOn(ctx, conn, "drop index concurrently "+pg.Quote(t.Schema, name))
}

// executeOn is [execute] outside a transaction.
func executeOn(ctx context.Context, conn *pgxpool.Conn, sql string) error {
	_, err := conn.Conn().PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}

// DeleteIndex drops an index. It fails as [GetTable] does, with NotFound for an unknown index, with
// Conflict, code in_use, if the index belongs to a constraint or other objects depend on it, and
// with Conflict, code busy, if the table is locked.
func DeleteIndex(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string) (Index, error) {
	var index Index
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		if index, err = indexByName(ctx, tx, t.ID, name); err != nil {
			return err
		}

		if index.Constraint {
			return fault.New(fault.Conflict, "the index belongs to a constraint: delete the constraint").
				WithCode("in_use")
		}

		id, err := pg.Value[uint32](ctx, tx, `
			select i.indexrelid from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid
			where i.indrelid = @table and x.relname = @name`, pgx.StrictNamedArgs{"table": t.ID, "name": name})
		if err != nil {
			return err
		}

		_, err = drop(ctx, tx, "drop index "+pg.Quote(t.Schema, name), object{"pg_class", id, 0}, false)
		return err
	})

	return index, err
}
