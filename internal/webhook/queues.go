package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxMessages     = 16              // per read: with the longest of pgmq's messages, as much as may wait
	maxMessage      = 1 << 20         // bytes; longer ones are told of without their text
	messageTimeout  = 5 * time.Second // for a read and for a removal, as the project's owner
	hiddenSeconds   = 60              // until a message that was read and not removed comes again
	messagesPerPass = 1000            // from a queue
)

// takeMessages makes deliveries of messages in queues, for the webhooks that name them and have
// room. It reports whether there were any. A queue that fails stops no other one.
func (w *worker) takeMessages(ctx context.Context, hooks []*active) (progressed bool, err error) {
	for _, h := range hooks {
		for _, queue := range h.Queues {
			n, failure := w.drain(ctx, h, queue)
			if failure != nil {
				err = errors.Join(err, fmt.Errorf("queue %s: %w", queue, failure))
			}
			progressed = progressed || n > 0
		}
	}

	return progressed, err
}

// drain takes a queue's messages until it is empty or the webhook has no room, and returns their
// number.
func (w *worker) drain(ctx context.Context, h *active, queue string) (all int, err error) {
	for h.hasRoom() && all < messagesPerPass {
		n, size, err := w.takeFrom(ctx, h, queue)
		all += n
		h.Pending, h.Bytes = h.Pending+int64(n), h.Bytes+size
		if err != nil || n < maxMessages {
			return all, err
		}
	}

	return all, nil
}

// message is a message of a queue, as far as the server needs it.
type message struct {
	Queue     string `json:"queue"`
	ID        string `json:"msg_id"`
	At        string `json:"enqueued_at"`
	Oversized bool   `json:"oversized"`
}

// readMessages selects messages with their JSON objects. They are hidden from other readers for a
// while. An imported project may have a pgmq of its own: the casts bound what that returns.
const readMessages = `
	select msg_id::bigint::text, enqueued_at::timestamptz::text, pg_catalog.json_build_object('queue', $1::text,
		'msg_id', msg_id::bigint, 'read_ct', read_ct::bigint, 'enqueued_at', enqueued_at::timestamptz,
		'message', case when pg_catalog.octet_length(message::text) <= $3::int then message end,
		'headers', case when pg_catalog.octet_length(headers::text) <= 65536 then headers end,
		'oversized', coalesce(pg_catalog.octet_length(message::text) > $3::int, false))::text
	from pgmq.read($1::text, $4::int, $2::int) limit $2::int`

// takeFrom makes deliveries of a queue's next messages and then removes these. The queue belongs to
// the project's owner, and so does the login. After a crash between the steps a message is read
// again, and its delivery is there already.
func (w *worker) takeFrom(ctx context.Context, h *active, queue string) (n int, size int64, err error) {
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	rows, err := projectdb.OwnerChanges(ctx, w.project, messageTimeout, readMessages, []byte(queue),
		number(maxMessages), number(maxMessage), number(hiddenSeconds))
	switch pg.State(err) {
	case "42P01", "42883", "3F000": // undefined_table, _function, _schema: no such queue yet, or no more
		return 0, 0, nil
	}
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}

	var events []event.Event
	var ids []string
	for _, row := range rows {
		m := message{queue, string(row[0]), string(row[1]), true}
		data := row[2]
		if !json.Valid(data) { // nested too deeply
			data, _ = json.Marshal(m) // texts have no error
		}
		ids = append(ids, m.ID)
		events = append(events, event.Event{ID: messageID(w.project.UUID, m), Type: event.QueueMessage, At: time.Now(),
			Data: data})
		size += int64(len(data))
	}
	if _, _, err := deliver(ctx, w.project, h.UUID, events, false); err != nil {
		return 0, 0, err
	}

	_, err = projectdb.OwnerChanges(ctx, w.project, messageTimeout, `select pgmq.delete($1::text, $2::bigint[])`,
		[]byte(queue), []byte("{"+strings.Join(ids, ",")+"}"))
	if err == nil {
		w.service.counters.messages.Add(int64(len(rows)))
	}

	return len(rows), size, err
}

// messageID derives the ID of an event about a message.
func messageID(project uuid.UUID, m message) uuid.UUID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", project, m.ID, m.At, m.Queue))
	return event.Versioned(uuid.UUID(sum[:16]))
}
