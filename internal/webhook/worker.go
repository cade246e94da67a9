package webhook

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	busyInterval  = 100 * time.Millisecond // between passes, while there are events
	calmInterval  = time.Second            // after calmAfter without events
	quietInterval = 5 * time.Second        // after quietAfter without events
	calmAfter     = 10 * time.Second
	quietAfter    = time.Minute
	sharedPace    = 20 * time.Millisecond // between passes of all projects
	retryInterval = 5 * time.Second       // after a failed pass
	passTimeout   = time.Minute

	pruneInterval   = 10 * time.Minute
	pruneDeliveries = 1000 // recorded deliveries until the next pruning
	keepInterval    = 5 * time.Minute
	quotaInterval   = time.Minute // between looks at the project's size
)

// worker delivers for a project.
type worker struct {
	service *Service
	project *projectdb.Project
	tail    *event.Tail
	wakeup  chan struct{} // has an element when a pass is due
	ctx     context.Context
	stop    context.CancelFunc

	prunedAt time.Time
	sizedAt  time.Time // last look at the project's size
	nearOn   string    // last day on which it was near the quota
	keptAt   time.Time // last renewal of the captures
	catalog  string    // the catalog's version then

	waiting atomic.Int64 // pending deliveries, at the last pass

	mu       sync.Mutex
	sending  map[uuid.UUID]bool // webhooks with a batch under way
	recorded int                // deliveries since the last pruning
	batches  sync.WaitGroup
}

func (s *Service) newWorker(ctx context.Context, project uuid.UUID) *worker {
	ctx, stop := context.WithCancel(ctx)
	p := s.Projects.Open(project)

	return &worker{service: s, project: p, tail: event.NewTail(p), wakeup: make(chan struct{}, 1), ctx: ctx, stop: stop,
		sending: map[uuid.UUID]bool{}}
}

func (w *worker) wake() {
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

// run makes passes until the worker is stopped, and returns when all batches have ended.
func (w *worker) run() {
	defer w.batches.Wait()

	changedAt := time.Now()
	for {
		progressed, due, err := w.pass()
		now := time.Now()

		interval := quietInterval
		switch {
		case w.ctx.Err() != nil:
			return
		case errors.Is(err, projectdb.ErrClosed): // paused or deleted; the lease is not renewed
		case err != nil:
			w.service.Log.Warn("deliver webhooks", "project", w.project.UUID, "error", err)
			interval = retryInterval
		case progressed:
			changedAt, interval = now, busyInterval
		case now.Sub(changedAt) < calmAfter:
			interval = busyInterval
		case now.Sub(changedAt) < quietAfter:
			interval = calmInterval
		}

		interval = max(interval, time.Duration(w.service.count())*sharedPace)
		if err == nil && !due.IsZero() {
			interval = min(interval, max(due.Sub(now), busyInterval))
		}

		if tick.Await(w.ctx, interval, w.wakeup) != nil {
			return
		}
	}
}

// active is an active webhook as a pass finds it.
type active struct {
	Webhook
	Cursor   string
	CursorAt time.Time
	Removed  string // removal from the log that it has been told of; "": none
	Dead     int
	Bytes    int64 // pending bodies together
	NextAt   *time.Time
}

// hasRoom reports whether the webhook takes further events from the log.
func (a *active) hasRoom() bool { return a.Pending < maxPending && a.Bytes < maxPendingBytes }

// pass collects events of the log, and starts batches of the deliveries that are due. It reports
// whether it had anything to do, and when the next delivery is due, zero if that is unknown.
func (w *worker) pass() (progressed bool, due time.Time, err error) {
	defer fault.Recover(&err)

	ctx, cancel := context.WithTimeout(w.ctx, passTimeout)
	defer cancel()

	hooks, err := w.load(ctx)
	if err != nil {
		return false, due, err
	}
	var waiting int64
	for _, h := range hooks {
		waiting += h.Pending
	}
	w.waiting.Store(waiting)
	if len(hooks) == 0 {
		return false, due, w.service.forget(ctx, w.project.UUID)
	}

	quotaErr := w.writeQuota(ctx, hooks)
	progressed, collectErr := w.collect(ctx, hooks)
	taken, takeErr := w.takeMessages(ctx, hooks)
	progressed = progressed || taken
	started, err := w.startBatches(ctx, hooks)

	for _, h := range hooks {
		if h.NextAt != nil && (due.IsZero() || h.NextAt.Before(due)) && !w.isSending(h.UUID) {
			due = *h.NextAt
		}
	}

	return progressed || started, due, errors.Join(quotaErr, collectErr, takeErr, err, w.prune(ctx))
}

// writeQuota writes the fact that the database is near its quota, if a webhook wants it.
func (w *worker) writeQuota(ctx context.Context, hooks []*active) error {
	isWanted := slices.ContainsFunc(hooks, func(h *active) bool { return slices.Contains(h.Events, event.QuotaNear) })
	if !isWanted || time.Since(w.sizedAt) < quotaInterval {
		return nil
	}

	w.sizedAt = time.Now()
	day := w.sizedAt.UTC().Format(time.DateOnly)
	if w.nearOn == day {
		return nil
	}

	isNear, err := event.WriteQuota(ctx, w.project, w.sizedAt)
	if err == nil && isNear {
		w.nearOn = day
	}

	return err
}

// load returns the active webhooks.
func (w *worker) load(ctx context.Context) ([]*active, error) {
	all, err := pg.All[active](ctx, w.project.Trusted(), `
		select w.id as uuid, w.name, w.url, w.types as events, w.tables, coalesce(w.queues, '{}') as queues, w.ordered, w.paused, w.pause_reason, w.paused_at,
			s.failing_since, d.pending, w.created_at, w.updated_at, w.secrets, s.cursor, s.cursor_at, coalesce(s.removed::text, '') as removed, s.dead, d.bytes, d.next_at
		from socle.webhooks w
		join socle.webhook_states s on s.webhook = w.id
		cross join lateral (
			select count(*) as pending, coalesce(sum(size), 0)::bigint as bytes, min(next_at) as next_at
			from socle.webhook_deliveries d where d.webhook = w.id and d.status = 'pending') d
		where not w.paused
		order by w.id`)
	hooks := make([]*active, len(all))
	for i := range all {
		hooks[i] = &all[i]
	}

	return hooks, err
}

func (w *worker) isSending(webhook uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.sending[webhook]
}

// prune removes deliveries that are too old or too many, from time to time.
func (w *worker) prune(ctx context.Context) error {
	w.mu.Lock()
	isDue := w.recorded >= pruneDeliveries || time.Since(w.prunedAt) > pruneInterval
	if isDue {
		w.recorded, w.prunedAt = 0, time.Now()
	}
	w.mu.Unlock()

	if !isDue {
		return nil
	}

	return prune(ctx, w.project)
}

// prune removes finished deliveries of a project that are too old or too many.
func prune(ctx context.Context, p *projectdb.Project) error {
	_, err := pg.Exec(ctx, p.Trusted(), `
		delete from socle.webhook_deliveries where seq in (
			select seq from (
				select seq, ended_at, row_number() over newest as n, sum(size) over newest as bytes
				from socle.webhook_deliveries where status <> 'pending' window newest as (order by seq desc)
			) t where n > @most::bigint or bytes > @bytes::bigint or ended_at < now() - @age::interval)`,
		pgx.StrictNamedArgs{"most": maxKept, "bytes": maxKeptBytes, "age": keptTime})
	return err
}
