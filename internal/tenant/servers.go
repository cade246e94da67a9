package tenant

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Several servers share a project's database, and one of them puts another database in its place. It holds a lock meanwhile that the others can see,
// and tells them. They close their gates, wait until nobody of theirs is inside, and then for the lock: by that it sees that they are done, and they see when it is, or
// that it is no more.
const (
	swapChannel = "socle_swap"

	// swapLock is the first half of the keys of these locks, an arbitrary constant of this package. The second is the project's, or
	// 0: each server that hears what is told shares that one.
	swapLock = 0x50c1e

	othersTime  = drainTime + time.Second // for the other servers
	othersEvery = 5 * time.Millisecond
	standAgain  = 100 * time.Millisecond
)

// swapKey returns the second half of the key of a project's lock. Two projects may have the same: then one waits for the other for a moment.
func swapKey(project uuid.UUID) int32 {
	return int32(binary.BigEndian.Uint32(project[8:])>>1 | 1) // of the random half; never 0
}

// Hear has the registry hear of the swaps of other servers. It is called before the registry is used, once. replaced is told of a project whose database becomes another
// one, by whichever server: when nobody gets a connection any more to the one before, and nobody yet to the one that comes.
func (r *Registry) Hear(l *pg.Listener, replaced func(project uuid.UUID)) {
	r.listener, r.replaced = l, replaced

	l.On(swapChannel, func(payload string) {
		server, project, _ := strings.Cut(payload, " ")
		if id, err := uuid.Parse(project); err == nil && server != r.id.String() {
			r.stand(swapKey(id))
		}
	})

	l.Catch(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := pg.Exec(ctx, conn, `select pg_advisory_lock_shared($1, 0)`, swapLock); err != nil {
			return err
		}

		under, err := pg.Values[int32](ctx, conn, `
			select l.objid::bigint::int from pg_locks l
			where l.locktype = 'advisory' and l.classid = $1 and l.objid <> 0 and l.objsubid = 2 and l.granted and l.mode = 'ExclusiveLock'
			  and l.database = (select oid from pg_database where datname = current_database())`, swapLock)
		if err != nil {
			return err
		}

		for _, p := range r.open() { // what was told meanwhile was not heard
			r.reset(p.UUID)
			replaced(p.UUID)
		}

		for _, key := range under {
			r.stand(key)
		}

		return nil
	})
}

// hold keeps everyone out of a project's database, here and on the servers that hear of it, and gives those who are inside the time to finish. The
// caller, who holds the project's lock, lets them in again by release.
func (r *Registry) hold(ctx context.Context, project uuid.UUID) (release func(), err error) {
	key := swapKey(project)

	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return nil, pg.Fault(err)
	}

	done := func() { _ = conn.Close(context.WithoutCancel(ctx)) } // and the lock is free
	if _, err := pg.Exec(ctx, conn, `select pg_advisory_lock($1, $2)`, swapLock, key); err != nil {
		done()
		return nil, err
	}

	p := r.Open(project)
	r.shut(key)

	release = func() {
		r.reopen(key)
		done()
	}

	if _, err := pg.Exec(ctx, conn, `select pg_notify($1, $2)`, swapChannel,
		r.id.String()+" "+project.String()); err != nil {
		release()
		return nil, err
	}

	patient, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()

	p.drain(patient)
	if err := r.awaitOthers(patient, conn, key); err != nil {
		r.log.Warn("not all servers wait while a project's database is replaced", "project", project, "error", err)
	}

	return release, nil
}

// awaitOthers returns when all other servers wait for the lock with a key.
func (r *Registry) awaitOthers(ctx context.Context, conn *pgx.Conn, key int32) error {
	var own uint32
	if r.listener != nil {
		own = r.listener.PID()
	}

	tick := time.NewTicker(othersEvery)
	defer tick.Stop()

	for {
		wait, err := pg.Value[bool](ctx, conn, `
			select count(*) filter (where l.objid = 0 and l.pid <> $3) > count(*) filter (where l.objid <> 0)
			from pg_locks l
			where l.locktype = 'advisory' and l.classid = $1 and l.objid in (0, $2::bigint::oid) and l.objsubid = 2 and l.granted = (l.objid = 0)
			  and l.database = (select oid from pg_database where datname = current_database())`, swapLock,
			int64(key), int64(own))
		if err != nil || !wait {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// stand keeps everyone here out of the databases of projects with a key for as long as another server has the lock. It does not wait.
func (r *Registry) stand(key int32) {
	if !r.shut(key) {
		return
	}

	go func() {
		for _, p := range r.withKey(key) {
			r.reset(p.UUID)
			p.drain(context.Background())
		}

		for r.passLock(key) != nil {
			select {
			case <-r.stopped:
				r.reopen(key)
				return
			case <-time.After(standAgain):
			}
		}
	}()
}

// passLock waits until nobody has the lock with a key, and opens the gates. The next one who wants it gets it when that is done.
func (r *Registry) passLock(key int32) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	go func() {
		select {
		case <-r.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()

	return r.admin(ctx, func(conn *pgx.Conn) error {
		_, err := pg.Exec(ctx, conn, `select pg_advisory_lock_shared($1, $2)`, swapLock, key)
		if err == nil {
			r.reopen(key)
		}

		return err
	})
}

// shut closes the gates of the projects with a key, also of those that are opened later. It reports whether they were open.
func (r *Registry) shut(key int32) bool {
	r.mu.Lock()
	before := r.swapping[key]
	r.swapping[key] = true
	r.mu.Unlock()

	if before {
		return false
	}

	for _, p := range r.withKey(key) {
		p.gate.shut()
		if r.replaced != nil {
			r.replaced(p.UUID)
		}
	}

	return true
}

// reopen opens the gates that shut has closed. Their connections led to another database.
func (r *Registry) reopen(key int32) {
	for _, p := range r.withKey(key) {
		r.reset(p.UUID)
	}

	r.mu.Lock()
	delete(r.swapping, key)
	r.mu.Unlock()

	for _, p := range r.withKey(key) {
		p.gate.open()
	}
}

// withKey returns the open projects with a key.
func (r *Registry) withKey(key int32) (found []*Project) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for id, p := range r.projects {
		if swapKey(id) == key {
			found = append(found, p)
		}
	}

	return found
}
