package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// A snapshot shows a table's rows only as long as nobody replaces the table: TRUNCATE, a rewrite, or another table of its
// name leave it empty, or wrong, in the snapshot. So a backup locks all tables first, takes the snapshot afterwards, and
// checks that the snapshot shows no table but those, each in the very file that the server reads now. It keeps the
// locks until the dump is complete.
//
// A schema, and a sequence, can't be locked. Their versions are compared when the dump is complete.

const (
	// relockTries is how often the locks are tried at once. No try waits for a lock: who waits for one table
	// while it holds others can deadlock with a user's transaction, and PostgreSQL might end that one.
	relockTries      = 6
	firstRelockPause = 50 * time.Millisecond // doubled after each try

	// dumpLockTimeout bounds how long pg_dump waits for a lock. All tables are locked for reading before, so it waits
	// only behind a change that waits for the backup itself, and that everyone else waits behind. The time is that of a
	// statement, which may lock all tables of a large database, so the last try allows for more.
	dumpLockTimeout     = time.Second
	lastDumpLockTimeout = 10 * time.Second

	// indexLockTimeout bounds how long counting rows waits for an index that is being replaced.
	indexLockTimeout = "30s"

	lockChunk = 500 // tables locked in one round trip
)

// dumpable selects the tables that pg_dump locks.
const dumpable = `
	from pg_catalog.pg_class c
	join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where c.relkind in ('r', 'p') and c.relpersistence <> 't'
		and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`

// session runs f on a connection of the login that makes dumps. The connection may be idle while pg_dump works.
func (m *Maker) session(ctx context.Context, project uuid.UUID, f func(*pgx.Conn) error) error {
	conn, err := m.Projects.ConnectDump(ctx, project)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	const patient = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0"
	if _, err := conn.PgConn().Exec(ctx, patient).ReadAll(); err != nil {
		return pg.Fault(err)
	}

	return f(conn)
}

// freeze begins a transaction in which no table of the database can be replaced. It returns a *collisionError if other
// transactions prevent that.
func freeze(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	pause := firstRelockPause
	for try := 1; ; try++ {
		tx, err := lockTables(ctx, conn)
		if _, met := errors.AsType[*collisionError](err); !met || try == relockTries {
			return tx, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}

		pause *= 2
	}
}

// lockTables begins a transaction, locks all tables that pg_dump locks, and checks that the transaction's snapshot has no
// others. LOCK takes no snapshot, so the first query takes it.
func lockTables(ctx context.Context, conn *pgx.Conn) (_ pgx.Tx, err error) {
	type table struct{ Schema, Name string }
	tables, err := pg.All[table](ctx, conn, `select n.nspname as schema, c.relname as name`+dumpable+` order by 1, 2`)
	if err != nil {
		return nil, err
	}

	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, pg.Fault(err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()

	for some := range slices.Chunk(tables, lockChunk) {
		var sql strings.Builder
		for _, t := range some {
			sql.WriteString("lock table only " + pg.Quote(t.Schema, t.Name) + " in access share mode nowait;")
		}

		results := conn.PgConn().Exec(ctx, sql.String())
		locked := 0
		for results.NextResult() {
			if _, err := results.ResultReader().Close(); err == nil {
				locked++
			}
		}

		if err := results.Close(); err != nil {
			failed := some[min(locked, len(some)-1)]
			return nil, collisionOf(fmt.Sprintf("the table %s.%s", failed.Schema, failed.Name), err)
		}
	}

	return tx, checkFrozen(ctx, tx)
}

// checkFrozen fails with a *collisionError unless the transaction holds a lock on every table that its snapshot shows,
// and reads each from the file that the snapshot names. It compares the snapshot's catalogue with the server's current
// one, so it sees what a count of rows under the snapshot can't: rows that the snapshot has lost.
func checkFrozen(ctx context.Context, tx pgx.Tx) error {
	loose, err := pg.Values[string](ctx, tx, `
		with held as (
			select distinct l.relation from pg_catalog.pg_locks l
			where l.locktype = 'relation' and l.pid = pg_catalog.pg_backend_pid() and l.granted
				and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
		)
		select pg_catalog.format('the table %s.%s', t.nspname, t.relname)
		from (select c.oid, n.nspname, c.relname, c.relfilenode`+dumpable+`) t
		left join held h on h.relation = t.oid
		where h.relation is null or pg_catalog.pg_relation_filenode(t.oid) is distinct from nullif(t.relfilenode, 0)
		limit 1`)
	if err != nil {
		return err
	}

	if len(loose) > 0 {
		return replacedAt(loose[0], errors.New("the snapshot shows another table than was locked"))
	}

	return nil
}

// unlockable is a schema or a sequence. Its version changes when it is renamed, moved or altered.
type unlockable struct {
	Kind, Name string
	OID        uint32
	Version    string
}

// unlockables returns the schemas and sequences of a database.
func unlockables(ctx context.Context, q pg.Querier) ([]unlockable, error) {
	return pg.All[unlockable](ctx, q, `
		select 'schema' as kind, n.nspname as name, n.oid, n.xmin::text as version
		from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
		union all
		select 'sequence', pg_catalog.format('%s.%s', n.nspname, c.relname), c.oid, c.xmin::text
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'S' and c.relpersistence <> 't'`)
}

// checkUnlocked fails with a *collisionError if one of the schemas and sequences was changed, or another has its name. One
// that was dropped does no harm: pg_dump read it before, or failed.
func checkUnlocked(ctx context.Context, q pg.Querier, before []unlockable) error {
	after, err := unlockables(ctx, q)
	if err != nil {
		return err
	}

	type name struct{ kind, name string }
	byOID, byName := map[uint32]unlockable{}, map[name]unlockable{}
	for _, u := range after {
		byOID[u.OID], byName[name{u.Kind, u.Name}] = u, u
	}

	for _, was := range before {
		now, there := byOID[was.OID]
		if !there {
			now, there = byName[name{was.Kind, was.Name}]
		}

		if there && now != was {
			return replacedAt("the "+was.Kind+" "+was.Name, errors.New("it was changed while the dump was made"))
		}
	}

	return nil
}
