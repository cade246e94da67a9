// Package apitest runs a complete Socle server for a test, on a separate database, and calls it
// over HTTP. It checks every response against the server's OpenAPI document.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/server"
)

// Password is every test user's password.
const Password = "correct horse battery"

// MissingUUID is a UUID that no entity has.
const MissingUUID = "01890000-0000-7000-8000-000000000000"

// API is a client for a running server, with one user's credentials.
type API struct {
	t        testing.TB
	Server   *server.Server
	URL      string
	Config   config.Config
	Log      *Log
	doc      *document
	counter  *atomic.Int64 // suffix for unique names; shared with subtests
	changes  *changes
	prepared *prepared
	platform func() *pgxpool.Pool
	projects *projectPools

	// On a shared server:
	users      *users // users that share the test's server; nil on a separate server
	auditStart int64  // last entry in the platform's audit log before the test

	Token        string // access token; "" for an anonymous client
	User         string // UUID
	Email        string
	Organization string
	Project      string // UUID, sent as X-Project with each request; "" sends no header
}

// Option changes a test server's configuration.
type Option func(*config.Config)

// New starts a server and returns a client for a user with a project. The user is not an
// administrator: the server's first user is another one.
func New(t testing.TB, options ...Option) *API {
	t.Helper()

	a := User(t, options...)
	a.Project = a.CreateProject("project")

	return a
}

// User is [New] without a project.
func User(t testing.TB, options ...Option) *API {
	t.Helper()

	a := Users(t, options...)
	a.SignUp("first") // the administrator

	return a.SignUp("user")
}

// Users starts a server and returns an anonymous client. Its first [API.SignUp] returns the
// administrator.
func Users(t testing.TB, options ...Option) *API {
	t.Helper()

	a := Start(t, configure(t, clone(t, "users", createUsers), options))
	a.prepared = &prepared{remaining: slices.Clone(accounts)}

	return a
}

// Empty starts a server without users and returns an anonymous client.
func Empty(t testing.TB, options ...Option) *API {
	t.Helper()

	return Start(t, configure(t, clone(t, "platform", migratePlatform), options))
}

// configure returns a test server's configuration on the database at url.
func configure(t testing.TB, url string, options []Option) config.Config {
	t.Helper()

	c, err := settings(url, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	for _, o := range options {
		o(&c)
	}

	return c
}

// settings returns a test server's default configuration. Rate limits are off, since all tests
// share one client address.
func settings(url, dir string) (config.Config, error) {
	return config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + dir, "SOCLE_DATABASE_URL=" + url,
		"SOCLE_SECRET_KEY=" + secretKey, "SOCLE_RATE_LIMIT=off",
		"SOCLE_OUTBOUND_NETWORKS=127.0.0.0/8", "SOCLE_LEAKED_PASSWORDS=" + filepath.Join(dir, "leaked"),
		"SOCLE_POSTGRES_BIN=" + pgtest.BinDir(), "SOCLE_DENO_BIN=" + os.Getenv("SOCLE_DENO_BIN")}, nil) // "": none
}

// Start starts a server with this configuration and stops it when the test ends.
func Start(t testing.TB, c config.Config) *API {
	t.Helper()

	a := &API{t: t, Config: c, Log: &Log{}, counter: new(atomic.Int64), changes: &changes{}, projects: &projectPools{}}
	a.platform = sync.OnceValue(a.connect)

	var projects []string // their database names
	// after the server has stopped
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		if err := dropProjects(ctx, projects); err != nil {
			t.Logf("drop the databases of projects: %v", err)
		}
	})

	a.serve()
	t.Cleanup(func() { projects = a.checkAudit() })
	t.Cleanup(a.projects.close)

	return a
}

// StartServer starts another server in the same install and returns a client with the same
// credentials. The server stops when the test ends, before a's server.
func (a *API) StartServer() *API {
	a.t.Helper()

	other := *a
	other.Config.DataDir, other.Config.StorageURL, other.Log = a.t.TempDir(), "file://"+a.Config.StorageDir(), &Log{}
	other.serve()

	return &other
}

func (a *API) serve() {
	a.t.Helper()

	s, stop, err := run(a.t.Context(), a.Config, slog.NewJSONHandler(a.Log, logOptions))
	if err != nil {
		a.t.Fatalf("start: %v", err)
	}

	a.Server, a.URL = s, s.URL

	a.t.Cleanup(func() {
		if err := stop(); err != nil && !a.t.Failed() {
			a.t.Errorf("stop: %v", err)
		}
		if a.t.Failed() {
			a.t.Logf("the server's log:\n%s", a.Log.String())
		}
	})

	a.doc = readDocument(a.t, a.URL)
}

