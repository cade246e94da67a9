package lifecycle_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// install is an install with one user and two lifecycles: healthy, and one whose connections can
// be cut.
type install struct {
	t            *testing.T
	user         uuid.UUID
	organization uuid.UUID
	healthy      *lifecycle.Service
	failing      *lifecycle.Service
	cut          *cutter
	server       *pgx.ConnConfig // of the projects of healthy
}

func newInstall(t *testing.T) *install {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}

		return errors.Join(platform.Migrate(ctx, conn), conn.Close(ctx))
	})

	i := &install{t: t, user: projectdbtest.UUID(t), organization: projectdbtest.UUID(t), cut: &cutter{}}
	i.healthy = i.service(url, nil)
	i.failing = i.service(url, i.cut)

	conn := pgtest.Connect(t, i.healthy.Registry.Platform().PlatformConfig())
	if _, err := conn.Exec(t.Context(), `insert into platform.organizations (uuid, name) values ($1, 'o')`,
		i.organization); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		for _, id := range i.projects() {
			if _, err := i.healthy.Destroy(context.Background(), id); err != nil {
				t.Errorf("destroy: %v", err)
			}
		}
	})

	return i
}

func (i *install) service(url string, cut *cutter) *lifecycle.Service {
	i.t.Helper()

	c, err := pg.PoolConfig(url, 10)
	if err != nil {
		i.t.Fatal(err)
	}

	if cut != nil {
		cut.wrap(&c.ConnConfig.DialFunc)
	}

	config := projectdbtest.Config(i.t, 8)
	config.Server = c.Copy()
	if cut == nil {
		i.server = config.Server.ConnConfig
	}

	pool, err := pgxpool.NewWithConfig(i.t.Context(), c)
	if err != nil {
		i.t.Fatal(err)
	}

	blobs, err := blob.Open(i.t.TempDir())
	if err != nil {
		i.t.Fatal(err)
	}

	i.t.Cleanup(func() {
		pool.Close()
		blobs.Close()
	})

	return lifecycle.New(lifecycle.Config{Store: platform.New(pool), Registry: projectdbtest.Open(i.t, config),
		Blobs: blobs, Log: config.Log})
}

// projects returns the projects in the platform database.
func (i *install) projects() []uuid.UUID {
	i.t.Helper()

	conn, err := pgx.ConnectConfig(context.Background(), i.healthy.Registry.Platform().PlatformConfig())
	if err != nil {
		i.t.Fatal(err)
	}
	defer conn.Close(context.Background())

	all, err := pg.Values[uuid.UUID](context.Background(), conn, `select uuid from platform.projects`)
	if err != nil {
		i.t.Fatal(err)
	}

	return all
}

// exec executes a statement in the platform database.
func (i *install) exec(sql string) {
	i.t.Helper()

	conn, err := pgx.ConnectConfig(context.Background(), i.healthy.Registry.Platform().PlatformConfig())
	if err != nil {
		i.t.Fatal(err)
	}
	defer conn.Close(context.Background())

	if _, err := conn.Exec(context.Background(), sql); err != nil {
		i.t.Fatal(err)
	}
}

func (i *install) create(ctx context.Context, l *lifecycle.Service) (platform.Project, error) {
	return l.Create(ctx, i.user, platform.NewProject{Organization: i.organization, Name: "the project"})
}

// finish runs Finish, as a server does at start, until no project is locked by another.
func (i *install) finish() {
	i.t.Helper()

	pgtest.Eventually(i.t, "all projects are finished", func() bool {
		if err := i.healthy.Finish(i.t.Context()); err != nil {
			i.t.Fatalf("finish: %v", err)
		}

		unfinished, err := i.healthy.Store.UnfinishedProjects(i.t.Context(), projectdb.Version(), 7*24*time.Hour)
		if err != nil {
			i.t.Fatal(err)
		}

		return len(unfinished) == 0
	})
}

// check fails the test unless each project is usable and nothing is left of the others that this
// test has created.
func (i *install) check(created ...uuid.UUID) {
	i.t.Helper()

	known := map[uuid.UUID]bool{}
	for _, id := range i.projects() {
		known[id] = true

		p := i.healthy.Registry.Open(id)
		if _, err := p.Owner().Exec(i.t.Context(), "create table if not exists public.usable ()"); err != nil {
			i.t.Errorf("a project is not usable: %v", err)
		}

		pgtest.Value[int](i.t, p.Trusted(), "select count(*)::int from storage.files")

		for _, l := range pgcluster.ProjectLogins {
			projectdbtest.Connect(i.t, p, l).Close(i.t.Context())
		}
	}

	conn := pgtest.Connect(i.t, i.healthy.Registry.Platform().PlatformConfig())
	for _, id := range created {
		remaining := pgtest.Value[int](i.t, conn, `
			select (select count(*) from pg_database where datname = $1)::int + (select count(*) from pg_roles where rolname like $1 || '_%')::int`, i.healthy.Registry.Database(id))
		if !known[id] && remaining > 0 {
			i.t.Errorf("got %d remaining databases and roles of a removed project, want 0", remaining)
		}
	}
}

// cutter cuts all connections that it wraps after a number of writes, and rejects later ones.
type cutter struct {
	armed     atomic.Bool
	remaining atomic.Int64
}

var errCut = errors.New("the connection was cut")

func (c *cutter) after(writes int) {
	c.remaining.Store(int64(writes))
	c.armed.Store(true)
}

