package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxPending      = 1000     // deliveries of a webhook that wait, until it takes no more from the log
	maxPendingBytes = 16 << 20 // their bodies
	cursorAge       = time.Hour
)

// collect makes deliveries of the log's next events, for the webhooks that have room. It reports
// whether there were any.
func (w *worker) collect(ctx context.Context, hooks []*active) (progressed bool, err error) {
	until := ""
	for _, group := range byCursor(hooks) {
		cursor := group[0].Cursor
		batch, err := w.tail.Read(ctx, cursor, until, group[0].Removed)
		if errors.Is(err, event.ErrResync) {
			if err := w.skip(ctx, group); err != nil {
				return progressed, err
			}
			progressed = true

			continue
		}
		if err != nil {
			return progressed, err
		}

		until = batch.Until
		progressed = progressed || batch.Len() > 0
		for _, h := range group {
			if err := w.take(ctx, h, batch); err != nil {
				return progressed, err
			}
		}
		w.keepCaptures(ctx, batch.Catalog(), hooks)
	}

	return progressed, nil
}

// byCursor groups the webhooks that have room by their cursors. All that have kept up are one
// group, and so share a read of the log.
func byCursor(hooks []*active) [][]*active {
	var groups [][]*active
	index := map[string]int{}
	for _, h := range hooks {
		if !h.hasRoom() {
			continue
		}

		i, ok := index[h.Cursor+h.Removed]
		if !ok {
			i = len(groups)
			index[h.Cursor+h.Removed] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}

	return groups
}

// take makes deliveries of a batch for a webhook, and moves its cursor. Without entries the cursor
// stays for a while: it leads to the same place.
func (w *worker) take(ctx context.Context, h *active, batch event.Batch) error {
	if batch.Len() == 0 && time.Since(h.CursorAt) < cursorAge {
		return nil
	}

	events, err := w.tail.Match(ctx, batch, h.subscription())
	if err != nil {
		if !isLasting(err) {
			return err
		}
		events = []event.Event{gap("a filter failed: " + fault.Of(pg.Fault(err)).Detail)}
	}

	return moveCursor(ctx, w.project.Trusted(), h.UUID, h.Cursor, batch.Next, events, w.project.UUID)
}

// isLasting reports whether a filter would fail again: PostgreSQL itself has refused it.
func isLasting(err error) bool {
	state := pg.State(err)
	return state == "57014" || strings.HasPrefix(state, "22") || strings.HasPrefix(state, "42") ||
		strings.HasPrefix(state, "P0")
}

// skip moves webhooks whose events are lost to the present, and tells them.
func (w *worker) skip(ctx context.Context, group []*active) error {
	return pg.InTx(ctx, w.project.Trusted(), func(tx pgx.Tx) error {
		ids := make([]uuid.UUID, len(group))
		for i, h := range group {
			ids[i] = h.UUID
		}
		if _, err := pg.Exec(ctx, tx, `
			update socle.webhook_states set removed = (select xid from socle.events_removed) where webhook = any(@ids::uuid[])`,
			pgx.StrictNamedArgs{"ids": ids}); err != nil {
			return err
		}

		now, err := event.Present(ctx, tx)
		if err != nil {
			return err
		}

		for _, h := range group {
			lost := []event.Event{gap("events are no longer kept, or the database was restored")}
			if err := moveCursor(ctx, tx, h.UUID, h.Cursor, now, lost, w.project.UUID); err != nil {
				return err
			}
		}

		return nil
	})
}

// gap returns the event that tells a webhook of lost ones.
func gap(reason string) event.Event {
	data, _ := json.Marshal(map[string]string{"reason": reason}) // texts have no error
	return event.Event{ID: uuid.New(), Type: event.WebhookGap, At: time.Now(), Data: data}
}

// moveCursor makes deliveries of events and moves a webhook's cursor, in one statement. It does
// nothing if the cursor is elsewhere: another server has been here.
func moveCursor(
	ctx context.Context, q pg.Querier, webhook uuid.UUID, from, to string, events []event.Event, project uuid.UUID,
) error {
	ids, types, bodies := make([]uuid.UUID, len(events)), make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		ids[i], types[i], bodies[i] = e.ID, e.Type, bodyOf(e, project)
	}

	_, err := pg.Exec(ctx, q, `
		with moved as (
			update socle.webhook_states set cursor = @to, cursor_at = now() where webhook = @webhook and cursor = @from
			returning webhook
		)
		insert into socle.webhook_deliveries (webhook, event, type, body, size)
		select m.webhook, e.id, e.type, e.body, octet_length(e.body)
		from moved m, unnest(@ids::uuid[], @types::text[], @bodies::text[]) with ordinality e (id, type, body, n)
		order by e.n
		on conflict (webhook, event) do nothing`,
		pgx.StrictNamedArgs{"webhook": webhook, "from": from, "to": to, "ids": ids, "types": types, "bodies": bodies})
	return err
}

// bodyOf returns a request's body.
func bodyOf(e event.Event, project uuid.UUID) string {
	body := struct {
		ID      uuid.UUID       `json:"id"`
		Type    string          `json:"type"`
		Time    time.Time       `json:"time"`
		Project uuid.UUID       `json:"project"`
		Data    json.RawMessage `json:"data"`
	}{e.ID, e.Type, e.At.UTC(), project, e.Data}
	text, err := json.Marshal(body)
	if err != nil { // a row nested as deeply as package json reads: the body has it one level deeper
		body.Data = json.RawMessage(`{"oversized":true}`)
		text, _ = json.Marshal(body)
	}

	return string(text)
}

// keepCaptures renews the captures from time to time, and after the catalog has changed: a table
// may be new under its name.
func (w *worker) keepCaptures(ctx context.Context, catalog string, hooks []*active) {
	if w.catalog == catalog && time.Since(w.keptAt) < keepInterval {
		return
	}

	w.catalog, w.keptAt = catalog, time.Now()
	var all event.Subscription
	for _, h := range hooks {
		s := h.subscription()
		all.Tables, all.Facts = append(all.Tables, s.Tables...), append(all.Facts, s.Facts...)
	}

	if err := w.tail.Keep(ctx, all); err != nil && ctx.Err() == nil {
		w.service.Log.Warn("renew captures of webhooks", "project", w.project.UUID, "error", err)
		w.keptAt = time.Time{}
	}
}