var logOptions = &slog.HandlerOptions{Level: slog.LevelDebug}

// run starts a server. stop stops it and returns the error with which it ended.
func run(ctx context.Context, c config.Config, log slog.Handler) (s *server.Server, stop func() error, err error) {
	if s, err = server.Start(ctx, c, slog.New(log)); err != nil {
		return nil, nil, err
	}

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(running) }()

	return s, sync.OnceValue(func() error {
		cancel()
		return <-stopped
	}), nil
}

// checkAudit checks the audit logs and returns the databases for the test's projects, which live on
// the PostgreSQL server shared by all tests. It returns nil if the test has made the platform
// database unreachable.
func (a *API) checkAudit() (databases []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	platform := databaseAccess{a.Server.Services().Queue.Pool, string(a.Config.DatabaseURL), "", a.auditStart}
	var projects []uuid.UUID
	var all []string // database names
	if err := platform.use(ctx, func(q pg.Querier) (err error) {
		projects, err = pg.Values[uuid.UUID](ctx, q,
			`select uuid from platform.projects where $1::uuid[] is null or created_by = any($1)`, a.users.list())
		if err != nil {
			return err
		}

		all, err = pg.Values[string](ctx, q, `select datname::text from pg_database`)
		return err
	}); err != nil {
		return nil
	}

	logs := []databaseAccess{platform}
	for _, id := range projects {
		name := a.Server.Projects().Database(id)
		if !slices.Contains(all, name) {
			continue
		}

		databases = append(databases, name)
		logs = append(logs, databaseAccess{a.Server.Projects().Open(id).Trusted(), platform.address, name, 0})
	}

	a.changes.check(ctx, a.t, logs)
	return databases
}

// Anonymous returns an anonymous client.
func (a *API) Anonymous() *API {
	nobody := *a
	nobody.Token, nobody.User, nobody.Email, nobody.Organization = "", "", "", ""

	return &nobody
}

// WithProject returns a client that sends another project in X-Project, or no such header if
// project is "".
func (a *API) WithProject(project string) *API {
	other := *a
	other.Project = project

	return &other
}

// WithT returns the same client for a subtest.
func (a *API) WithT(t testing.TB) *API {
	other := *a
	other.t = t

	return &other
}

// SignUp returns a client for a new user: the next account in the template database, or a created
// one whose username and address begin with name.
func (a *API) SignUp(name string) *API {
	a.t.Helper()

	next, ok := a.prepared.take()
	if !ok {
		next = a.create(fmt.Sprintf("%s-%d", name, a.counter.Add(1)))
	}

	a.users.add(next.user)
	user := a.Anonymous()
	user.Project = ""
	user.Token, user.User, user.Email, user.Organization = next.token, next.user, next.email, next.organization

	return user
}

// create creates an account. Without the template database it calls the sign-up operation, which
// makes the first user an administrator.
func (a *API) create(name string) userSession {
	a.t.Helper()

	if a.prepared != nil {
		created, err := createAccount(a.t.Context(), a.Server, name, false)
		if err != nil {
			a.t.Fatalf("create user %s: %v", name, err)
		}

		return created
	}

	email := name + "@example.com"
	nobody := a.Anonymous().WithProject("")
	r := nobody.Post("/users", fmt.Sprintf(`{"username": %q, "email": %q, "password": %q}`, name, email, Password)).
		Want(201)

	return userSession{r.Metadata("token").(string), r.Get("uuid").(string), email, r.Get("organizationUuid").(string)}
}

// OtherUser returns a client for a new user who has another project, and sends a's project in
// X-Project.
func (a *API) OtherUser() *API {
	a.t.Helper()

	s := a.SignUp("stranger")
	s.CreateProject("theirs")
	s.Project = a.Project

	return s
}