func (c *cutter) heal() { c.armed.Store(false) }

func (c *cutter) isCut() bool { return c.armed.Load() && c.remaining.Load() <= 0 }

func (c *cutter) wrap(dial *pgconn.DialFunc) {
	next := *dial
	*dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.isCut() {
			return nil, errCut
		}

		conn, err := next(ctx, network, address)
		return &cuttableConn{conn, c}, err
	}
}

type cuttableConn struct {
	net.Conn
	cutter *cutter
}

func (c *cuttableConn) Write(b []byte) (int, error) {
	if c.cutter.armed.Load() && c.cutter.remaining.Add(-1) < 0 {
		return 0, errors.Join(errCut, c.Close())
	}
	return c.Conn.Write(b)
}

// stride is the number of writes between two cuts. It is prime, so that cuts hit all kinds of
// writes.
const stride = 5

// TestCreateConnects checks that the first request to a new project finds a connection.
func TestCreateConnects(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	made, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	if pool := i.healthy.Registry.Open(made.UUID).Trusted(); pool.Stat().IdleConns() != 1 {
		t.Errorf("got %d idle connections, want 1", pool.Stat().IdleConns())
	}
}

// TestCreateInterrupted interrupts the creation of a project after a growing number of writes. The
// next start completes or undoes it.
func TestCreateInterrupted(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	for writes, whole := 1, false; !whole; writes += stride {
		i.cut.after(writes)
		p, err := i.create(t.Context(), i.failing)
		whole = !i.cut.isCut()
		i.cut.heal()

		if whole && err != nil {
			t.Fatalf("create without a cut: %v", err)
		}

		i.finish()
		i.check(p.UUID)

		for _, id := range i.projects() { // the name is free again after the deletion
			if _, err := i.healthy.Remove(t.Context(), id, i.user); err != nil {
				t.Fatalf("cut after %d writes: delete: %v", writes, err)
			}
		}
	}
}

// TestRemoveInterrupted is TestCreateInterrupted for the removal.
func TestRemoveInterrupted(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	for writes, whole := 1, false; !whole; writes += stride {
		p, err := i.create(t.Context(), i.healthy)
		if err != nil {
			t.Fatalf("cut after %d writes: create again: %v", writes, err)
		}

		i.cut.after(writes)
		_, err = i.failing.Remove(t.Context(), p.UUID, i.user)
		whole = !i.cut.isCut()
		i.cut.heal()

		if whole && err != nil {
			t.Fatalf("remove without a cut: %v", err)
		}

		i.finish()
		i.check(p.UUID)

		if len(i.projects()) == 0 {
			continue
		}

		if err == nil {
			t.Fatalf("cut after %d writes: remove succeeded, but the project still exists", writes)
		}
		if _, err := i.healthy.Remove(t.Context(), p.UUID, i.user); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCreateCanceled cancels the request that creates a project and checks that nothing is left
// when the call returns.
func TestCreateCanceled(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ctx, cancel := context.WithCancel(t.Context())
	step := i.server.DialFunc

	var dials atomic.Int32
	i.server.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == 1 { // the first dial goes to the project's database; the platform's pool is separate
			cancel()
		}
		return step(ctx, network, address)
	}

	p, err := i.create(ctx, i.healthy)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}

	if left := i.projects(); len(left) > 0 {
		t.Errorf("got %d projects, want 0", len(left))
	}

	i.check(p.UUID)
}

// TestFinishAtOnce runs Finish for the same unfinished projects on four servers at once.
func TestFinishAtOnce(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	var made []uuid.UUID
	for n := range 4 {
		p, err := i.healthy.Store.CreateProject(t.Context(), i.user,
			platform.NewProject{Organization: i.organization, Name: string(rune('a' + n))})
		if err != nil {
			t.Fatal(err)
		}

		made = append(made, p.UUID)
	}

	if _, err := i.healthy.Provision(t.Context(), made[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := i.healthy.Store.ActivateProject(t.Context(), made[0], projectdb.Version()); err != nil {
		t.Fatal(err)
	}
	if _, err := i.healthy.Store.StartPurge(t.Context(), made[0], i.user); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := i.healthy.Finish(t.Context()); err != nil {
				t.Errorf("finish: %v", err)
			}
		})
	}

	wg.Wait()
	i.finish()
	i.check(made...)

	if got := len(i.projects()); got != 3 {
		t.Errorf("got %d projects, want 3", got)
	}
}

// TestUpgrade finishes a project with an older database whose owner has changed privileges.
func TestUpgrade(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	p, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	conn := pgtest.Connect(t, i.healthy.Registry.Platform().PlatformConfig())
	old := func() {
		t.Helper()

		if _, err := conn.Exec(t.Context(), `update platform.projects set schema_version = 0`); err != nil {
			t.Fatal(err)
		}
	}

	tenant := projectdbtest.Connect(t, i.healthy.Registry.Open(p.UUID), pgcluster.Owner)
	pgtest.Exec(t, tenant, `revoke usage on schema public from anon`)
	old()
	i.finish()

	if pgtest.Value[bool](t, tenant, `select has_schema_privilege('anon', 'public', 'usage')`) {
		t.Error("the upgrade granted a privilege that the owner had revoked")
	}

	pgtest.Exec(t, tenant, `drop schema public cascade`)
	old()
	i.finish()
}

func TestRemoveUnknown(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	if _, err := i.healthy.Remove(t.Context(), projectdbtest.UUID(t), i.user); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
}
