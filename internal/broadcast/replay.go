package broadcast

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/realtime"
)

// MaxReplay is the maximum number of messages that one join replays.
const MaxReplay = 25

// Archive has the messages of a project that private channels replay.
type Archive struct{ Project *projectdb.Project }

// Replay returns the last messages to a private channel that SQL has sent after a time, oldest
// first: n, at most [MaxReplay].
func (a Archive) Replay(ctx context.Context, topic string, since time.Time, n int) ([]*realtime.Message, error) {
	type kept struct {
		ID uuid.UUID
		message
	}
	rows, err := pg.All[kept](ctx, a.Project.Trusted(), `
		select id, topic, coalesce(event, '') as event, private, is_binary,
			case when is_binary then binary_payload else convert_to(coalesce(payload, '{}')::text, 'UTF8') end as payload
		from (
			select id, topic, event, private, payload, binary_payload, binary_payload is not null as is_binary, inserted_at
			from realtime.messages
			where topic = @topic and private and extension = 'broadcast' and inserted_at > @since::timestamptz at time zone 'UTC'
			order by inserted_at desc limit @n
		) m
		order by inserted_at desc`,
		pgx.StrictNamedArgs{"topic": topic, "since": since, "n": min(n, MaxReplay)})
	if err != nil {
		return nil, err
	}

	var messages []*realtime.Message
	for _, m := range slices.Backward(rows) {
		if m.fits() {
			messages = append(messages, m.broadcast(m.ID))
		}
	}

	return messages, nil
}
