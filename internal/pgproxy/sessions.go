package pgproxy

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// A killed server can't record the ends of sessions. Each session therefore has a row while it is
// open, and each server holds an advisory lock on the listening connection. RecordLost records the
// ends for sessions whose server has lost that lock.

// serverLockKey is the key for @server's advisory lock.
const serverLockKey = `hashtextextended('database sessions ' || @server::text, 0)`

// missingSessions are the sessions whose server did not hold the lock in the previous round.
type missingSessions struct {
	mu       sync.Mutex
	sessions map[uuid.UUID]bool
}

// holdServerLock holds this server's lock as long as conn.
func (p *Proxy) holdServerLock(ctx context.Context, conn *pgx.Conn) error {
	_, err := pg.Exec(ctx, conn, `select pg_advisory_lock_shared(`+serverLockKey+`)`,
		pgx.StrictNamedArgs{"server": p.server.String()})
	return err
}

// recordBegin records a session's begin in the audit log and returns the row's UUID.
func (p *Proxy) recordBegin(c Client) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(p.shared(c.Project), auditTimeout)
	defer cancel()

	id := uuid.New()
	ctx = audit.Begin(ctx, p.AuditKey, c.entry("connectDatabase"))

	return id, p.Platform.InTx(ctx, func(tx *platform.DB) error {
		_, err := pg.Exec(ctx, tx.Querier(), `
			insert into platform.database_sessions (uuid, server, entry) values (@id, @server, @entry)`,
			pgx.StrictNamedArgs{"id": id, "server": p.server, "entry": c.entry(audit.DisconnectDatabase)})
		return err
	})
}

// recordEnd records a session's end in the audit log, unless another server has done so.
func (p *Proxy) recordEnd(ctx context.Context, id uuid.UUID, e audit.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()

	ctx = audit.Begin(ctx, p.AuditKey, e)
	err := p.Platform.InTx(ctx, func(tx *platform.DB) error {
		_, err := pg.Value[uuid.UUID](ctx, tx.Querier(), `
			delete from platform.database_sessions where uuid = @id returning uuid`, pgx.StrictNamedArgs{"id": id})
		return err
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	return err
}

// RecordLost records the ends for sessions whose server is gone, without their bytes. A server has
// to be gone in two consecutive rounds, since a connection can break while the server lives.
func (p *Proxy) RecordLost(ctx context.Context) error {
	p.missing.mu.Lock()
	defer p.missing.mu.Unlock()

	type session struct {
		UUID  uuid.UUID
		Entry audit.Entry
	}
	missing, err := pg.All[session](ctx, p.Platform.Querier(), `
		select s.uuid, s.entry
		from platform.database_sessions s
		where not exists (
			select from pg_locks l
			where l.locktype = 'advisory' and l.granted and l.objsubid = 1
			  and l.database = (select oid from pg_database where datname = current_database())
			  and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('database sessions ' || s.server::text, 0))
		order by s.opened_at
		limit 1000`)
	if err != nil {
		return err
	}

	var errs []error
	previous := p.missing.sessions
	p.missing.sessions = map[uuid.UUID]bool{}
	for _, s := range missing {
		if !previous[s.UUID] {
			p.missing.sessions[s.UUID] = true
			continue
		}

		errs = append(errs, p.recordEnd(ctx, s.UUID, s.Entry))
	}

	return errors.Join(errs...)
}

// entry returns an audit entry for the client.
func (c Client) entry(action string) audit.Entry {
	e := c.Entry
	e.Action, e.Project = action, c.Project.String()

	return e
}
