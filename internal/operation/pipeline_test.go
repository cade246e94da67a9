package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// memoryStore is a [Store] in memory.
type memoryStore struct {
	mu       sync.Mutex
	statuses map[uuid.UUID]string
	claims   map[string]*memoryClaim
	position int64
	done     map[string]bool // hashes of keys whose change was committed
}

type memoryClaim struct{ fingerprint, answer []byte }

func (s *memoryStore) ProjectStatus(_ context.Context, project uuid.UUID) (string, error) {
	if status, ok := s.statuses[project]; ok {
		return status, nil
	}
	return "", fault.Missing()
}

func (s *memoryStore) AuditPosition(context.Context) (audit.Position, error) {
	return audit.Position{Log: "platform", Entries: s.position}, nil
}

func (s *memoryStore) ClaimRequest(_ context.Context, c platform.Claim) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	earlier := s.claims[string(c.Key)]
	switch {
	case earlier == nil:
		s.claims[string(c.Key)] = &memoryClaim{fingerprint: c.Fingerprint}
		return nil, nil
	case !bytes.Equal(earlier.fingerprint, c.Fingerprint):
		return nil, fault.New(fault.Conflict, "reused").WithCode("idempotency_key_reused")
	case earlier.answer == nil:
		return nil, fault.New(fault.Conflict, "busy").WithCode("in_progress")
	}

	return earlier.answer, nil
}

func (s *memoryStore) KeepAnswer(_ context.Context, key []byte, _ int, answer []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.claims[string(key)].answer = answer

	return nil
}

func (s *memoryStore) ReleaseRequest(_ context.Context, key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.claims, string(key))

	return nil
}

func (s *memoryStore) CheckRequestDone(_ context.Context, auditKey string) error {
	if s.done[auditKey] {
		return audit.AlreadyDone(nil)
	}
	return nil
}

// fixture is a pipeline over a store in memory.
type fixture struct {
	*testing.T
	*Pipeline

	store  *memoryStore
	caller account.Caller // that the bearer token "valid" identifies, within any scope
	scope  account.Scope  // of the last request with a bearer token

	respondent bool     // requests are those of a respondent
	backups    []string // operations that waited for a backup
	backup     error    // result of the wait
}

var (
	projectUUID = uuid.MustParse("00000000-0000-0000-0000-000000000001")
	userUUID    = uuid.MustParse("00000000-0000-0000-0000-000000000002")
)

func newFixture(t *testing.T) *fixture {
	t.Helper()

	log := slog.New(slog.DiscardHandler)

	// Nothing connects: a pool of a project opens when a handler uses it.
	server, err := pg.PrimaryPoolConfig("postgres://localhost/none", 1)
	if err != nil {
		t.Fatal(err)
	}

	projects := projectdb.NewRegistry(projectdb.Config{Server: server, Secret: []byte("secret"), Connections: 1,
		Log: log})

	f := &fixture{T: t, store: &memoryStore{
		statuses: map[uuid.UUID]string{projectUUID: platform.Active},
		claims:   map[string]*memoryClaim{},
		done:     map[string]bool{},
	}}
	f.Pipeline = New(Config{Store: f.store, Projects: projects, Bodies: httpx.NewBodyPool(1 << 30), Log: log,
		ClaimHolder: func() uint32 { return 1 },
		Bearer: func(_ context.Context, token string, scope account.Scope) (account.Caller, error) {
			f.scope = scope
			if token != "valid" {
				return account.Caller{}, fault.New(fault.Unauthenticated, "no").WithCode("invalid_token")
			}

			return f.caller, nil
		},
		Respondent: func(context.Context, *http.Request) (account.Caller, bool, error) {
			return account.Caller{Project: uuid.NullUUID{UUID: projectUUID, Valid: true}}, f.respondent, nil
		},
		Signer: func(ctx context.Context, _ *http.Request) (context.Context, account.Caller, error) {
			return ctx, f.caller, nil
		},
		AwaitBackup: func(_ context.Context, d backup.DestructiveRequest, _ <-chan time.Time) error {
			f.backups = append(f.backups, d.Operation)
			return f.backup
		}})

	return f
}

// as sets the caller's role in the project.
func (f *fixture) as(role account.Role) {
	f.caller = account.Caller{User: userUUID, Role: role, Status: platform.Active,
		Project: uuid.NullUUID{UUID: projectUUID, Valid: true}}
}

// answer is a response of the pipeline.
type answer struct {
	*httptest.ResponseRecorder

	t        *testing.T
	Content  any
	Metadata struct {
		Code   string
		Detail string
		Fields []fault.Field
	}
}

// send sends a request with a bearer token. A header is written as "Name: value"; an empty value
// removes it.
func (f *fixture) send(method, path, body string, headers ...string) *answer {
	f.Helper()

	r := httptest.NewRequestWithContext(f.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer valid")
	r.Header.Set("Content-Type", "application/json")

	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Del(name)
		if value != "" {
			r.Header.Add(name, value)
		}
	}

	a := &answer{ResponseRecorder: httptest.NewRecorder(), t: f.T}
	f.ServeHTTP(a, r)

	if a.Body.Len() > 0 && strings.HasPrefix(a.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(a.Body.Bytes(), a); err != nil {
			f.Fatalf("%s %s: %v in %s", method, path, err, a.Body)
		}
	}

	return a
}

// want checks the status and the code of a failure, "" for none.
func (a *answer) want(status int, code string) *answer {
	a.t.Helper()

	if a.Code != status || a.Metadata.Code != code {
		a.t.Errorf("got %d %q, want %d %q: %s", a.Code, a.Metadata.Code, status, code, a.Body)
	}

	return a
}

// field checks the code of the failure's only field.
func (a *answer) field(name, code string) {
	a.t.Helper()

	if len(a.Metadata.Fields) != 1 || a.Metadata.Fields[0].Name != name || a.Metadata.Fields[0].Code != code {
		a.t.Errorf("got fields %v, want %s %s", a.Metadata.Fields, name, code)
	}
}

var allErrors = []int{400, 401, 403, 404, 409, 412, 413, 422, 429, 500}

type noInput struct{}

// declare registers an operation in a project that returns its caller's role.
func (f *fixture) declare(method, path string, access Access) {
	HandleInProject(f.Pipeline, Operation{ID: strings.ToLower(method), Method: method, Path: path, Access: access,
		Errors: allErrors, Success: 200},
		func(ctx context.Context, p *projectdb.Project, _ *noInput) (string, error) {
			return Caller(ctx).Role.String() + " " + p.UUID.String(), nil
		}, nil)
}

func TestRoutes(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.as(account.Viewer)
	f.declare("GET", "/things", Project(account.Viewer))

	f.send("GET", "/things", "", "X-Project: "+projectUUID.String()).want(200, "")
	f.send("GET", "/nothing", "").want(404, "unknown_route")
	f.send("GET", "//things", "").want(400, "invalid_path")

	if got := f.send("PUT", "/things", "").want(405, "method_not_allowed").Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("got Allow %q", got)
	}
}