// Member returns a client for a new member of a's organization, with a role: 2 owner, 3 admin, 4
// developer, 5 viewer.
func (a *API) Member(role int) *API {
	a.t.Helper()

	m := a.SignUp("member")
	a.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, $3)`,
		a.Organization, m.User, role)

	m.Project = a.Project

	return m
}

// Administrator returns a client for a new install administrator.
func (a *API) Administrator() *API {
	a.t.Helper()

	user := a.SignUp("administrator")
	a.Exec(`update platform.users set is_administrator = true where uuid = $1`, user.User)

	return user
}

// DisableProofs turns off proofs for the project's backups, for tests about another subject. A
// proof takes as long as a restore.
func (a *API) DisableProofs() {
	a.t.Helper()

	a.Put("/projects/"+a.Project+"/backup-schedule", `{"cron": "0 3 * * *", "prove": false, "prove_every_days": 0}`).
		Want(200)
}

// RunMaintenance runs the queue's periodic maintenance now. It would otherwise run within ten
// seconds.
func (a *API) RunMaintenance() {
	a.t.Helper()

	if err := a.Server.Services().Queue.CleanUp(a.t.Context()); err != nil {
		a.t.Error(err)
	}
}

// StoredFiles returns the stored files that match a pattern below the project's folder.
func (a *API) StoredFiles(pattern string) []string {
	a.t.Helper()

	names, err := filepath.Glob(filepath.Join(a.Config.StorageDir(), "projects", a.Project, pattern))
	if err != nil {
		a.t.Fatal(err)
	}

	return names
}

// CreateProject creates a project and returns the UUID.
func (a *API) CreateProject(name string) string {
	a.t.Helper()

	return a.Post("/projects", fmt.Sprintf(`{"name": "%s %d"}`, name, a.counter.Add(1))).Want(201).Get("uuid").(string)
}

// CreateTable creates a table with an integer column id and the given columns, each "name type".
func (a *API) CreateTable(name string, columns ...string) *Reply {
	a.t.Helper()

	all := []string{`{"name": "id", "type": "integer", "primary": true}`}
	for _, c := range columns {
		n, typ, _ := strings.Cut(c, " ")
		all = append(all, fmt.Sprintf(`{"name": %q, "type": %q}`, n, typ))
	}

	return a.Post("/tables", fmt.Sprintf(`{"name": %q, "columns": [%s]}`, name, strings.Join(all, ", "))).Want(201)
}

// Create posts a body and returns the created entity's UUID.
func (a *API) Create(path, body string) string {
	a.t.Helper()

	return a.Post(path, body).Want(201).Get("uuid").(string)
}

// Get sends a GET request.
func (a *API) Get(path string) *Reply { a.t.Helper(); return a.Send("GET", path, "") }

// Post sends a POST request. The body need not be well-formed JSON.
func (a *API) Post(path, body string) *Reply { a.t.Helper(); return a.Send("POST", path, body) }

// Put sends a PUT request. The body need not be well-formed JSON.
func (a *API) Put(path, body string) *Reply { a.t.Helper(); return a.Send("PUT", path, body) }

// Delete sends a DELETE request.
func (a *API) Delete(path string) *Reply { a.t.Helper(); return a.Send("DELETE", path, "") }

// Send sends a request with additional headers, each "Name: value", and reads the response.
func (a *API) Send(method, path, body string, headers ...string) *Reply {
	a.t.Helper()

	return a.Do(a.Request(method, path, strings.NewReader(body), headers...))
}

// Request returns a request without sending it.
func (a *API) Request(method, path string, body io.Reader, headers ...string) *http.Request {
	a.t.Helper()

	r, err := http.NewRequestWithContext(a.t.Context(), method, a.URL+path, body)
	if err != nil {
		a.t.Fatal(err)
	}

	if a.Token != "" {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	if a.Project != "" {
		r.Header.Set("X-Project", a.Project)
	}
	if method != "GET" {
		r.Header.Set("Content-Type", "application/json")
	}

	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}

	return r
}

// client follows no redirects: the API has none.
var client = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 32},
}

// Do sends a request, reads the response and checks it against the OpenAPI document.
func (a *API) Do(r *http.Request) *Reply {
	a.t.Helper()

	res, err := client.Do(r)
	if err != nil {
		a.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}

	return a.ReadReply(r, res)
}

// ReadReply reads the response to a request and checks it against the OpenAPI document.
func (a *API) ReadReply(r *http.Request, res *http.Response) *Reply {
	a.t.Helper()

	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatalf("%s %s: read the reply: %v", r.Method, r.URL.Path, err)
	}

	reply := &Reply{
		t:       a.t,
		request: r.Method + " " + r.URL.RequestURI(),
		Status:  res.StatusCode,
		Header:  res.Header,
		Body:    body,
	}

	if r.Method != "HEAD" && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if reply.json, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
			a.t.Fatalf("%s: the response is not JSON: %v\n%s", reply.request, err, body)
		}
	}

	a.doc.checkReply(a.t, r, reply)
	a.changes.record(reply, r.Method)

	return reply
}
