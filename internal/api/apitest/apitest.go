// Package apitest runs the whole of Socle for a test, on a database of its own, and talks to it as a client
// does: over HTTP. It checks every reply against the OpenAPI document that the server itself hands out.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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

	"socle/internal/config"
	"socle/internal/pg"
	"socle/internal/pgtest"
	"socle/internal/server"
)

// Password is the password of every user that a test makes.
const Password = "correct horse battery"

// Missing is a UUID that nothing has.
const Missing = "01890000-0000-7000-8000-000000000000"

// API is a running Socle, seen by one user.
type API struct {
	t        testing.TB
	Server   *server.Server
	URL      string
	Config   config.Config
	Log      *Log
	doc      *document
	counter  *atomic.Int64 // of names, which subtests may need at the same time
	changes  *changes
	prepared *prepared
	platform func() *pgxpool.Pool

	Token        string // of the user; "" for nobody
	User         string // UUID
	Email        string
	Organization string
	Project      string // UUID; sent as X-Project with each request, unless ""
}

// Option changes the configuration of a test's server.
type Option func(*config.Config)

// New starts a server, and signs a user up who has a project. The user is no administrator: another
// one was there before.
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

// Users starts a server whose first user [API.SignUp] is to return, and after that the others. The API returned is nobody's.
func Users(t testing.TB, options ...Option) *API {
	t.Helper()

	a := Start(t, configure(t, pgtest.Clone(t, "users", fillUsers), options))
	a.prepared = &prepared{left: slices.Clone(accounts)}

	return a
}

// Empty starts a server that has no user yet. The API returned is nobody's.
func Empty(t testing.TB, options ...Option) *API {
	t.Helper()

	return Start(t, configure(t, pgtest.Clone(t, "platform", fillPlatform), options))
}

// configure returns the settings of a test's server on this database.
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

// settings are those of a server for tests: limits off, so that tests don't meet by their address.
func settings(url, dir string) (config.Config, error) {
	return config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + dir, "SOCLE_DATABASE_URL=" + url,
		"SOCLE_SECRET_KEY=" + secretKey, "SOCLE_RATE_LIMIT=off", "SOCLE_POSTGRES_BIN=" + pgtest.Programs()}, nil)
}

// Start starts a server with this configuration. It stops when the test ends.
func Start(t testing.TB, c config.Config) *API {
	t.Helper()

	a := &API{t: t, Config: c, Log: &Log{}, counter: new(atomic.Int64), changes: &changes{}}
	a.platform = sync.OnceValue(a.connect)

	var projects []string // their databases
	t.Cleanup(func() {    // when it has stopped
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		if err := pgtest.Drop(ctx, projects...); err != nil {
			t.Logf("drop the databases of projects: %v", err)
		}
	})

	a.serve()
	t.Cleanup(func() { projects = a.audited() })

	return a
}

// Another starts another server of the same install, seen by the same user. It stops when the test ends, before this one does.
func (a *API) Another() *API {
	a.t.Helper()

	other := *a
	other.Config.DataDir, other.Config.StorageURL, other.Log = a.t.TempDir(), "file://"+a.Config.StorageDir(), &Log{}
	other.serve()

	return &other
}

