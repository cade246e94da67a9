package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// world is a project with a table, whose webhooks a service delivers when the test says so.
type world struct {
	*testing.T
	install platformtest.Install
	project *projectdb.Project
	owner   *pgx.Conn
	service *Service
	mailed  *mailedAdmins
}

// mailedAdmins counts mails to admins.
type mailedAdmins struct {
	sync.Mutex
	n int
}

func (m *mailedAdmins) MailAdmins(context.Context, uuid.UUID, string, map[string]string) error {
	m.Lock()
	defer m.Unlock()

	m.n++
	return nil
}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{T: t, install: platformtest.New(t), project: projectdbtest.New(t), mailed: &mailedAdmins{}}
	w.owner = projectdbtest.Connect(t, w.project, pgcluster.Owner)
	w.install.Exec(`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ($1, $2, 'project', 'active', $3, $3)`, w.project.UUID, w.install.Organization, w.install.User)
	w.service = w.newService()
	w.exec(`set search_path = public; create table notes (id int primary key, body text)`)

	return w
}

// newService returns another server's service.
func (w *world) newService() *Service {
	return New(Config{Platform: w.install.DB, Projects: projectdbtest.Registry(w), Admins: w.mailed,
		Outbound: outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Log: slog.Default()})
}

func (w *world) exec(sql string) {
	w.Helper()
	pgtest.Exec(w, w.owner, sql)
}

// execTrusted runs a statement on the platform's login.
func (w *world) execTrusted(sql string, args ...any) {
	w.Helper()

	if _, err := w.project.Trusted().Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(name, url string, change Change) Webhook {
	w.Helper()

	change.Name, change.URL = &name, &url
	hook, _, err := w.service.Create(w.Context(), w.project, change)
	if err != nil {
		w.Fatal(err)
	}

	return hook
}

func notes(filter string) Change {
	return Change{Tables: &[]WatchedTable{{Table: "notes", Filter: filter}}}
}

// deliver makes passes of a service's worker until there is nothing to do.
func (w *world) deliver(s *Service) {
	w.Helper()

	k := s.newWorker(w.Context(), w.project.UUID)
	defer k.stop()

	for {
		progressed, _, err := k.pass()
		if err != nil {
			w.Fatal(err)
		}

		k.batches.Wait()
		if !progressed {
			return
		}
	}
}

// makeDue makes pending deliveries due.
func (w *world) makeDue() {
	w.Helper()
	w.execTrusted(`update socle.webhook_deliveries set next_at = now() where status = 'pending'`)
}

// endpoint is an endpoint that keeps what it gets.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(n int) int // status of request n, from 1 on
	bodies []string
	ids    []string
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()

	e := &endpoint{answer: func(int) int { return http.StatusNoContent }}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)

		e.mu.Lock()
		defer e.mu.Unlock()

		e.bodies, e.ids = append(e.bodies, string(body)), append(e.ids, r.Header.Get("Webhook-Id"))
		w.WriteHeader(e.answer(len(e.bodies)))
	}))
	t.Cleanup(e.Close)

	return e
}

// summaries returns what the endpoint has got: the type's middle, and the row's id.
func (e *endpoint) summaries() []string {
	e.mu.Lock()
	defer e.mu.Unlock()

	var all []string
	for _, body := range e.bodies {
		var got struct {
			Type string
			Data struct{ Record, Old struct{ ID int } }
		}
		_ = json.Unmarshal([]byte(body), &got)
		typ := strings.TrimSuffix(strings.TrimPrefix(got.Type, "socle."), ".v1")
		all = append(all, fmt.Sprint(typ, " ", max(got.Data.Record.ID, got.Data.Old.ID)))
	}

	return all
}

func (w *world) want(e *endpoint, want ...string) {
	w.Helper()

	got := e.summaries()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
}

// TestDelivery: a webhook gets what commits after its creation, and what its filter selects.
func TestDelivery(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`insert into notes values (1, 'before')`)
	all, some := newEndpoint(t), newEndpoint(t)
	w.create("all", all.URL, notes(""))
	w.create("some", some.URL, notes("body=like.%x%"))

	w.exec(`insert into notes values (2, 'x'), (3, 'y'); update notes set body = 'xx' where id = 1; delete from notes where id = 3`)
	w.deliver(w.service)
	w.want(all, "row.inserted 2", "row.inserted 3", "row.updated 1", "row.deleted 3")
	w.want(some, "row.inserted 2", "row.updated 1")

	// A table that is dropped has no events, and harms no other one.
	w.exec(`drop table notes; create table notes (id int primary key)`)
	w.deliver(w.service)
}

