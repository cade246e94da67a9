package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	maxWebhooks = 20   // per project
	maxTables   = 50   // per webhook
	maxQueues   = 20   // per webhook
	maxURL      = 2000 // bytes
	maxName     = 100  // characters
)

// Admins mails a project's admins; an [account.Service] is one.
type Admins interface {
	MailAdmins(ctx context.Context, project uuid.UUID, template string, data map[string]string) error
}

// Config has the dependencies of a [Service].
type Config struct {
	Platform  *platform.DB
	Projects  *projectdb.Registry
	Admins    Admins
	Outbound  *outbound.Client
	Functions *function.Service // nil: none
	Log       *slog.Logger
}

// Service has the webhooks of all projects, and delivers for those whose lease this server has. It
// is safe for concurrent use.
type Service struct {
	Config
	server  uuid.UUID // holder of leases
	client  *outbound.Client
	batches *fair.Pool    // KiB of bodies in memory
	wakeup  chan struct{} // has an element when a project may be free
	counters

	mu      sync.Mutex
	workers map[uuid.UUID]*worker
}

// New returns a service, which delivers while [Service.Run] runs.
func New(c Config) *Service {
	s := &Service{Config: c, server: uuid.New(), wakeup: make(chan struct{}, 1), workers: map[uuid.UUID]*worker{},
		batches: fair.New(fair.Config{Name: "webhook_batches", Capacity: maxBodies, PerAccount: maxBodies / 4,
			PerPart: maxBodies / 8, Reserve: maxBodies / 4, Waiting: maxWaiting})}
	if c.Outbound != nil {
		s.client = c.Outbound.Excerpts(maxReply, "webhook_requests")
	}

	return s
}

// Pools returns the pools that accounts share, for metrics.
func (s *Service) Pools() []*fair.Pool { return []*fair.Pool{s.batches} }

// WatchedTable selects changes of a table's rows.
type WatchedTable struct {
	Schema string `json:"schema"`
	Table  string `json:"table"`
	Event  string `json:"event"`
	Filter string `json:"filter"`
}

// Webhook is an endpoint that is told of changes.
type Webhook struct {
	UUID         uuid.UUID      `json:"uuid"`
	Name         string         `json:"name"`
	URL          string         `json:"endpoint" doc:"Its URL, or functions://NAME for an edge function of the project."`
	Events       []string       `json:"events" doc:"Types of events, other than those of rows."`
	Tables       []WatchedTable `json:"tables" doc:"Tables whose changes it gets."`
	Queues       []string       `json:"queues" doc:"Queues whose messages it gets."`
	Headers      []string       `json:"headers" db:"-" doc:"Names of the headers that its requests have. Their values are not shown."`
	Ordered      bool           `json:"ordered" doc:"Whether an event waits until all before it are delivered or given up."`
	Paused       bool           `json:"paused"`
	PauseReason  string         `json:"pauseReason" enum:",member,failures,restore" doc:"Why it is paused: by a member, after failures for three days, or because a backup was restored."`
	PausedAt     *time.Time     `json:"pausedAt" nullable:"true"`
	FailingSince *time.Time     `json:"failingSince" nullable:"true" doc:"First failure after the last success."`
	Pending      int64          `json:"pending" doc:"Deliveries that wait for an attempt."`
	CreatedAt    time.Time      `json:"createdAt"`
	UpdatedAt    time.Time      `json:"updatedAt"`

	Secrets []byte `json:"-"` // sealed
}

// subscription returns what the webhook gets of the log.
func (w Webhook) subscription() event.Subscription { return subscriptionOf(w.Tables, w.Events) }

func subscriptionOf(tables []WatchedTable, events []string) event.Subscription {
	s := event.Subscription{Facts: events}
	for _, t := range tables {
		s.Tables = append(s.Tables, event.Binding{Event: t.Event, Schema: t.Schema, Table: t.Table, Filter: t.Filter})
	}

	return s
}

const (
	webhookColumns = ` w.id as uuid, w.name, w.url, w.types as events, w.tables, coalesce(w.queues, '{}') as queues, w.ordered, w.paused, w.pause_reason, w.paused_at,
		(select s.failing_since from socle.webhook_states s where s.webhook = w.id) as failing_since,
		(select count(*) from socle.webhook_deliveries d where d.webhook = w.id and d.status = 'pending') as pending,
		w.created_at, w.updated_at, w.secrets `
	returned = ` id as uuid, name, url, types as events, tables, coalesce(queues, '{}') as queues, ordered, paused, pause_reason, paused_at, null::timestamptz as failing_since,
		0::bigint as pending, created_at, updated_at, secrets `
)

