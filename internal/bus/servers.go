package bus

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/socle-dev/socle/internal/pg"
)

const (
	serversChannel  = "socle_servers"
	serversInterval = 10 * time.Second // between reads of the servers, once there are several
	serversTimeout  = 5 * time.Second
)

// register writes this server's row. It counts as long as the session of conn, on which the server
// listens for those of others.
func (b *Bus) register(ctx context.Context, conn *pgx.Conn) error {
	b.mu.Lock()
	b.host = hostOf(conn.PgConn().Conn().LocalAddr())
	address := b.address
	b.mu.Unlock()

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
		pgx.StrictNamedArgs{"uuid": b.id, "address": address}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, conn, `select pg_notify(@channel, '')`, pgx.StrictNamedArgs{"channel": serversChannel})
	return err
}

// publishAddress writes the address to this server's row.
func (b *Bus) publishAddress(ctx context.Context) error {
	b.mu.Lock()
	address := b.address
	b.mu.Unlock()

	_, err := pg.Exec(ctx, b.Platform, `
		with listening as (update platform.servers set address = @address where uuid = @uuid returning uuid)
		select pg_notify(@channel, '') from listening`,
		pgx.StrictNamedArgs{"uuid": b.id, "address": address, "channel": serversChannel})
	return err
}

// registered is another server in the platform database.
type registered struct {
	UUID    uuid.UUID
	Address *string // nil: it does not listen yet
}

// others returns the other servers that run.
func (b *Bus) others(ctx context.Context) ([]registered, error) {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()

	return pg.All[registered](ctx, b.Platform, `
		select s.uuid, s.address
		from platform.servers s join pg_stat_activity a on a.pid = s.pid and a.backend_start = s.session_started
		where s.uuid <> @uuid
		order by s.uuid`,
		pgx.StrictNamedArgs{"uuid": b.id})
}

// runRoutes waits for another server, then serves until ctx ends.
func (b *Bus) runRoutes(ctx context.Context) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()

	var wg sync.WaitGroup
	defer wg.Wait()

	ticker := time.NewTicker(serversInterval)
	defer ticker.Stop()

	var t *transport
	for isLate := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		case <-ticker.C:
			if t == nil && !isLate { // a second server wakes it
				continue
			}
		}

		former := t
		err := b.follow(ctx, &t)
		isLate = err != nil
		if isLate && ctx.Err() == nil {
			b.Log.Error("could not connect to other servers", "error", err)
		}
		if t != former {
			wg.Go(func() { b.serve(serving, t) })
		}
	}
}

// follow starts the transport when there is another server, and routes it to all that listen.
func (b *Bus) follow(ctx context.Context, t **transport) error {
	others, err := b.others(ctx)
	if err != nil || (*t == nil && len(others) == 0) {
		return err
	}

	var routes []*url.URL
	for _, o := range others {
		if o.Address != nil {
			routes = append(routes, &url.URL{Scheme: "nats-route", Host: *o.Address})
		}
	}

	if *t != nil {
		return (*t).route(routes)
	}
	if *t, err = b.listen(routes); err != nil {
		return err
	}

	b.setAddress(*t)
	return b.publishAddress(ctx)
}

// setAddress sets the address by which others reach the transport.
func (b *Bus) setAddress(t *transport) {
	host := t.options.Cluster.Host
	b.mu.Lock()
	defer b.mu.Unlock()

	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = b.host
	}
	b.address = net.JoinHostPort(host, strconv.Itoa(t.options.Cluster.Port))
	if b.Advertise != nil {
		b.address = b.Advertise(b.address)
	}
}

// listenAddr returns where to listen; port -1 means a free one.
func (b *Bus) listenAddr() (host string, port int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.Addr == "" {
		return b.host, server.RANDOM_PORT, nil
	}

	host, text, err := net.SplitHostPort(b.Addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}

	return cmp.Or(host, "::"), port, nil
}

// hostOf returns the machine's address at its end of a connection to the platform database. A Unix
// socket means that database and servers share the machine.
func hostOf(local net.Addr) string {
	if tcp, ok := local.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return "127.0.0.1"
}
