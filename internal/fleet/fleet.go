// Package fleet knows the servers of an install that are running, and divides among them what they
// share: the connections of PostgreSQL, and the workers that keep it busy.
//
// A server has a row in platform.servers, which counts as long as its LISTEN session exists. There
// it claims connections. A server that shrinks gives up its claim when it has closed what is beyond
// it, and a server that grows takes only what no other claims. So all servers together never open
// more than PostgreSQL accepts, also while one comes or goes.
package fleet

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

const (
	channel = "socle_servers" // notified when a server comes, claims, or publishes its address

	claimInterval  = 10 * time.Second       // without notifications, for servers that were killed
	settleInterval = 100 * time.Millisecond // while this server has more than its share
	claimTimeout   = 5 * time.Second
)

// Config has the dependencies of [Servers].
type Config struct {
	Platform      DB
	Notifications *pg.Listener // from the platform database
	Log           *slog.Logger
}

// DB is the platform database.
type DB interface {
	pg.Querier
	pg.Beginner
}

// Servers are the running servers of an install, of which this process is one. It is safe for
// concurrent use.
type Servers struct {
	Config
	ID uuid.UUID // this server's

	claimed  chan struct{} // another server may have come, gone or claimed
	onChange []func()

	mu            sync.Mutex
	host, address string
}

// New returns the servers. This one registers when c.Notifications runs, which it must not yet.
func New(c Config) *Servers {
	s := &Servers{Config: c, ID: uuid.New(), claimed: make(chan struct{}, 1)}
	s.OnChange(func() {
		select {
		case s.claimed <- struct{}{}:
		default:
		}
	})
	c.Notifications.OnConnect(s.register)
	c.Notifications.Handle(channel, func(string) {
		for _, f := range s.onChange {
			f()
		}
	})

	return s
}

// OnChange registers a function that is called when the servers may have changed, before the
// notifications run. It must not block.
func (s *Servers) OnChange(f func()) { s.onChange = append(s.onChange, f) }

// register writes this server's row. It counts as long as the session of conn, on which the server
// listens for those of others.
func (s *Servers) register(ctx context.Context, conn *pgx.Conn) error {
	s.mu.Lock()
	s.host = hostOf(conn.PgConn().Conn().LocalAddr())
	address := s.address
	s.mu.Unlock()

	if _, err := pg.Exec(ctx, conn, `
		with gone as (
			delete from platform.servers s
			where s.uuid <> @uuid and not exists (
				select from pg_stat_activity a where a.pid = s.pid and a.backend_start = s.session_started))
		insert into platform.servers (uuid, pid, session_started, address)
		select @uuid, a.pid, a.backend_start, nullif(@address, '')
		from pg_stat_activity a
		where a.pid = pg_backend_pid()
		on conflict (uuid) do update
		set pid = excluded.pid, session_started = excluded.session_started, address = excluded.address`,
		pgx.StrictNamedArgs{"uuid": s.ID, "address": address}); err != nil {
		return err
	}

	return notify(ctx, conn)
}

func notify(ctx context.Context, q pg.Querier) error {
	_, err := pg.Exec(ctx, q, `select pg_notify(@channel, '')`, pgx.StrictNamedArgs{"channel": channel})
	return err
}

// Host returns this machine's address in the network of the platform database.
func (s *Servers) Host() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.host
}

// Publish publishes the host:port at which this server reads messages of others.
func (s *Servers) Publish(ctx context.Context, address string) error {
	s.mu.Lock()
	s.address = address
	s.mu.Unlock()

	_, err := pg.Exec(ctx, s.Platform, `
		with listening as (update platform.servers set address = @address where uuid = @uuid returning uuid)
		select pg_notify(@channel, '') from listening`,
		pgx.StrictNamedArgs{"uuid": s.ID, "address": address, "channel": channel})
	return err
}

// Server is another server that is running.
type Server struct {
	UUID        uuid.UUID
	Address     *string // nil: it does not listen yet
	Connections *int    // its claim; nil: none yet, or a server of an earlier release
}

// Others returns the other servers that are running.
func (s *Servers) Others(ctx context.Context) ([]Server, error) {
	return running(ctx, s.Platform, s.ID)
}

// Running counts the servers that are running.
func Running(ctx context.Context, platform pg.Querier) (int, error) {
	all, err := running(ctx, platform, uuid.Nil)
	return len(all), err
}

func running(ctx context.Context, platform pg.Querier, except uuid.UUID) ([]Server, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()

	return pg.All[Server](ctx, platform, `
		select s.uuid, s.address, s.connections
		from platform.servers s join pg_stat_activity a on a.pid = s.pid and a.backend_start = s.session_started
		where s.uuid <> @except
		order by s.uuid`,
		pgx.StrictNamedArgs{"except": except})
}

// hostOf returns the machine's address at its end of a connection to the platform database. A Unix
// socket means that database and servers share the machine.
func hostOf(local net.Addr) string {
	if tcp, ok := local.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return "127.0.0.1"
}