// TestRetry: a delivery that fails is made again with the same ID, up to the last attempt, and then
// when a member says so.
func TestRetry(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	e.answer = func(int) int { return http.StatusInternalServerError }
	hook := w.create("hook", e.URL, notes(""))
	w.exec(`insert into notes values (1)`)
	for range len(retryDelays) + 1 {
		w.deliver(w.service)
		w.makeDue()
	}
	w.deliver(w.service)

	if n := len(slices.Compact(e.ids)); len(e.bodies) != len(retryDelays)+1 || n != 1 {
		t.Errorf("got %d requests with %d IDs", len(e.bodies), n)
	}
	all, _, err := ListDeliveries(t.Context(), w.project, hook.UUID, Filter{Status: Dead, Limit: 10})
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	d, err := GetDelivery(t.Context(), w.project, hook.UUID, all[0].UUID)
	if err != nil || len(d.Log) != len(retryDelays)+1 || d.Log[0].Status != 500 || d.Attempts != len(d.Log) {
		t.Errorf("got %+v, %v", d, err)
	}
	if hook, err = Get(t.Context(), w.project, hook.UUID); err != nil || hook.FailingSince == nil {
		t.Errorf("got %+v, %v", hook, err)
	}

	e.answer = func(int) int { return http.StatusOK }
	if _, err := w.service.Retry(t.Context(), w.project, hook.UUID, d.UUID); err != nil {
		t.Fatal(err)
	}
	w.deliver(w.service)
	if d, err = GetDelivery(t.Context(), w.project, hook.UUID, d.UUID); err != nil || d.Status != Delivered {
		t.Errorf("got %+v, %v", d, err)
	}
	if hook, err = Get(t.Context(), w.project, hook.UUID); err != nil || hook.FailingSince != nil {
		t.Errorf("got %+v, %v", hook, err)
	}
}

// TestOrder: an ordered webhook waits for the delivery that fails, another one does not.
func TestOrder(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	ordered, other := newEndpoint(t), newEndpoint(t)
	for _, e := range []*endpoint{ordered, other} {
		e.answer = func(n int) int { return map[bool]int{true: http.StatusBadGateway, false: http.StatusOK}[n == 1] }
	}
	yes := true
	w.create("ordered", ordered.URL, Change{Tables: notes("").Tables, Ordered: &yes})
	w.create("other", other.URL, notes(""))

	w.exec(`insert into notes select generate_series(1, 5)`)
	w.deliver(w.service)
	if got := ordered.summaries(); !slices.Equal(got, []string{"row.inserted 1"}) {
		t.Errorf("got %q", got)
	}
	if got := other.summaries(); len(got) != 5 {
		t.Errorf("got %q", got)
	}

	w.makeDue()
	w.deliver(w.service)
	if got := strings.Join(ordered.summaries(), ", "); got != "row.inserted 1, row.inserted 1, row.inserted 2, "+
		"row.inserted 3, row.inserted 4, row.inserted 5" {
		t.Errorf("got %s", got)
	}
}

// TestGap: a webhook is told of events that it can't get.
func TestGap(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	w.create("hook", e.URL, notes(""))
	w.exec(`insert into notes values (1)`)
	w.execTrusted(`insert into socle.events_removed (xid) select max(xid) from socle.events`)
	w.deliver(w.service)
	w.want(e, "webhook.gap 0")

	w.exec(`insert into notes values (2)`)
	w.deliver(w.service)
	w.want(e, "webhook.gap 0", "row.inserted 2")

	// A database that was restored has another place.
	w.execTrusted(`update socle.webhook_states set cursor = 'MDAwMDAwMDEtMSA4NTQ6ODU0Og'`)
	w.deliver(w.service)
	w.want(e, "webhook.gap 0", "row.inserted 2", "webhook.gap 0")
}

// TestPause: a paused webhook gets nothing, and what happened meanwhile once it is resumed.
func TestPause(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	hook := w.create("hook", e.URL, notes(""))
	yes, no := true, false
	update := func(c Change) {
		t.Helper()
		if _, err := w.service.Update(t.Context(), w.project, hook.UUID, c); err != nil {
			t.Fatal(err)
		}
	}

	update(Change{Paused: &yes})
	w.exec(`insert into notes values (1)`)
	w.deliver(w.service)
	w.want(e)
	w.execTrusted(`select socle.release('0')`) // keeps the capture for a day
	update(Change{Paused: &no})
	w.deliver(w.service)
	w.want(e, "row.inserted 1")

	// After a longer pause the capture has ended.
	update(Change{Paused: &yes})
	w.execTrusted(`update socle.webhooks set paused_at = now() - interval '25 hours'; select socle.release('0')`)
	w.exec(`insert into notes values (2)`)
	update(Change{Paused: &no})
	w.exec(`insert into notes values (3)`)
	w.deliver(w.service)
	w.want(e, "row.inserted 1", "webhook.gap 0", "row.inserted 3")
}

