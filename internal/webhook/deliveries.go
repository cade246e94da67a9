package webhook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	keptTime     = 7 * 24 * time.Hour // finished deliveries
	maxKept      = 10000              // finished deliveries of a project
	maxKeptBytes = 64 << 20           // their bodies
)

// States of a delivery.
const (
	Pending   = "pending"
	Delivered = "delivered"
	Dead      = "dead" // given up after about a day
)

// Attempt is a request of a delivery.
type Attempt struct {
	At           time.Time `json:"at"`
	Milliseconds int64     `json:"milliseconds"`
	Status       int       `json:"status" doc:"Status of the response; 0 without one."`
	Error        string    `json:"error" doc:"Why there is no response; otherwise empty."`
}

// succeeded reports whether the endpoint has accepted the event.
func (a Attempt) succeeded() bool { return a.Error == "" && a.Status >= 200 && a.Status <= 299 }

// Delivery is an event on its way to an endpoint.
type Delivery struct {
	UUID      uuid.UUID  `json:"uuid"`
	EventUUID uuid.UUID  `json:"eventUuid" doc:"The header Webhook-Id, the same in all attempts and replays."`
	Type      string     `json:"type"`
	Status    string     `json:"status" enum:"pending,delivered,dead"`
	Attempts  int        `json:"attempts" doc:"Since it was created, retried or replayed."`
	NextAt    *time.Time `json:"nextAt" nullable:"true" doc:"When it is attempted next; null once it has ended."`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt" nullable:"true"`

	Seq int64 `json:"-"`
}

// FullDelivery is a delivery with its request and response.
type FullDelivery struct {
	Delivery
	Body  string    `json:"body" doc:"Body of the request."`
	Log   []Attempt `json:"log" doc:"Its attempts, the oldest first."`
	Reply string    `json:"reply" doc:"Beginning of the last response's body."`
}

const deliveryColumns = ` d.id as uuid, d.event as event_uuid, d.type, d.status, d.attempts,
	case when d.status = 'pending' then d.next_at end as next_at, d.created_at, d.ended_at, d.seq `

// Filter selects deliveries. Zero fields select all.
type Filter struct {
	Status, Type string
	From, To     time.Time // range of the creation, To is exclusive
	Before       int64     // those before a delivery in the list
	Limit        int
}

// ListDeliveries returns a webhook's deliveries, the newest first, and the value of Before for the
// next page, 0 on the last one. It fails with NotFound.
func ListDeliveries(
	ctx context.Context, p *projectdb.Project, webhook uuid.UUID, f Filter,
) (page []Delivery, next int64, err error) {
	if _, err := Get(ctx, p, webhook); err != nil {
		return nil, 0, err
	}

	page, err = pg.All[Delivery](ctx, p.Trusted(), `
		select `+deliveryColumns+` from socle.webhook_deliveries d
		where d.webhook = @webhook and (@status = '' or d.status = @status) and (@type = '' or d.type = @type)
			and (@from::timestamptz is null or d.created_at >= @from) and (@to::timestamptz is null or d.created_at < @to)
			and (@before::bigint = 0 or d.seq < @before::bigint)
		order by d.seq desc limit @limit::bigint`,
		pgx.StrictNamedArgs{"webhook": webhook, "status": f.Status, "type": f.Type, "from": optional(f.From),
			"to": optional(f.To), "before": f.Before, "limit": f.Limit + 1})
	if err == nil && len(page) > f.Limit {
		page, next = page[:f.Limit], page[f.Limit-1].Seq
	}

	return page, next, err
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// GetDelivery returns a webhook's delivery. It fails with NotFound.
func GetDelivery(ctx context.Context, p *projectdb.Project, webhook, id uuid.UUID) (FullDelivery, error) {
	return pg.One[FullDelivery](ctx, p.Trusted(), `
		select `+deliveryColumns+`, d.body, d.log, d.reply from socle.webhook_deliveries d where d.webhook = @webhook and d.id = @id`,
		pgx.StrictNamedArgs{"webhook": webhook, "id": id})
}

// Retry attempts a delivery at once, whatever its status. It fails with NotFound.
func (s *Service) Retry(ctx context.Context, p *projectdb.Project, webhook, id uuid.UUID) (Delivery, error) {
	d, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Delivery, error) {
		return pg.One[Delivery](ctx, tx, `
			update socle.webhook_deliveries d set status = 'pending', attempts = 0, next_at = now(), ended_at = null
			where d.webhook = @webhook and d.id = @id returning `+deliveryColumns,
			pgx.StrictNamedArgs{"webhook": webhook, "id": id})
	})
	if err == nil {
		s.Wake(p.UUID)
	}

	return d, err
}

// Replay delivers a webhook's ended deliveries again that were created in a range of time, with the
// same IDs, and returns their number. It fails with NotFound.
func (s *Service) Replay(
	ctx context.Context, p *projectdb.Project, webhook uuid.UUID, from, to time.Time, status string,
) (n int64, err error) {
	err = p.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := pg.Value[uuid.UUID](ctx, tx, `select id from socle.webhooks where id = @webhook for share`,
			pgx.StrictNamedArgs{"webhook": webhook}); err != nil {
			return err
		}

		n, err = pg.Exec(ctx, tx, `
			update socle.webhook_deliveries set status = 'pending', attempts = 0, next_at = now(), ended_at = null
			where webhook = @webhook and status <> 'pending' and (@status = '' or status = @status)
				and created_at >= @from and created_at < @to`,
			pgx.StrictNamedArgs{"webhook": webhook, "from": from, "to": to, "status": status})
		return err
	})
	if err == nil {
		s.Wake(p.UUID)
	}

	return n, err
}

// Test makes a delivery with an event about nothing. It fails with NotFound, and with Conflict for
// a paused webhook.
func (s *Service) Test(ctx context.Context, p *projectdb.Project, webhook uuid.UUID) (Delivery, error) {
	data, err := json.Marshal(map[string]string{"message": "A test of this webhook"})
	if err != nil {
		return Delivery{}, err
	}

	e := event.Event{ID: uuid.New(), Type: event.WebhookTest, At: time.Now(), Data: data}
	body := bodyOf(e, p.UUID)
	d, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Delivery, error) {
		isPaused, err := pg.Value[bool](ctx, tx, `select paused from socle.webhooks where id = @webhook for share`,
			pgx.StrictNamedArgs{"webhook": webhook})
		if err != nil {
			return Delivery{}, err
		}
		if isPaused {
			return Delivery{}, fault.New(fault.Conflict, "the webhook is paused").WithCode("paused")
		}

		return pg.One[Delivery](ctx, tx, `
			insert into socle.webhook_deliveries as d (webhook, event, type, body, size) values (@webhook, @event, @type, @body, @size)
			returning `+deliveryColumns, pgx.StrictNamedArgs{"webhook": webhook, "event": e.ID, "type": e.Type, "body": body,
			"size": len(body)})
	})
	if err == nil {
		s.Wake(p.UUID)
	}

	return d, err
}