// Change has the fields of a webhook to set. Nil ones stay unchanged; a new webhook needs Name and
// URL.
type Change struct {
	Name, URL *string
	Events    *[]string
	Tables    *[]WatchedTable
	Queues    *[]string
	Headers   *map[string]string
	Ordered   *bool
	Paused    *bool
}

// Create creates a webhook, which gets events from now on, and returns its signing secret. It fails
// with Conflict for a taken name, and with Unprocessable for other fields and too many webhooks.
func (s *Service) Create(ctx context.Context, p *projectdb.Project, c Change) (Webhook, string, error) {
	if err := c.clean(); err != nil {
		return Webhook{}, "", err
	}

	secret := newSecret()
	sealed, err := secrets{Keys: []string{secret}, Headers: valueOf(c.Headers)}.seal(p)
	if err != nil {
		return Webhook{}, "", err
	}

	sub := subscriptionOf(valueOf(c.Tables), valueOf(c.Events))
	w, err := s.change(ctx, p, sub, false, func(tx pgx.Tx) (Webhook, error) {
		if _, err := pg.Exec(ctx, tx, `lock table socle.webhooks in share row exclusive mode`); err != nil {
			return Webhook{}, err
		}

		w, err := pg.One[Webhook](ctx, tx, `
			insert into socle.webhooks (name, url, types, tables, queues, secrets, ordered)
			select @name, @url, @types, @tables, @queues, @secrets, @ordered where (select count(*) from socle.webhooks) < @most::bigint
			returning`+returned, pgx.StrictNamedArgs{"name": *c.Name, "url": *c.URL,
			"types":  append([]string{}, valueOf(c.Events)...),
			"tables": append([]WatchedTable{}, valueOf(c.Tables)...),
			"queues": append([]string{}, valueOf(c.Queues)...), "secrets": sealed,
			"ordered": valueOf(c.Ordered), "most": maxWebhooks})
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Unprocessable, "a project has at most %d webhooks", maxWebhooks).
				WithCode("quota_exceeded")
		}

		return w, takenFault(err)
	})
	if err != nil {
		return Webhook{}, "", err
	}

	return withHeaders(p, w), secret, nil
}

// Update changes a webhook. One that is resumed gets what happened meanwhile, as far as the log has
// it, see [event.Tail.Read]. It fails as [Service.Create] does, and with NotFound.
func (s *Service) Update(ctx context.Context, p *projectdb.Project, id uuid.UUID, c Change) (Webhook, error) {
	if err := c.clean(); err != nil {
		return Webhook{}, err
	}

	former, err := Get(ctx, p, id)
	if err != nil {
		return Webhook{}, err
	}

	secrets, err := openSecrets(p, former.Secrets)
	if err != nil && (c.Headers != nil || isFalse(c.Paused)) {
		return Webhook{}, errLostSecrets
	}
	sealed := former.Secrets
	if c.Headers != nil {
		secrets.Headers = *c.Headers
		if sealed, err = secrets.seal(p); err != nil {
			return Webhook{}, err
		}
	}

	next := former
	set(&next.Tables, c.Tables)
	set(&next.Events, c.Events)
	if c.Paused == nil && former.Paused || c.Paused != nil && *c.Paused {
		next.Tables, next.Events = nil, nil // captured when it is resumed
	}

	w, err := s.change(ctx, p, next.subscription(), former.Paused, func(tx pgx.Tx) (Webhook, error) {
		w, err := pg.One[Webhook](ctx, tx, `
			update socle.webhooks set name = coalesce(@name, name), url = coalesce(@url, url), types = coalesce(@types, types),
				tables = coalesce(@tables, tables), queues = coalesce(@queues, queues), ordered = coalesce(@ordered, ordered), paused = coalesce(@paused, paused),
				pause_reason = case when not coalesce(@paused, paused) then '' when paused then pause_reason else 'member' end,
				paused_at = case when not coalesce(@paused, paused) then null when paused then paused_at else now() end,
				secrets = case when @reseal then @secrets else secrets end, updated_at = now()
			where id = @id returning`+returned, pgx.StrictNamedArgs{"id": id, "name": c.Name, "url": c.URL, "types": c.Events,
			"tables": c.Tables, "queues": c.Queues, "ordered": c.Ordered, "paused": c.Paused,
			"reseal": c.Headers != nil, "secrets": sealed})
		return w, takenFault(err)
	})
	if err != nil {
		return Webhook{}, err
	}

	return Get(ctx, p, w.UUID)
}

