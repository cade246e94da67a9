// Package broadcast owns the messages that SQL sends to channels: the rows of realtime.messages,
// their delivery, their replay and their retention. The rooms of channels are in package realtime.
//
// A message is delivered at least once to those who are in its room: a server that is killed
// between delivery and commit leaves it to another one. Its id tells clients which they have seen.
package broadcast

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/realtime"
)

const (
	// Messages per transaction: maxBatch, of batchBytes together or a single larger one.
	maxBatch   = 100
	batchBytes = 1 << 20

	// maxDelay bounds the wait of a message while the project exceeds its deliveries. Later it is
	// only replayed, so that a room with more members than deliveries blocks no other.
	maxDelay = 10 * time.Second

	// trimInterval is the number of messages after which the old ones are removed.
	trimInterval = 1000
	maxMessages  = 50_000
	maxBytes     = 64 << 20 // as stored
	maxAge       = 72 * time.Hour
)

// Sender delivers messages to the rooms of a hub.
type Sender struct{ Hub *realtime.Hub }

// Kind returns the work that the outbox finds.
func (s Sender) Kind() outbox.Kind {
	return outbox.Kind{Name: "messages", Pending: "exists (select from socle.unsent_messages)", Run: s.Run}
}

// Run delivers the messages that wait, in the order in which they were written. It returns while
// another server does so, or when the project has no deliveries left.
func (s Sender) Run(ctx context.Context, p *projectdb.Project) error {
	for {
		n, last, err := s.deliver(ctx, p)
		if err != nil || n == 0 {
			return err
		}
		if last/trimInterval != (last-int64(n))/trimInterval {
			if err := trim(ctx, p); err != nil {
				return err
			}
		}
	}
}

// unsent is a message to deliver. Its row can be gone.
type unsent struct {
	Seq int64
	ID  uuid.UUID
	Age float64 // seconds
	message
}

// deliver delivers a batch. It returns the number of messages that need no more delivery, and the
// sequence number of the last one.
func (s Sender) deliver(ctx context.Context, p *projectdb.Project) (n int, last int64, err error) {
	share := p.Key(ctx)
	err = pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		batch, err := next(ctx, tx)
		if err != nil {
			return err
		}

		var sent []int64
		for _, m := range batch {
			err := s.send(realtime.Address{Project: p.UUID, Share: share}, m)
			if errors.Is(err, realtime.ErrTooManyDeliveries) && m.Age < maxDelay.Seconds() {
				break
			}
			sent = append(sent, m.Seq)
		}
		if n = len(sent); n == 0 {
			return nil
		}

		last = sent[n-1]
		_, err = pg.Exec(ctx, tx, `delete from socle.unsent_messages where seq = any($1)`, sent)
		return err
	})

	return n, last, err
}

// next returns the messages to deliver, or none while another server delivers.
func next(ctx context.Context, tx pgx.Tx) ([]unsent, error) {
	isFirst, err := pg.Value[bool](ctx, tx, `select pg_try_advisory_xact_lock('socle.unsent_messages'::regclass::oid::bigint)`)
	if err != nil || !isFirst {
		return nil, err
	}

	return pg.All[unsent](ctx, tx, `
		select seq, id, age, topic, event, private, payload, is_binary from (
			select u.seq, u.id, extract(epoch from clock_timestamp() at time zone 'UTC' - u.inserted_at)::float8 as age,
				coalesce(m.topic, '') as topic, coalesce(m.event, '') as event, coalesce(m.private, false) as private,
				coalesce(m.binary_payload, convert_to(coalesce(m.payload, '{}')::text, 'UTF8')) as payload,
				m.binary_payload is not null as is_binary,
				row_number() over oldest as count,
				sum(coalesce(pg_column_size(m.payload), 0) + coalesce(pg_column_size(m.binary_payload), 0)) over oldest as bytes
			from (select seq, id, inserted_at from socle.unsent_messages order by seq limit @max) u
			left join realtime.messages m on m.id = u.id and m.inserted_at = u.inserted_at
			window oldest as (order by u.seq rows unbounded preceding)
		) t
		where count = 1 or bytes <= @bytes order by seq`,
		pgx.StrictNamedArgs{"max": maxBatch, "bytes": batchBytes})
}

// send sends a message to its room of a project, unless its row is gone or fits no frame.
func (s Sender) send(room realtime.Address, m unsent) error {
	if m.Topic == "" || !m.fits() {
		return nil
	}

	room.Topic, room.Private = m.Topic, m.Private
	return s.Hub.Send(room, m.broadcast(m.ID))
}

// message is the content of a message.
type message struct {
	Topic, Event string
	Private      bool
	Payload      []byte // JSON, unless IsBinary
	IsBinary     bool
}

// broadcast returns the message as rooms know it.
func (m message) broadcast(id uuid.UUID) *realtime.Message {
	return &realtime.Message{ID: id.String(), Event: m.Event, Payload: m.Payload, Binary: m.IsBinary}
}

// Bounds of a message in bytes, as realtime.check_message has them.
const (
	maxTopic   = 246
	maxEvent   = 255
	maxPayload = 256 << 10
)

// fits reports whether clients can receive the message: the project's owner may have changed its
// row.
func (m message) fits() bool {
	return len(m.Topic) <= maxTopic && len(m.Event) <= maxEvent && len(m.Payload) <= maxPayload
}

// trim removes the messages that are too old, too many or too large together.
func trim(ctx context.Context, p *projectdb.Project) error {
	_, err := pg.Exec(ctx, p.Trusted(), `
		delete from realtime.messages m using (
			select ctid, row_number() over newest as count,
				sum(coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(binary_payload), 0)) over newest as bytes
			from realtime.messages window newest as (order by inserted_at desc rows unbounded preceding)
		) o
		where m.ctid = o.ctid and (o.count > @count or o.bytes > @bytes
			or m.inserted_at < clock_timestamp() at time zone 'UTC' - make_interval(secs => @seconds::float8))`,
		pgx.StrictNamedArgs{"count": maxMessages, "bytes": maxBytes, "seconds": maxAge.Seconds()})
	return err
}

// Subject returns the subject of messages: a backup has none of their rows.
func Subject() projectdb.Subject { return projectdb.Subject{Sweep: trim} }