// serve starts the server.
func (a *API) serve() {
	a.t.Helper()

	s, err := server.Start(a.t.Context(), a.Config,
		slog.New(slog.NewJSONHandler(a.Log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		a.t.Fatalf("start: %v", err)
	}

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()

	a.Server, a.URL = s, s.URL

	a.t.Cleanup(func() {
		stop()

		if err := <-stopped; err != nil && !a.t.Failed() {
			a.t.Errorf("stop: %v", err)
		}
		if a.t.Failed() {
			a.t.Logf("the server's log:\n%s", a.Log.String())
		}
	})

	a.doc = readDocument(a.t, a.URL)
}

// audited looks at what the test's server has noted of its changes, and returns the databases of its projects, which live on the
// cluster of all tests. A platform database that can't be reached was taken away by the test itself.
func (a *API) audited() (databases []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	platform := connections{a.Server.Queue().Pool, string(a.Config.DatabaseURL), ""}
	var projects []uuid.UUID
	var all []string // names of databases
	if err := platform.use(ctx, func(q pg.Querier) (err error) {
		projects, err = pg.Values[uuid.UUID](ctx, q, `select uuid from platform.projects`)
		if err != nil {
			return err
		}

		all, err = pg.Values[string](ctx, q, `select datname::text from pg_database`)
		return err
	}); err != nil {
		return nil
	}

	logs := []connections{platform}
	for _, id := range projects {
		name := a.Server.Projects().Database(id)
		if !slices.Contains(all, name) {
			continue
		}

		databases = append(databases, name)
		logs = append(logs, connections{a.Server.Projects().Open(id).Trusted(), platform.address, name})
	}

	a.changes.check(ctx, a.t, logs)
	return databases
}

// Nobody is a client without a token.
func (a *API) Nobody() *API {
	nobody := *a
	nobody.Token, nobody.User, nobody.Email, nobody.Organization = "", "", "", ""

	return &nobody
}

// In is the same user with another project in X-Project; "" sends no such header.
func (a *API) In(project string) *API {
	other := *a
	other.Project = project

	return &other
}

// With is the same client for another test: a subtest of the one that made it.
func (a *API) With(t testing.TB) *API {
	other := *a
	other.t = t

	return &other
}

// SignUp returns a user that nobody else in the test is: the next account of the template database,
// or a new one, whose name and address begin with name.
func (a *API) SignUp(name string) *API {
	a.t.Helper()

	next, ok := a.prepared.take()
	if !ok {
		next = a.create(fmt.Sprintf("%s-%d", name, a.counter.Add(1)))
	}

	user := a.Nobody()
	user.Project = ""
	user.Token, user.User, user.Email, user.Organization = next.token, next.user, next.email, next.organization

	return user
}

// create creates an account. Without a template database it goes through the sign-up operation, which
// makes the first user the administrator.
func (a *API) create(name string) account {
	a.t.Helper()

	if a.prepared != nil {
		created, err := createAccount(a.t.Context(), a.Server, name, false)
		if err != nil {
			a.t.Fatalf("create user %s: %v", name, err)
		}

		return created
	}

	email := name + "@example.com"
	nobody := a.Nobody().In("")
	r := nobody.Post("/users", fmt.Sprintf(`{"username": %q, "email": %q, "password": %q}`, name, email, Password)).
		Want(201)

	return account{r.Metadata("token").(string), r.Get("uuid").(string), email, r.Get("organizationUuid").(string)}
}

// Stranger is a new user who has a project of their own, and asks about this API's project.
func (a *API) Stranger() *API {
	a.t.Helper()

	s := a.SignUp("stranger")
	s.CreateProject("theirs")
	s.Project = a.Project

	return s
}

// Member is a new user with a role in the organization of this API's user: 2 owner, 3 admin, 4 developer, 5 viewer.
func (a *API) Member(role int) *API {
	a.t.Helper()

	m := a.SignUp("member")
	a.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, $3)`,
		a.Organization, m.User, role)

	m.Project = a.Project

	return m
}

// Unproven has backups of the API's project not proven, for a test that is about something else: to prove one takes as long as to restore it.
func (a *API) Unproven() {
	a.t.Helper()

	a.Put("/projects/"+a.Project+"/backup-schedule", `{"cron": "0 3 * * *", "prove": false, "prove_every_days": 0}`).
		Want(200)
}

// Tidy makes the round of the server's queue that is due within ten seconds.
func (a *API) Tidy() {
	a.t.Helper()

	if err := a.Server.Queue().Tidy(a.t.Context()); err != nil {
		a.t.Error(err)
	}
}

// Stored returns the files in the storage's folder that are kept for the project, by a pattern below its own folder.
func (a *API) Stored(pattern string) []string {
	a.t.Helper()

	names, err := filepath.Glob(filepath.Join(a.Config.StorageDir(), "projects", a.Project, pattern))
	if err != nil {
		a.t.Fatal(err)
	}

	return names
}

// CreateProject makes a project and returns its UUID.
func (a *API) CreateProject(name string) string {
	a.t.Helper()

	return a.Post("/projects", fmt.Sprintf(`{"name": "%s %d"}`, name, a.counter.Add(1))).Want(201).Get("uuid").(string)
}

// CreateTable makes a table of an integer column id and the given columns, each a name and a type.
func (a *API) CreateTable(name string, columns ...string) *Reply {
	a.t.Helper()

	all := []string{`{"name": "id", "type": "integer", "primary": true}`}
	for _, c := range columns {
		n, typ, _ := strings.Cut(c, " ")
		all = append(all, fmt.Sprintf(`{"name": %q, "type": %q}`, n, typ))
	}

	return a.Post("/tables", fmt.Sprintf(`{"name": %q, "columns": [%s]}`, name, strings.Join(all, ", "))).Want(201)
}

// Create posts a body and returns the UUID of what it made.
func (a *API) Create(path, body string) string {
	a.t.Helper()

	return a.Post(path, body).Want(201).Get("uuid").(string)
}

// Get, Post, Put and Delete send a request. A body is JSON as it stands, well-formed or not.
func (a *API) Get(path string) *Reply { a.t.Helper(); return a.Send("GET", path, "") }

// Post sends a POST request.
func (a *API) Post(path, body string) *Reply { a.t.Helper(); return a.Send("POST", path, body) }

// Put sends a PUT request.
func (a *API) Put(path, body string) *Reply { a.t.Helper(); return a.Send("PUT", path, body) }

// Delete sends a DELETE request.
func (a *API) Delete(path string) *Reply { a.t.Helper(); return a.Send("DELETE", path, "") }

// Send sends a request with further headers, each "Name: value", and reads the reply.
func (a *API) Send(method, path, body string, headers ...string) *Reply {
	a.t.Helper()

	return a.Do(a.Request(method, path, strings.NewReader(body), headers...))
}

// Request makes a request without sending it.
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

// client follows no redirect: the API has none.
var client = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 32},
}

// Do sends a request and reads the reply, which must be as the OpenAPI document says.
func (a *API) Do(r *http.Request) *Reply {
	a.t.Helper()

	res, err := client.Do(r)
	if err != nil {
		a.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}

	return a.Reply(r, res)
}

// Reply reads the answer to a request, which must be as the OpenAPI document says.
func (a *API) Reply(r *http.Request, res *http.Response) *Reply {
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
			a.t.Fatalf("%s: the reply is not JSON: %v\n%s", reply.request, err, body)
		}
	}

	a.doc.check(a.t, r, reply)
	a.changes.note(reply, r.Method)

	return reply
}
