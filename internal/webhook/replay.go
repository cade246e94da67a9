package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// replayTime bounds the reading of the log for one replay.
const replayTime = 10 * time.Second

// LogReplay is the outcome of [Service.ReplayLog].
type LogReplay struct {
	Deliveries int64
	Next       string // cursor from which to go on; "": the range is done
	Incomplete bool   // the log no longer has the range's beginning
}

// ReplayLog delivers the events of a part of the log to a webhook that it selects now, also those
// that it did not select then. Events that it had keep their IDs. It stops when as many deliveries
// wait as a webhook may have. It fails with NotFound, with Invalid for a text that is no cursor,
// and with Conflict while so many wait already or if events after the cursor are lost.
func (s *Service) ReplayLog(
	ctx context.Context, p *projectdb.Project, webhook uuid.UUID, r event.Range,
) (out LogReplay, err error) {
	w, err := Get(ctx, p, webhook)
	if err != nil {
		return out, err
	}
	if out.Incomplete, err = event.HasRemoved(ctx, p.Trusted(), r.Since); err != nil {
		return out, err
	}
	room := maxPending - w.Pending
	if room <= 0 {
		return out, fault.New(fault.Conflict, "%d deliveries of the webhook wait already", w.Pending).
			WithCode("too_many_pending")
	}

	tail, end, bytes := event.NewTail(p), time.Now().Add(replayTime), 0
	for {
		batch, err := tail.ReadRange(ctx, r)
		if errors.Is(err, event.ErrResync) {
			return out, fault.New(fault.Conflict, "events after the cursor are no longer kept").
				WithCode("events_removed")
		}
		if err != nil {
			return out, err
		}

		events, err := tail.Match(ctx, batch, w.subscription())
		if err != nil {
			return out, err
		}

		n, size, err := deliver(ctx, p, webhook, events, true)
		if err != nil {
			return out, err
		}

		out.Deliveries += n
		bytes += size
		switch r.Cursor = batch.Next; {
		case !batch.More:
			s.Wake(p.UUID)
			return out, nil
		case out.Deliveries >= room, bytes >= maxPendingBytes, time.Now().After(end):
			s.Wake(p.UUID)
			out.Next = batch.Next
			return out, nil
		}
	}
}

// deliver makes deliveries of events, and makes those pending again, if asked, that have ended. It
// returns their number and the size of their bodies.
func deliver(
	ctx context.Context, p *projectdb.Project, webhook uuid.UUID, events []event.Event, again bool,
) (n int64, size int, err error) {
	var ids []uuid.UUID
	var types, bodies []string
	isTaken := make(map[uuid.UUID]bool, len(events)) // a fact may have been written several times
	for _, e := range events {
		if isTaken[e.ID] {
			continue
		}
		isTaken[e.ID] = true

		body := bodyOf(e, p.UUID)
		ids, types, bodies = append(ids, e.ID), append(types, e.Type), append(bodies, body)
		size += len(body)
	}

	err = p.InTx(ctx, func(tx pgx.Tx) error {
		n, err = pg.Exec(ctx, tx, `
			insert into socle.webhook_deliveries as d (webhook, event, type, body, size)
			select @webhook, e.id, e.type, e.body, octet_length(e.body)
			from unnest(@ids::uuid[], @types::text[], @bodies::text[]) with ordinality e (id, type, body, n)
			order by e.n
			on conflict (webhook, event) do update set status = 'pending', attempts = 0, next_at = now(), ended_at = null
			where @again and d.status <> 'pending'`,
			pgx.StrictNamedArgs{"again": again, "webhook": webhook, "ids": ids, "types": types, "bodies": bodies})
		return err
	})

	return n, size, err
}
