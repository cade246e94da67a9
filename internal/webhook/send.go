package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxReply    = 4 << 10  // bytes of a response that are kept
	maxBodies   = 64 << 10 // KiB of bodies in memory, of all batches of a server
	batchBodies = 256      // KiB of bodies in a batch, but for a larger first one
	maxWaiting  = 4096     // batches that wait for memory

	batchSize   = 64 // deliveries
	probeSize   = 4  // deliveries to an endpoint whose last ones failed
	concurrency = 16 // requests of a batch

	// batchTime is the time after which a batch begins no further request. The rest is for a later
	// one, when others have had their turn.
	batchTime     = 15 * time.Second
	recordTimeout = 10 * time.Second
	maxError      = 500 // bytes
	maxLog        = 50  // attempts of a delivery that are kept
)

// due is a delivery to make.
type due struct {
	Seq     int64
	Webhook uuid.UUID
	Size    int64
	IsDue   bool
}

// startBatches starts a batch for each webhook that has deliveries due, and none under way.
func (w *worker) startBatches(ctx context.Context, hooks []*active) (started bool, err error) {
	byID := map[uuid.UUID]*active{}
	var ids []uuid.UUID
	var ordered []bool
	var most []int64
	for _, h := range hooks {
		if w.isSending(h.UUID) {
			continue
		}

		size := int64(batchSize)
		if h.FailingSince != nil {
			size = probeSize
		}
		byID[h.UUID] = h
		ids, ordered, most = append(ids, h.UUID), append(ordered, h.Ordered), append(most, size)
	}

	all, err := pg.All[due](ctx, w.project.Trusted(), `
		select d.seq, w.id as webhook, d.size::bigint as size, d.next_at <= now() as is_due
		from unnest(@ids::uuid[], @ordered::bool[], @most::bigint[]) w (id, ordered, most)
		cross join lateral (
			select seq, size, next_at from socle.webhook_deliveries d
			where d.webhook = w.id and d.status = 'pending' and (w.ordered or d.next_at <= now())
			order by d.seq limit w.most
		) d
		order by w.id, d.seq`, pgx.StrictNamedArgs{"ids": ids, "ordered": ordered, "most": most})
	if err != nil {
		return false, err
	}

	batches := map[uuid.UUID]*batch{}
	for _, d := range all {
		b := batches[d.Webhook]
		if b == nil {
			b = &batch{hook: byID[d.Webhook]}
			batches[d.Webhook] = b
		}
		b.add(d)
	}

	for _, b := range batches {
		if len(b.seqs) == 0 {
			continue
		}

		started = true
		w.mu.Lock()
		w.sending[b.hook.UUID] = true
		w.mu.Unlock()
		w.batches.Go(func() { w.send(b) })
	}

	return started, nil
}

// batch are deliveries to a webhook that are loaded and made together.
type batch struct {
	hook *active
	seqs []int64
	size int64 // bytes
	full bool
}

// add adds a delivery, in order. It adds none after one that waits, or that has no room.
func (b *batch) add(d due) {
	if !d.IsDue || (len(b.seqs) > 0 && b.size+d.Size > batchBodies<<10) {
		b.full = true
	}
	if !b.full {
		b.seqs, b.size = append(b.seqs, d.Seq), b.size+d.Size
	}
}

// delivery is a delivery to make, with its body.
type delivery struct {
	Seq      int64
	Event    uuid.UUID
	Body     string
	Attempts int
}

// outcome is what became of an attempt.
type outcome struct {
	delivery delivery
	attempt  Attempt
	reply    string
	asked    time.Duration // Retry-After
}

// send makes a batch's deliveries and records their outcomes.
func (w *worker) send(b *batch) {
	defer w.wake()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()

		delete(w.sending, b.hook.UUID)
	}()

	lease, err := w.service.batches.Acquire(w.ctx, w.project.Key(w.ctx), max(batchBodies, b.size>>10))
	if err != nil {
		return // the deliveries stay pending
	}
	defer lease.Release()

	deliveries, err := pg.All[delivery](w.ctx, w.project.Trusted(), `
		select seq, event, body, attempts from socle.webhook_deliveries
		where seq = any(@seqs::bigint[]) and status = 'pending' order by seq`, pgx.StrictNamedArgs{"seqs": b.seqs})
	if err == nil {
		err = w.reload(b.hook)
	}
	if err == nil {
		err = w.record(b.hook, w.attemptAll(b.hook, deliveries))
	}
	if fault.Is(err, fault.NotFound) {
		return // deleted meanwhile
	}
	if err != nil && w.ctx.Err() == nil {
		w.service.Log.Warn("deliver webhooks", "project", w.project.UUID, "webhook", b.hook.UUID, "error", err)
	}
}

// reload reads a webhook's address and secrets again, which a member may have changed since the
// pass began. It fails with NotFound.
func (w *worker) reload(h *active) error {
	now, err := pg.One[struct {
		URL     string
		Secrets []byte
	}](w.ctx, w.project.Trusted(), `select url, secrets from socle.webhooks where id = @id`, pgx.StrictNamedArgs{"id": h.UUID})
	if err == nil {
		h.URL, h.Secrets = now.URL, now.Secrets
	}

	return err
}

