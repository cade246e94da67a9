package requestlog

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
)

const (
	writeInterval       = time.Second // interval between database writes
	maxQueued           = 1 << 14     // queue length; half of it triggers a write at once
	writeTimeout        = 10 * time.Second
	dropWarningInterval = time.Minute // minimum interval between warnings about dropped requests
)

// Recorder writes the requests to projects to the platform database, in the background and in
// batches. A request only appends to a queue: it neither waits for the database nor fails with it.
// When the queue is full, requests are dropped and counted.
type Recorder struct {
	store    *platform.Store
	log      *slog.Logger
	halfFull chan struct{} // signals that the queue is half full

	boundReadAt time.Time // used by Run alone

	mu       sync.Mutex
	queue    []record
	sample   sample
	drops    int
	warnedAt time.Time
}

// NewRecorder returns a recorder. [Recorder.Run] writes the queued requests.
func NewRecorder(store *platform.Store, log *slog.Logger) *Recorder {
	return &Recorder{store: store, log: log, halfFull: make(chan struct{}, 1),
		sample: newSample(platform.DefaultRequestBytes)}
}

// record is a queued request. Texts are cut and bounded on writing.
type record struct {
	uuid, project      uuid.UUID
	user, key, endUser uuid.UUID // uuid.Nil: none
	token              bool
	at                 time.Time
	took               time.Duration
	status             int16
	client             netip.Addr
	method             string
	route              string // route pattern
	prefix             string // application interface's prefix; "": none
	target             string // escaped path behind the interface
	schema             string
	query              string // as sent
	role               string
	agent              string
	code, message      string // failure in the response
	rows               int64
	hasRows            bool
	bytes              int64
}

// maxRaw bounds a client's text in the queue, in bytes.
const maxRaw = 2 * maxQuery

// Record queues a request to a project. It ignores other requests and CORS preflights.
func (l *Recorder) Record(a httpx.Finished) {
	if a.Project == uuid.Nil || a.Method == http.MethodOptions {
		return
	}

	isFailure := a.Status == 0 || a.Status >= http.StatusBadRequest
	size := int64(rowSize + len(a.Target) + len(a.UserAgent) + len(a.ErrorText))
	if a.URL != nil {
		size += int64(len(a.URL.RawQuery))
	}

	l.mu.Lock()
	ok := l.sample.take(a.Project, min(size, maxRowSize), isFailure)
	l.mu.Unlock()

	if !ok {
		return
	}

	r, ok := newRecord(a)
	if !ok {
		return // no request ID for lack of randomness
	}

	l.mu.Lock()

	if len(l.queue) < maxQueued {
		l.queue = append(l.queue, r)
	} else {
		l.drops++
	}

	half := len(l.queue) == maxQueued/2
	l.mu.Unlock()

	if half {
		select {
		case l.halfFull <- struct{}{}:
		default:
		}
	}
}

func newRecord(a httpx.Finished) (record, bool) {
	id, err := uuid.Parse(a.ID)
	if err != nil {
		return record{}, false
	}

	r := record{uuid: id, project: a.Project, user: a.User, key: a.Key, token: a.Token, at: a.Start, took: a.Took,
		status: int16(a.Status), client: a.Client, method: a.Method, route: a.Route, prefix: a.Interface,
		target: bound(a.Target, maxTarget*4), schema: bound(a.Schema, maxTarget), role: bound(a.Role, maxTarget),
		agent: a.UserAgent, code: bound(a.ErrorCode, maxTarget), message: bound(a.ErrorText, maxRaw),
		rows: a.Rows, hasRows: a.HasRows, bytes: a.Bytes}

	if a.URL != nil {
		r.query = bound(a.URL.RawQuery, maxRaw)
	}
	if a.Status == 0 {
		r.status = httpx.StatusClientClosedRequest
	}
	if len(a.Subject) == len(uuid.Nil.String()) {
		r.endUser, _ = uuid.Parse(a.Subject) // uuid.Nil for a malformed one
	}

	return r, true
}

// bound returns the first bytes of a text, without keeping the rest in memory.
func bound(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.Clone(text[:size])
}

// Run writes queued requests until ctx ends, then flushes the queue. A write under way at that time
// ends by itself.
func (l *Recorder) Run(ctx context.Context) error {
	writing := context.WithoutCancel(ctx)
	tick := time.NewTicker(writeInterval)
	defer tick.Stop()

	var spare []record
	for {
		select {
		case <-ctx.Done():
			l.write(writing, nil)
			l.warnedAt = time.Time{}
			l.warnDropped(nil)

			return nil
		case now := <-tick.C:
			l.readBound(ctx, now)
			l.mu.Lock()
			l.sample.refill(now)
			l.mu.Unlock()
		case <-l.halfFull:
		}

		spare = l.write(writing, spare)
	}
}

// write writes the queued requests and makes spare the queue. It returns the slice for the next
// call, nil if there was nothing to write.
func (l *Recorder) write(ctx context.Context, spare []record) []record {
	l.mu.Lock()
	batch := l.queue
	if len(batch) > 0 {
		l.queue = spare[:0]
	}

	l.mu.Unlock()

	if len(batch) == 0 {
		l.warnDropped(nil)
		return nil // idle: free the queue's memory
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()

	err := appendRecords(ctx, l.store.DB(), batch)
	if err != nil {
		l.mu.Lock()
		l.drops += len(batch)
		l.mu.Unlock()
	}

	l.warnDropped(err)
	clear(batch)

	return batch
}

// warnDropped logs the number of dropped requests, at most once per dropWarningInterval.
func (l *Recorder) warnDropped(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if now := time.Now(); l.drops > 0 && now.Sub(l.warnedAt) > dropWarningInterval {
		l.log.Warn("requests to projects were not kept", "dropped", l.drops, "error", err)
		l.drops, l.warnedAt = 0, now
	}
}

// boundInterval is the interval at which a busy server reads the log's bound.
const boundInterval = 10 * time.Second

// readBound reads the log's bound from the settings, if requests wait to be written.
func (l *Recorder) readBound(ctx context.Context, now time.Time) {
	l.mu.Lock()
	idle := len(l.queue) == 0
	l.mu.Unlock()

	if idle || now.Sub(l.boundReadAt) < boundInterval {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()

	settings, err := l.store.Settings(ctx)
	if err != nil {
		return // the write reports it
	}

	l.boundReadAt = now
	l.mu.Lock()
	l.sample.perDay = settings.RequestBytes
	l.mu.Unlock()
}
