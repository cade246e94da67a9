package backup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// Times of a backup that meets a locked table.
const (
	lockWait  = "30s"            // for one lock, while all that was locked before is kept from those who want to change it
	watchLock = time.Second      // how soon it is seen that a backup waits
	patience  = 30 * time.Minute // from the first try to the last
	soonest   = 5 * time.Second  // until the next try
	latest    = 2 * time.Minute
)

// Later says that what was to be done is to be begun again after a time. Until then a backup keeps no table from anybody, and of one that is being proven nothing is known.
type Later struct {
	After time.Duration // 0: soon, and some times more, then not before the next round
	Err   error
}

// Error returns why.
func (l *Later) Error() string { return fmt.Sprintf("again after %v: %v", l.After, l.Err) }

// Unwrap returns the cause.
func (l *Later) Unwrap() error { return l.Err }

// locked reports whether a table was locked by someone else for too long. What pg_dump waits for a lock is to PostgreSQL the time of a statement, the
// only one that it limits.
func locked(err error) bool {
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return strings.Contains(err.Error(), "canceling statement due to statement timeout") || strings.Contains(err.Error(), "canceling statement due to lock timeout")
	}
	return pg.State(err) == "55P03" // lock_not_available
}

// postpone has a backup begun again later that met a locked table, unless that has been tried for long enough.
func (m *Maker) postpone(ctx context.Context, b platform.Backup, table string, because error) error {
	if table == "" {
		table = "a table"
	}
	tried, err := m.Store.PostponeBackup(ctx, b.UUID, waitsFor(table))
	if err != nil {
		return errors.Join(because, err)
	}
	if tried > patience {
		return fault.New(fault.Conflict, "%s was locked by another transaction, for %d minutes", table, int(patience.Minutes())).Because(because)
	}
	return &Later{min(max(tried/2, soonest), latest), because}
}

// waitsFor says in words for the user that a table is waited for, and named the other way round.
func waitsFor(table string) string { return table + waitsEnd }

const waitsEnd = ", which another transaction has locked"

// watch says what a backup waits for, as long as it does, until ctx ends. It returns what that was last.
func (m *Maker) watch(ctx context.Context, b platform.Backup) (table string) {
	table = strings.TrimSuffix(b.WaitingFor, waitsEnd)
	tick := time.NewTicker(watchLock)
	defer tick.Stop()
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return table
		case <-tick.C:
		}
		var err error
		if conn == nil {
			conn, err = m.Projects.ConnectDump(ctx, b.ProjectUUID)
		}
		var now []string
		if err == nil {
			now, err = pg.Values[string](ctx, conn, `
				select format('the table %I.%I', n.nspname, c.relname)
				from pg_catalog.pg_locks l
				join pg_catalog.pg_stat_activity a on a.pid = l.pid
				join pg_catalog.pg_class c on c.oid = l.relation
				join pg_catalog.pg_namespace n on n.oid = c.relnamespace
				where l.locktype = 'relation' and not l.granted and a.usename = current_user and a.datname = current_database()
					and clock_timestamp() - a.query_start > @wait::interval
				order by a.query_start limit 1`, pgx.StrictNamedArgs{"wait": watchLock})
		}
		waits := ""
		if len(now) > 0 {
			table = now[0]
			waits = waitsFor(table)
		}
		if err == nil {
			err = m.Store.BackupWaits(ctx, b.UUID, waits)
		}
		if err != nil && ctx.Err() == nil {
			m.Log.Warn("what a backup waits for can't be said", "backup", b.UUID, "error", err)
			return table
		}
	}
}