// TestFailing: a webhook without a success for days is paused, and the admins get a mail.
func TestFailing(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	e.answer = func(int) int { return http.StatusNotFound }
	hook := w.create("hook", e.URL, notes(""))
	w.exec(`insert into notes values (1)`)
	w.deliver(w.service)
	w.execTrusted(`update socle.webhook_states set failing_since = now() - interval '73 hours'`)
	w.makeDue()
	w.deliver(w.service)

	hook, err := Get(t.Context(), w.project, hook.UUID)
	if err != nil || !hook.Paused || hook.PauseReason != "failures" || w.mailed.n != 1 {
		t.Errorf("got %+v, %v, %d mails", hook, err, w.mailed.n)
	}
}

// TestTwoServers: two servers that both believe to deliver for a project make one delivery of each
// event, and a killed one's lease goes to another.
func TestTwoServers(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	w.create("hook", e.URL, notes(""))
	w.exec(`insert into notes select generate_series(1, 300)`)

	other := w.newService()
	var all sync.WaitGroup
	for _, s := range []*Service{w.service, other} {
		all.Go(func() { w.deliver(s) })
	}
	all.Wait()

	ids := slices.Clone(e.ids)
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 300 {
		t.Errorf("got %d events, want 300", n)
	}

	for _, s := range []*Service{w.service, other, w.service} {
		projects, err := s.renew(t.Context())
		if want := s == w.service; err != nil || slices.Contains(projects, w.project.UUID) != want {
			t.Errorf("got %v, %v, want a lease: %t", projects, err, want)
		}
	}
	w.install.Exec(`update platform.webhook_projects set leased_until = now()`)
	if projects, err := other.renew(t.Context()); err != nil || len(projects) != 1 {
		t.Errorf("after the lease: got %v, %v", projects, err)
	}
	w.install.SetStatus(w.project.UUID, "paused")
	if projects, err := other.renew(t.Context()); err != nil || len(projects) != 0 {
		t.Errorf("of a paused project: got %v, %v", projects, err)
	}
}

// TestRoom: an endpoint that is down holds a bounded number of deliveries, and gets the rest from
// the log.
func TestRoom(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	e.answer = func(int) int { return http.StatusServiceUnavailable }
	hook := w.create("hook", e.URL, notes(""))
	w.exec(`insert into notes select generate_series(1, 4000)`)
	w.deliver(w.service)

	hook, err := Get(t.Context(), w.project, hook.UUID)
	if err != nil || hook.Pending < maxPending || hook.Pending > maxPending+500 {
		t.Errorf("got %d pending deliveries, %v", hook.Pending, err)
	}

	e.mu.Lock()
	e.ids, e.answer = nil, func(int) int { return http.StatusOK }
	e.mu.Unlock()
	w.makeDue()
	w.deliver(w.service)
	slices.Sort(e.ids)
	if n := len(slices.Compact(e.ids)); n != 4000 {
		t.Errorf("got %d events, want 4000", n)
	}
}

// TestPrune: ended deliveries are removed that are too old or too many, pending ones never.
func TestPrune(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	hook := w.create("hook", "https://example.com", notes(""))
	w.execTrusted(`insert into socle.webhook_deliveries (webhook, event, type, body, size, status, ended_at)
		select $1, gen_random_uuid(), '', n::text, 1, case n when 1 then 'pending' else 'dead' end,
			case when n in (9000, 9001) then now() - interval '8 days' else now() end from generate_series(1, 10005) n`, hook.UUID)
	if err := prune(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}

	var left, oldest int
	if err := w.project.Trusted().QueryRow(t.Context(), `select count(*), min(body::int) filter (where status = 'dead')
		from socle.webhook_deliveries`).Scan(&left, &oldest); err != nil {
		t.Fatal(err)
	}
	if left != 9999 || oldest != 6 {
		t.Errorf("got %d deliveries, the oldest %d, want 9999 and 6", left, oldest)
	}
}