// change runs f in a transaction that also begins to capture what a webhook needs, and places its
// cursor. It waits for writers of the tables for some seconds.
func (s *Service) change(
	ctx context.Context, p *projectdb.Project, sub event.Subscription, isResumed bool,
	f func(tx pgx.Tx) (Webhook, error),
) (w Webhook, err error) {
	tables, err := event.NewTail(p).Bind(ctx, sub)
	if fault.Is(err, fault.Invalid) {
		return Webhook{}, fault.OnField(fault.Unprocessable, "tables", "invalid_value", "%s", fault.Of(err).Detail)
	}
	if err != nil {
		return Webhook{}, err
	}
	if err := s.want(ctx, p.UUID); err != nil {
		return Webhook{}, err
	}

	for deadline := time.Now().Add(captureTimeout); ; {
		w, err = pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Webhook, error) {
			w, err := f(tx)
			if err != nil || w.Paused {
				return w, err
			}
			if err := event.Capture(ctx, tx, tables, len(sub.Facts) > 0); err != nil {
				return w, err
			}

			return w, placeCursor(ctx, tx, p.UUID, w.UUID, tables, isResumed)
		})
		isLocked := err != nil && fault.Of(err).Code == event.CodeLocked
		if isLocked && time.Now().After(deadline) {
			err = fault.New(fault.Conflict, "another transaction has locked a table of the webhook").
				WithCode(event.CodeLocked).WithCause(err)
		}
		if !isLocked || time.Now().After(deadline) {
			break
		}

		if err := tick.Pause(ctx, captureRetry); err != nil {
			return Webhook{}, err
		}
	}

	s.Wake(p.UUID)
	return w, err
}

// captureTimeout bounds the wait for writers of a table, captureRetry the time between attempts.
const (
	captureTimeout = 5 * time.Second
	captureRetry   = 100 * time.Millisecond
)

// placeCursor begins the webhook at the present, unless it has a cursor to go on from. One that is
// resumed and can't go on, since a table was not captured meanwhile, gets an event that says so.
func placeCursor(
	ctx context.Context, tx pgx.Tx, project, webhook uuid.UUID, tables []uint32, isResumed bool,
) error {
	now, err := event.Present(ctx, tx)
	if err != nil {
		return err
	}
	since, err := event.CapturedSince(ctx, tx, tables)
	if err != nil {
		return err
	}

	args := pgx.StrictNamedArgs{"webhook": webhook, "now": now, "since": since}
	former, err := pg.One[struct {
		Cursor    string
		IsCovered bool
	}](ctx, tx, `
		select cursor, captured >= @since::text::xid8 as is_covered from socle.webhook_states where webhook = @webhook for update`,
		pgx.StrictNamedArgs{"webhook": webhook, "since": since})
	if fault.Is(err, fault.NotFound) {
		_, err := pg.Exec(ctx, tx, `
			insert into socle.webhook_states (webhook, cursor, captured) values (@webhook, @now, @since::text::xid8)`, args)
		return err
	}
	if err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `
		update socle.webhook_states set failing_since = null, dead = 0, captured = @since::text::xid8 where webhook = @webhook`,
		pgx.StrictNamedArgs{"webhook": webhook, "since": since}); err != nil {
		return err
	}
	if !isResumed || former.IsCovered {
		return nil
	}

	lost := []event.Event{gap("the tables were not captured all the time")}
	return moveCursor(ctx, tx, webhook, former.Cursor, now, lost, project)
}

// Get returns a webhook. It fails with NotFound.
func Get(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Webhook, error) {
	w, err := pg.One[Webhook](ctx, p.Trusted(), `select `+webhookColumns+` from socle.webhooks w where w.id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return withHeaders(p, w), err
}

// List returns a page of a project's webhooks and the total count.
func List(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Webhook, int64, error) {
	all, total, err := pg.List[Webhook](ctx, p.Trusted(), pg.Listing{
		Columns: webhookColumns, From: `socle.webhooks w`,
		Sorts: map[string]string{"name": "w.name", "createdAt": "w.created_at"}, Tie: "w.id",
	}, page, nil)
	for i, w := range all {
		all[i] = withHeaders(p, w)
	}

	return all, total, err
}

// Delete deletes a webhook with its deliveries. It fails with NotFound.
func Delete(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Webhook, error) {
	w, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Webhook, error) {
		return pg.One[Webhook](ctx, tx, `delete from socle.webhooks where id = @id returning`+returned,
			pgx.StrictNamedArgs{"id": id})
	})
	return withHeaders(p, w), err
}

// takenFault names the field of a webhook whose name is taken.
func takenFault(err error) error {
	if pg.Violates(err, "webhooks_name_key") {
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another webhook of the project").
			WithCause(err)
	}
	return err
}
