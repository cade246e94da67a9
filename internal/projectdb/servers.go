package projectdb

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// Several servers share a project's database, and one of them swaps it. The swapping server takes
// an exclusive advisory lock and notifies the others. Each of them closes the gates, drains
// connections and then waits for the same lock in shared mode. The waiting tells the swapping
// server that they are done. Obtaining the lock tells them that the swap is over or the server is
// dead.
const (
	swapChannel = "socle_swap"

	// swapLock is the first half of these lock keys, an arbitrary constant for this package. The
	// second half is the project's, or 0 for the lock that each listening server shares.
	swapLock = 0x50c1e

	peersTimeout    = drainTimeout + time.Second // for the other servers to drain
	peersInterval   = 5 * time.Millisecond
	blockRetryDelay = 100 * time.Millisecond // after a lost connection

	onlyServerTimeout  = time.Second // for PostgreSQL to notice lost connections
	onlyServerInterval = 100 * time.Millisecond
)

// swapKey returns the second half of a project's lock key. On a collision one project waits briefly
// for the other.
func swapKey(project uuid.UUID) int32 {
	return int32(binary.BigEndian.Uint32(project[8:])>>1 | 1) // from the random bits; never 0
}

// Subscribe makes the registry follow database swaps on other servers. Call it once, before the
// registry is used. onSwap is called for each project whose database is swapped by any server,
// while the old database accepts no connections and the new one does not yet.
func (r *Registry) Subscribe(l *pg.Listener, onSwap func(project uuid.UUID)) {
	r.listener, r.onSwap = l, onSwap

	l.Handle(swapChannel, func(payload string) {
		server, project, _ := strings.Cut(payload, " ")
		if id, err := uuid.Parse(project); err == nil && server != r.id.String() {
			r.blockWhileLocked(swapKey(id))
		}
	})

	l.OnConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := pg.Exec(ctx, conn, `select pg_advisory_lock_shared($1, 0)`, swapLock); err != nil {
			return err
		}

		lockedKeys, err := pg.Values[int32](ctx, conn, `
			select l.objid::bigint::int from pg_locks l
			where l.locktype = 'advisory' and l.classid = $1 and l.objid <> 0 and l.objsubid = 2 and l.granted and l.mode = 'ExclusiveLock'
			  and l.database = (select oid from pg_database where datname = current_database())`, swapLock)
		if err != nil {
			return err
		}

		// Notifications were missed while disconnected.
		for _, p := range r.openProjects() {
			p.resetPools()
			onSwap(p.UUID)
		}

		for _, key := range lockedKeys {
			r.blockWhileLocked(key)
		}

		return nil
	})
}

// HoldRequests makes new requests to a project wait, here and on the servers that listen, and waits
// for those in flight. The caller must hold the project's lock; release lets the requests continue.
func (r *Registry) HoldRequests(ctx context.Context, project uuid.UUID) (release func(), err error) {
	key := swapKey(project)

	conn, err := pgx.ConnectConfig(ctx, r.Platform().PlatformConfig())
	if err != nil {
		return nil, pg.Fault(err)
	}

	unlock := func() { _ = conn.Close(context.WithoutCancel(ctx)) } // releases the lock
	if _, err := pg.Exec(ctx, conn, `select pg_advisory_lock($1, $2)`, swapLock, key); err != nil {
		unlock()
		return nil, err
	}

	p := r.Open(project)
	r.closeGates(key)

	release = func() {
		r.openGates(key)
		unlock()
	}

	if _, err := pg.Exec(ctx, conn, `select pg_notify($1, $2)`, swapChannel,
		r.id.String()+" "+project.String()); err != nil {
		release()
		return nil, err
	}

	drainCtx, cancel := context.WithTimeout(ctx, peersTimeout)
	defer cancel()

	p.drain(drainCtx)
	if err := r.awaitPeers(drainCtx, conn, key); err != nil {
		r.log.Warn("not all servers blocked requests before a database swap", "project", project, "error", err)
	}

	return release, nil
}

