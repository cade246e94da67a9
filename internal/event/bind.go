package event

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

// resolve binds bindings to tables, as a caller sees them.
func (l *Log) resolve(ctx context.Context, caller actor.Actor, bindings []Binding) ([]*view, error) {
	views := []*view{}
	shared := map[uint32]*relation{} // so that views of one table are checked together

	for i, b := range bindings {
		filters, err := parseFilters(b.Filter)
		if err != nil {
			return nil, err
		}

		all, err := relations(ctx, l.project.Trusted(), projectdb.Publication, caller.Role, b)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if shared[r.OID] == nil {
				shared[r.OID] = &r
			}

			v, err := newView(i, b, shared[r.OID], slices.Clone(filters))
			if err != nil {
				return nil, err
			}
			if len(v.filters) > 0 {
				if err := normalize(ctx, l.actorOn(caller), v.relation, v.filters); err != nil {
					return nil, err
				}
			}
			views = append(views, v)
		}
	}

	return views, nil
}

// capture begins or renews the capture of the views' tables. It waits for writers of a table for
// some seconds.
func (l *Log) capture(ctx context.Context, views []*view) error {
	ctx, cancel := context.WithTimeout(ctx, captureTimeout)
	defer cancel()

	for oid := range oidsOf(views) {
		l.mu.Lock()
		isRecent := time.Since(l.captured[oid]) < renewInterval
		l.mu.Unlock()

		for !isRecent {
			err := capture(ctx, l.project.Trusted(), oid)
			if err == nil {
				l.mu.Lock()
				l.captured[oid] = time.Now()
				l.mu.Unlock()

				break
			}
			if !fault.Is(err, fault.Unavailable) {
				return err
			}

			if tick.Pause(ctx, busyInterval) != nil {
				return err
			}
		}
	}

	return nil
}

// oidsOf returns the OIDs of the views' tables.
func oidsOf(views []*view) map[uint32]bool {
	oids := map[uint32]bool{}
	for _, v := range views {
		oids[v.relation.OID] = true
	}

	return oids
}

// resume returns a cursor's position. It fails with [ErrResync] if changes after it may be missing.
func (l *Log) resume(ctx context.Context, cursor string, views []*view) (position, error) {
	at, epoch, ok := parseCursor(cursor)
	if !ok {
		return position{}, fault.New(fault.Invalid, "the cursor is none of this project's")
	}
	if epoch != l.epoch() {
		return position{}, ErrResync
	}
	if err := l.check(ctx, head{place: epoch}, at.from); err != nil {
		return position{}, err
	}

	since, err := pg.Values[string](ctx, l.project.Trusted(),
		`select since::text from socle.captures where relation = any(@tables::oid[])`,
		pgx.StrictNamedArgs{"tables": slices.Collect(maps.Keys(oidsOf(views)))})
	if err != nil {
		return position{}, err
	}
	if len(since) < len(oidsOf(views)) {
		return position{}, ErrResync
	}
	for _, text := range since {
		if s, ok := parseSnapshot(text + ":" + text + ":"); !ok || !at.from.sees(s.xmin) {
			return position{}, ErrResync
		}
	}

	return at, nil
}

// check fails with [ErrResync] if the log at a head lacks changes that a snapshot does not see.
func (l *Log) check(ctx context.Context, h head, from snapshot) error {
	if h.place != l.epoch() {
		return ErrResync
	}

	return checkRemoved(ctx, l.project.Trusted(), from, "")
}

// checkRemoved fails with [ErrResync] if changes are removed that a snapshot does not see, as far
// as that is known, see [snapshot.mayMiss]. known is the removal that the reader has been told of,
// or "".
func checkRemoved(ctx context.Context, q pg.Querier, from snapshot, known string) error {
	removed, err := pg.Values[string](ctx, q, `select xid::text from socle.events_removed where xid::text <> @known::text`,
		pgx.StrictNamedArgs{"known": known})
	if err != nil {
		return err
	}
	for _, text := range removed {
		if s, ok := parseSnapshot(text + ":" + text + ":"); !ok || from.mayMiss(s.xmin) {
			return ErrResync
		}
	}

	return nil
}
