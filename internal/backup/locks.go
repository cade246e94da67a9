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

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// A snapshot shows a table's rows only until the table is replaced: after TRUNCATE, a rewrite, or
// renaming another table to its name, the snapshot shows an empty or wrong table. A backup
// therefore locks all tables first and takes the snapshot afterwards. It then checks that the
// snapshot shows exactly these tables, each in the file that the server reads now. It holds the
// locks until the dump is complete.
//
// Schemas and sequences cannot be locked. Their versions are compared when the dump is complete.

const (
	// maxLockAttempts limits the immediate attempts to lock the tables. No attempt waits: waiting
	// for one table while holding others can deadlock with a user's transaction, which PostgreSQL
	// might then abort.
	maxLockAttempts  = 6
	firstRelockDelay = 50 * time.Millisecond // doubles with each attempt

	// dumpLockTimeout limits how long pg_dump waits for a lock. All tables are already locked for
	// reading, so it waits only behind a change that waits for the backup itself and blocks
	// everyone else. It is a statement timeout, and the statement may lock all tables in a large
	// database. The last attempt therefore has a longer timeout.
	dumpLockTimeout     = time.Second
	lastDumpLockTimeout = 10 * time.Second

	// indexLockTimeout limits how long the row count waits for an index that is being replaced.
	indexLockTimeout = "30s"

	locksPerRoundTrip = 500 // tables locked in one round trip
)

// dumpable selects the tables that pg_dump locks.
const dumpable = `
	from pg_catalog.pg_class c
	join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where c.relkind in ('r', 'p') and c.relpersistence <> 't'
		and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`

// session runs f on a connection with the dump login. The connection may be idle while pg_dump
// works.
func (s *Service) session(ctx context.Context, project uuid.UUID, f func(*pgx.Conn) error) error {
	conn, err := s.projects.Open(project).ConnectDump(ctx)
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

// beginLocked begins a transaction during which no table can be replaced. It returns a
// *collisionError if other transactions prevent that.
func beginLocked(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	pause := firstRelockDelay
	for try := 1; ; try++ {
		tx, err := lockTables(ctx, conn)
		if _, ok := errors.AsType[*collisionError](err); !ok || try == maxLockAttempts {
			return tx, err
		}

		if err := tick.Pause(ctx, pause); err != nil {
			return nil, err
		}

		pause *= 2
	}
}

// lockTables begins a transaction, locks all tables that pg_dump locks, and checks that the
// transaction's snapshot has no others. LOCK takes no snapshot, so the first query takes it.
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

	for batch := range slices.Chunk(tables, locksPerRoundTrip) {
		var sql strings.Builder
		for _, t := range batch {
			sql.WriteString("lock table only " + pg.Quote(t.Schema, t.Name) + " in access share mode nowait;")
		}

		results := conn.PgConn().Exec(ctx, sql.String())
		count := 0
		for results.NextResult() {
			if _, err := results.ResultReader().Close(); err == nil {
				count++
			}
		}

		if err := results.Close(); err != nil {
			culprit := batch[min(count, len(batch)-1)]
			return nil, asCollision(fmt.Sprintf("the table %s.%s", culprit.Schema, culprit.Name), err)
		}
	}

	return tx, checkLocked(ctx, tx)
}

// checkLocked fails with a *collisionError unless the transaction holds a lock on every table in
// its snapshot and reads each from the file that the snapshot names. It compares the snapshot's
// catalog with the server's current one. So it also detects rows lost from the snapshot, which a
// row count under the snapshot cannot.
func checkLocked(ctx context.Context, tx pgx.Tx) error {
	names, err := pg.Values[string](ctx, tx, `
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

	if len(names) > 0 {
		return changeCollision(names[0], errors.New("the table in the snapshot is not the locked one"))
	}

	return nil
}

// lockless is a schema or a sequence. Its version changes when it is renamed, moved or altered.
type lockless struct {
	Kind, Name string
	OID        uint32
	Version    string
}

// locklessObjects returns a database's schemas and sequences.
func locklessObjects(ctx context.Context, q pg.Querier) ([]lockless, error) {
	return pg.All[lockless](ctx, q, `
		select 'schema' as kind, n.nspname as name, n.oid, n.xmin::text as version
		from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
		union all
		select 'sequence', pg_catalog.format('%s.%s', n.nspname, c.relname), c.oid, c.xmin::text
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'S' and c.relpersistence <> 't'`)
}

// checkLockless fails with a *collisionError if a schema or sequence was changed, or if another has
// taken its name. Dropping one does no harm: pg_dump read it earlier, or failed.
func checkLockless(ctx context.Context, q pg.Querier, previous []lockless) error {
	current, err := locklessObjects(ctx, q)
	if err != nil {
		return err
	}

	type name struct{ kind, name string }
	byOID, byName := map[uint32]lockless{}, map[name]lockless{}
	for _, u := range current {
		byOID[u.OID], byName[name{u.Kind, u.Name}] = u, u
	}

	for _, was := range previous {
		now, ok := byOID[was.OID]
		if !ok {
			now, ok = byName[name{was.Kind, was.Name}]
		}

		if ok && now != was {
			return changeCollision("the "+was.Kind+" "+was.Name, errors.New("changed during the dump"))
		}
	}

	return nil
}