// awaitPeers returns when all other servers wait for the lock with key.
func (r *Registry) awaitPeers(ctx context.Context, conn *pgx.Conn, key int32) error {
	var pid uint32
	if r.listener != nil {
		pid = r.listener.PID()
	}

	for range tick.Poll(ctx, peersInterval) {
		pending, err := pg.Value[bool](ctx, conn, `
			select count(*) filter (where l.objid = 0 and l.pid <> $3) > count(*) filter (where l.objid <> 0)
			from pg_locks l
			where l.locktype = 'advisory' and l.classid = $1 and l.objid in (0, $2::bigint::oid) and l.objsubid = 2 and l.granted = (l.objid = 0)
			  and l.database = (select oid from pg_database where datname = current_database())`, swapLock,
			int64(key), int64(pid))
		if err != nil || !pending {
			return err
		}
	}

	return ctx.Err()
}

// blockWhileLocked closes the gates for all projects with key until another server releases the
// lock. It does not block.
func (r *Registry) blockWhileLocked(key int32) {
	if !r.closeGates(key) {
		return
	}

	go func() {
		for _, p := range r.withKey(key) {
			p.resetPools()
			p.drain(context.Background())
		}

		for r.awaitUnlock(key) != nil {
			select {
			case <-r.done:
				r.openGates(key)
				return
			case <-time.After(blockRetryDelay):
			}
		}
	}()
}

// awaitUnlock waits for the lock with key, opens the gates and releases the lock. The next server
// that swaps gets it only then.
func (r *Registry) awaitUnlock(key int32) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	go func() {
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
	}()

	return r.Platform().WithConn(ctx, func(conn *pgx.Conn) error {
		_, err := pg.Exec(ctx, conn, `select pg_advisory_lock_shared($1, $2)`, swapLock, key)
		if err == nil {
			r.openGates(key)
		}

		return err
	})
}

// closeGates closes the gates for the projects with key, including projects opened later. It
// reports whether they were open.
func (r *Registry) closeGates(key int32) bool {
	r.mu.Lock()
	isClosed := r.swapping[key]
	r.swapping[key] = true
	r.mu.Unlock()

	if isClosed {
		return false
	}

	for _, p := range r.withKey(key) {
		p.gate.close()
		p.endSessions(errReplaced)

		if r.onSwap != nil {
			r.onSwap(p.UUID)
		}
	}

	return true
}

// openGates opens the gates that closeGates closed. Pooled connections lead to the old database and
// are closed.
func (r *Registry) openGates(key int32) {
	for _, p := range r.withKey(key) {
		p.resetPools()
	}

	r.mu.Lock()
	delete(r.swapping, key)
	r.mu.Unlock()

	for _, p := range r.withKey(key) {
		p.gate.open()
	}
}

// withKey returns the open projects with key.
func (r *Registry) withKey(key int32) (projects []*Project) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for id, p := range r.projects {
		if swapKey(id) == key {
			projects = append(projects, p)
		}
	}

	return projects
}

// isOnlyServer reports whether no other server of the install is running. Each server holds a
// shared lock as long as it listens, see [Registry.Subscribe].
func isOnlyServer(ctx context.Context, platform *pgxpool.Pool) (only bool, err error) {
	conn, err := pg.Acquire(ctx, platform)
	if err != nil {
		return false, err
	}
	defer conn.Release()

	for deadline := time.Now().Add(onlyServerTimeout); ; {
		only, err = pg.Value[bool](ctx, conn, `select pg_try_advisory_lock($1, 0)`, swapLock)
		if err != nil || only || time.Now().After(deadline) {
			break
		}

		if err := tick.Pause(ctx, onlyServerInterval); err != nil {
			return false, err
		}
	}

	if only {
		_, err = pg.Exec(ctx, conn, `select pg_advisory_unlock($1, 0)`, swapLock)
	}

	return only, err
}
