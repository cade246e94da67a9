package server_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/leaked"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/server"
)

// inspector gives a test direct access to the databases and storage of a running server.
type inspector struct {
	t        *testing.T
	dir      string
	database *server.Database
	registry *projectdb.Registry
	blobs    *blob.Store
	queue    *queue.Queue // runs no workers; a test runs its periodic jobs
	log      *output
}

// inspect opens the databases and storage of a server. The caller closes it.
func (p *process) inspect(t *testing.T) *inspector {
	t.Helper()

	c, err := config.Load([]string{"SOCLE_DATA_DIR=" + p.dir, "SOCLE_POSTGRES_BIN=" + os.Getenv("SOCLE_POSTGRES_BIN")},
		nil)
	if err != nil {
		t.Fatal(err)
	}

	b := &inspector{t: t, dir: p.dir, log: &output{}}
	log := slog.New(slog.NewTextHandler(b.log, nil))

	var secret []byte
	if b.database, secret, err = server.OpenDatabase(t.Context(), c, log); err != nil {
		t.Fatal(err)
	}

	d := b.database
	if b.registry, err = d.Registry(t.Context(), secret, log); err != nil {
		t.Fatal(err)
	}

	if b.blobs, err = blob.OpenConfigured(c); err != nil {
		t.Fatal(err)
	}

	projects := lifecycle.New(lifecycle.Config{Store: d.Store, Registry: b.registry, Blobs: b.blobs, Log: log})
	notifications := pg.NewListener(d.Pool.Config().ConnConfig, log)
	clients := pgproxy.New(pgproxy.Config{Projects: b.registry, Platform: d.Store.DB(), Notifications: notifications,
		Log: log})

	b.queue, err = queue.New(queue.Config{Pool: d.Pool, River: d.QueuePool, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	domains := server.NewDomains(server.DomainsConfig{Database: d, Projects: b.registry, Blobs: b.blobs, Queue: b.queue,
		Accounts: account.New(account.Config{Store: d.Store, Queue: b.queue, Log: log}),
		Outbound: outbound.New(nil), Leaked: leaked.New(""), Log: log})
	server.NewServices(server.ServicesConfig{Domains: domains, Database: d, Lifecycle: projects, Clients: clients,
		Outbox:        outbox.New(outbox.Config{Store: d.Store, Projects: b.registry, Log: log}),
		Notifications: notifications, Log: log})

	return b
}

func (b *inspector) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // closes the pools at once
	_ = b.registry.Run(ctx)

	if err := b.database.Close(context.Background()); err != nil {
		b.t.Error(err)
	}
	if err := b.blobs.Close(); err != nil {
		b.t.Error(err)
	}
}

// exec runs a statement in the platform database.
func (b *inspector) exec(sql string) {
	b.t.Helper()

	if _, err := b.database.Pool.Exec(b.t.Context(), sql); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// values returns texts from the platform database.
func (b *inspector) values(sql string, args ...any) []string {
	b.t.Helper()

	all, err := pg.Values[string](b.t.Context(), b.database.Pool, sql, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}

	return all
}

// asOwner connects to a project's database as its owner and scans the single row of a query.
func (b *inspector) asOwner(project, sql string, into ...any) {
	b.t.Helper()

	conn, err := pgx.ConnectConfig(b.t.Context(),
		b.registry.Open(uuid.MustParse(project)).Owner().Config().ConnConfig.Copy())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())

	if into == nil {
		_, err = conn.Exec(b.t.Context(), sql)
	} else {
		err = conn.QueryRow(b.t.Context(), sql).Scan(into...)
	}

	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// killBackend kills a PostgreSQL backend connected to a project's database.
func (p *process) killBackend(project string) {
	p.t.Helper()

	b := p.inspect(p.t)
	defer b.close()

	all := b.values(
		`select pid::text from pg_stat_activity where datname = $1 and backend_type = 'client backend' limit 1`,
		b.registry.Database(uuid.MustParse(project)),
	)
	if len(all) == 0 {
		b.t.Error("nobody is connected")
		return
	}

	pid, err := strconv.Atoi(all[0])
	if err != nil {
		b.t.Fatal(err)
	}

	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		b.t.Error(err)
	}
}

// verifyStorage checks that files match their bytes. With settled set, it also checks that no bytes
// wait for their deletion.
func (b *inspector) verifyStorage(project string, settled bool) {
	b.t.Helper()

	v, err := object.Verify(b.t.Context(), b.registry.Open(uuid.MustParse(project)), b.blobs, true, func(
		d object.Inconsistency,
	) {
		b.t.Errorf("%s, file %s: %s", d.Key, d.File, d.What)
	})
	if err != nil || settled && v.Moving > 0 {
		b.t.Errorf("%+v, %v", v, err)
	}

	if !settled {
		return
	}

	if left, _ := filepath.Glob(filepath.Join(b.dir, "storage", ".unfinished", "*")); len(left) > 0 {
		b.t.Errorf("unfinished are %v", left)
	}
}

// advanceDay moves all retention clocks by a day, those of multipart uploads by eight, then sweeps.
func (b *inspector) advanceDay(project string) {
	b.t.Helper()

	ctx, p := b.t.Context(), b.registry.Open(uuid.MustParse(project))
	for _, sql := range []string{
		`update storage.uploads set started_at = started_at - interval '2 days'`,
		`update storage.resumable_uploads set expires_at = expires_at - interval '2 days'`,
		`update storage.multipart_uploads set expires_at = expires_at - interval '8 days'`,
	} {
		if _, err := pg.Exec(ctx, p.Trusted(), sql); err != nil {
			b.t.Fatal(err)
		}
	}

	long := time.Now().Add(-2 * projectdb.MinOrphanAge)
	if err := filepath.WalkDir(filepath.Join(b.dir, "storage"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Chtimes(name, long, long)
		}
		return err
	}); err != nil {
		b.t.Fatal(err)
	}

	if err := b.queue.Sweep(ctx); err != nil {
		b.t.Error(err)
	}
}
