package apitest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/server"
)

// sharedServer is the server for tests that need no separate one.
type sharedServer struct {
	server   *server.Server
	config   config.Config
	log      *Log
	counter  atomic.Int64
	platform *pgxpool.Pool // pool for the platform database
	stop     func() error
}

// sharedStarted is the shared server if a test has started it.
var sharedStarted atomic.Pointer[sharedServer]

var startShared = sync.OnceValues(func() (_ *sharedServer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	if err := projectdbtest.Seed(); err != nil {
		return nil, err
	}

	url, err := pgtest.Keep(ctx, "users", createUsers)
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "socle-apitest-")
	if err != nil {
		return nil, err
	}

	s := &sharedServer{log: &Log{}}
	if s.config, err = settings(url, dir); err != nil {
		return nil, err
	}
	if s.platform, err = pgxpool.New(ctx, url); err != nil {
		return nil, err
	}
	if s.server, s.stop, err = run(ctx, s.config, slog.NewJSONHandler(s.log, logOptions)); err != nil {
		return nil, err
	}

	sharedStarted.Store(s)
	return s, nil
})

// StopShared stops the shared server if a test has started it. A TestMain passes it to
// [pgtest.Run].
func StopShared() error {
	s := sharedStarted.Load()
	if s == nil {
		return nil
	}

	s.platform.Close()
	return errors.Join(s.stop(), os.RemoveAll(s.config.DataDir))
}

// Shared returns a client for a user with a project, on a server that all such tests in the binary
// share. Tests about anything that belongs to the install (settings, jobs, logs, limits, rows in
// the platform database) need a separate server, see [New].
func Shared(t testing.TB) *API {
	t.Helper()

	a := SharedUser(t)
	a.Project = a.CreateProject("project")

	return a
}

// SharedUser is [Shared] without a project.
func SharedUser(t testing.TB) *API {
	t.Helper()

	s, err := startShared()
	if err != nil {
		t.Fatalf("start the shared server: %v", err)
	}

	a := &API{t: t, Server: s.server, URL: s.server.URL, Config: s.config, Log: s.log.fromNow(),
		doc: readDocument(t, s.server.URL), counter: &s.counter, changes: &changes{}, prepared: &prepared{},
		platform: func() *pgxpool.Pool { return s.platform }, projects: &projectPools{}, users: &users{}}

	a.auditStart = Value[int64](a, `select coalesce(max(seq), 0) from socle.audit`)

	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the shared server during the test:\n%s", a.Log.String())
		}
	})
	t.Cleanup(a.leave)
	t.Cleanup(a.projects.close)

	return a.SignUp("user")
}

// BlobDir returns the folder with the test's stored bytes: the project's on a shared server, all
// projects' on a separate one.
func (a *API) BlobDir() string {
	if a.users == nil {
		return a.Config.StorageDir()
	}

	return filepath.Join(a.Config.StorageDir(), "projects", a.Project)
}

// leave checks the audit logs for the test's changes and removes the projects.
func (a *API) leave() {
	databases := a.checkAudit()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	_, err := a.platform().Exec(ctx, `delete from platform.projects where created_by = any($1)`, a.users.list())
	if err := errors.Join(err, dropProjects(ctx, databases)); err != nil {
		a.t.Errorf("remove the projects of the test: %v", err)
	}
}

// users are the users that a test has signed up on a shared server. A nil value stands for all
// users on a server.
type users struct {
	mu    sync.Mutex
	uuids []string
}

func (u *users) add(uuid string) {
	if u == nil {
		return
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	u.uuids = append(u.uuids, uuid)
}

// list returns the UUIDs, or nil for all users.
func (u *users) list() []string {
	if u == nil {
		return nil
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	return slices.Clone(u.uuids)
}