// TestQueues: a webhook takes the messages of its queues once, as far as it has room, and gives up
// what its endpoint never takes.
func TestQueues(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	w.create("tasks", e.URL, Change{Queues: &[]string{"tasks", "absent"}})
	w.deliver(w.service)

	w.exec(`select pgmq.create('tasks'); select pgmq.send('tasks', jsonb_build_object('n', n)) from generate_series(1, 40) n`)
	w.deliver(w.service)
	w.deliver(w.newService())
	if n := len(e.bodies); n != 40 {
		t.Fatalf("got %d requests, want 40", n)
	}
	var body struct {
		Type string
		Data struct {
			Queue   string
			Message struct{ N int }
		}
	}
	if err := json.Unmarshal([]byte(e.bodies[0]), &body); err != nil || body.Type != event.QueueMessage ||
		body.Data.Queue != "tasks" || body.Data.Message.N == 0 {
		t.Errorf("got %s, %v", e.bodies[0], err)
	}
	if n := pgtest.Value[int64](t, w.owner, `select queue_length from pgmq.metrics('tasks')`); n != 0 {
		t.Errorf("the queue has %d messages, want none", n)
	}
	if n := w.service.Stats().Messages; n != 40 {
		t.Errorf("got %d messages counted, want 40", n)
	}

	// A message that was read by a server that was killed then: its delivery is there.
	w.exec(`insert into pgmq.q_tasks (msg_id, enqueued_at, vt, message) overriding system value
		values (100, '2026-01-01', now(), '{"n": 100}')`)
	w.deliver(w.service)
	w.exec(`insert into pgmq.q_tasks (msg_id, enqueued_at, vt, message) overriding system value
		values (100, '2026-01-01', now(), '{"n": 100}')`)
	w.deliver(w.service)
	if n := len(e.bodies); n != 41 {
		t.Errorf("a message that was read twice: got %d requests, want 41", n)
	}

	w.exec(`insert into pgmq.q_tasks (vt, message) values (now(), jsonb_build_object('long', repeat('x', 1 << 20)))`)
	w.deliver(w.service)
	if got := e.bodies[len(e.bodies)-1]; !strings.Contains(strings.ReplaceAll(got, " ", ""), `"oversized":true`) {
		t.Errorf("a long message: got %.300s", got)
	}

	w.exec(`insert into pgmq.q_tasks (vt, message) values (now(), (repeat('[', 12000) || repeat(']', 12000))::jsonb)`)
	w.deliver(w.service)
	if got := e.bodies[len(e.bodies)-1]; !strings.Contains(got, `"oversized":true`) || strings.Contains(got, "[[[") {
		t.Errorf("a message of 12,000 levels: got %.300s", got)
	}
}

// TestQuotaFact: a webhook is told once a day that the database is near its quota.
func TestQuotaFact(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	w.create("quota", e.URL, Change{Events: &[]string{event.QuotaNear}})
	w.project.RecordSize(79, 100)
	w.deliver(w.service)
	w.want(e)

	w.project.RecordSize(80, 100)
	w.deliver(w.service)
	w.deliver(w.newService())
	w.want(e, "quota.near 0")
	if want := `"data":{"database_bytes":80,"max_database_bytes":100}`; !strings.Contains(e.bodies[0], want) {
		t.Errorf("got %s, want %s", e.bodies[0], want)
	}

	// Two servers write the same fact. A replay has it once.
	for range 2 {
		if _, err := event.WriteQuota(t.Context(), w.project, time.Now().Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	w.deliver(w.service)
	w.want(e, "quota.near 0", "quota.near 0")

	late := w.create("late", e.URL, Change{Events: &[]string{event.QuotaNear}})
	whole := event.Range{Before: time.Now().Add(48 * time.Hour)}
	out, err := w.service.ReplayLog(t.Context(), w.project, late.UUID, whole)
	if err != nil || out.Deliveries != 2 {
		t.Errorf("replay: got %+v, %v, want 2 deliveries", out, err)
	}
}

// TestReplayLog: the log is replayed as far as a webhook has room, and then from there on.
func TestReplayLog(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	e := newEndpoint(t)
	w.create("first", e.URL, notes("id=eq.0"))
	w.exec(`insert into notes select n from generate_series(1, 1700) n`)
	hook := w.create("late", e.URL, notes(""))

	whole := event.Range{Before: time.Now().Add(time.Hour)}
	out, err := w.service.ReplayLog(t.Context(), w.project, hook.UUID, whole)
	if err != nil || out.Deliveries != 1000 || out.Next == "" || out.Incomplete {
		t.Fatalf("got %+v, %v, want 1000 deliveries and a cursor", out, err)
	}
	_, err = w.service.ReplayLog(t.Context(), w.project, hook.UUID, whole)
	if f := fault.Of(err); f.Kind != fault.Conflict || f.Code != "too_many_pending" {
		t.Errorf("while all wait: got %v", err)
	}
	w.deliver(w.service)

	whole.Cursor = out.Next
	out, err = w.service.ReplayLog(t.Context(), w.project, hook.UUID, whole)
	if err != nil || out.Deliveries != 700 || out.Next != "" {
		t.Fatalf("the rest: got %+v, %v, want 700 deliveries and no cursor", out, err)
	}
	w.deliver(w.service)
	if n := len(e.summaries()); n != 1700 {
		t.Errorf("the endpoint got %d events, want 1700", n)
	}

	// What the log has lost is no secret.
	w.execTrusted(`insert into socle.events_removed (xid) values ('5')`)
	out, err = w.service.ReplayLog(t.Context(), w.project, hook.UUID, event.Range{Before: time.Unix(0, 0)})
	if err != nil || !out.Incomplete || out.Deliveries != 0 {
		t.Errorf("after a removal: got %+v, %v", out, err)
	}
}