// attemptAll attempts deliveries, several at a time, or in order until one fails.
func (w *worker) attemptAll(h *active, deliveries []delivery) []outcome {
	secrets, err := openSecrets(w.project, h.Secrets)
	keys := [][]byte(nil)
	if err == nil {
		keys, err = secrets.signingKeys(time.Now())
	}
	if err != nil {
		w.service.Log.Warn("open secrets of a webhook", "project", w.project.UUID, "webhook", h.UUID, "error", err)
	}

	var mu sync.Mutex
	var outcomes []outcome
	var next atomic.Int64
	var isBlocked atomic.Bool
	began := time.Now()
	attempt := func() {
		for w.ctx.Err() == nil && !isBlocked.Load() && time.Since(began) < batchTime {
			i := int(next.Add(1)) - 1
			if i >= len(deliveries) {
				return
			}

			o, ok := w.attempt(h, deliveries[i], secrets.Headers, keys)
			if !ok {
				return
			}

			isBlocked.Store(h.Ordered && !o.attempt.succeeded())
			mu.Lock()
			outcomes = append(outcomes, o)
			mu.Unlock()
		}
	}

	workers := min(concurrency, len(deliveries))
	if h.Ordered {
		workers = 1
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(attempt)
	}
	wg.Wait()

	return outcomes
}

// attempt makes a request. It reports false for one that was not made, or ended with the server.
func (w *worker) attempt(h *active, d delivery, headers map[string]string, keys [][]byte) (o outcome, ok bool) {
	o = outcome{delivery: d, attempt: Attempt{At: time.Now().UTC()}}
	var panicked error
	defer func() {
		if panicked != nil {
			w.service.Log.Error("deliver webhooks", "project", w.project.UUID, "webhook", h.UUID, "error", panicked)
			o.attempt.Error, ok = "the server failed", true
		}
	}()
	defer fault.Recover(&panicked)

	if len(keys) == 0 {
		o.attempt.Error = errLostSecrets.Detail
		return o, true
	}

	r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, h.URL, strings.NewReader(d.Body))
	if err != nil {
		o.attempt.Error = "the URL is invalid"
		return o, true
	}

	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	outbound.SignWebhook(r.Header, keys, d.Event.String(), o.attempt.At, []byte(d.Body))

	ctx, cancel := context.WithTimeout(w.ctx, outbound.Timeout)
	defer cancel()

	endpoints := w.service.Functions.Endpoints(w.project, w.service.client)
	res, err := endpoints.Do(ctx, w.project.Key(ctx).In(h.UUID.String()), r)
	if w.ctx.Err() != nil || errors.Is(err, fair.ErrBusy) {
		return o, false
	}

	o.attempt.Milliseconds = time.Since(o.attempt.At).Milliseconds()
	o.attempt.Status = res.Status
	o.attempt.Error = describe(err)
	o.reply = strings.ReplaceAll(strings.ToValidUTF8(string(res.Body), "\uFFFD"), "\x00", "\uFFFD")
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		o.asked = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}

	return o, true
}

// describe tells a member why a request failed, and nothing about the server's networks.
func describe(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "no response within " + outbound.Timeout.String()
	case errors.Is(err, outbound.ErrRedirect):
		return "a redirect to another host"
	}

	return "the endpoint can't be reached"
}

// record records outcomes, and what they say about the webhook.
func (w *worker) record(h *active, outcomes []outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), recordTimeout)
	defer cancel()

	n := len(outcomes)
	if n == 0 {
		return nil
	}

	seqs, attempts := make([]int64, n), make([]int32, n)
	states, replies, logs, delays := make([]string, n), make([]string, n), make([]string, n), make([]time.Duration, n)
	failed, dead := 0, 0
	for i, o := range outcomes {
		seqs[i], attempts[i], replies[i] = o.delivery.Seq, int32(o.delivery.Attempts), o.reply
		text, err := json.Marshal([]Attempt{o.attempt})
		if err != nil {
			return err
		}
		logs[i], states[i] = string(text), Delivered

		if o.attempt.succeeded() {
			continue
		}

		failed++
		var more bool
		if delays[i], more = retryDelay(o.delivery.Attempts+1, o.asked); more {
			states[i] = Pending
		} else {
			states[i] = Dead
			dead++
		}
	}

	if _, err := pg.Exec(ctx, w.project.Trusted(), `
		update socle.webhook_deliveries d set status = o.status, attempts = d.attempts + 1, next_at = now() + o.delay,
			ended_at = case when o.status <> 'pending' then now() end, reply = o.reply,
			log = (case when jsonb_array_length(d.log) >= @most::int then d.log - 0 else d.log end) || o.entry::jsonb
		from unnest(@seqs::bigint[], @attempts::int[], @states::text[], @replies::text[], @logs::text[], @delays::interval[])
			o (seq, attempts, status, reply, entry, delay)
		where d.seq = o.seq and d.status = 'pending' and d.attempts = o.attempts`,
		pgx.StrictNamedArgs{"seqs": seqs, "attempts": attempts, "states": states, "replies": replies, "logs": logs,
			"delays": delays, "most": maxLog}); err != nil {
		return err
	}

	w.mu.Lock()
	w.recorded += n
	w.mu.Unlock()
	w.service.add(n, failed, dead)

	return w.recordHealth(ctx, h, failed < n, dead)
}
