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

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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

func notes(filter string) Change { return Change{Tables: &[]WatchedTable{{Table: "notes", Filter: filter}}} }

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
