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

	"github.com/nats-io/nats-server/v2/server"
)

const serversInterval = 10 * time.Second // between reads of the servers, once there are several

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
	others, err := b.Servers.Others(ctx)
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

	return b.Servers.Publish(ctx, b.addressOf(*t))
}

// addressOf returns the address by which others reach the transport.
func (b *Bus) addressOf(t *transport) string {
	host := t.options.Cluster.Host
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = b.host()
	}

	address := net.JoinHostPort(host, strconv.Itoa(t.options.Cluster.Port))
	if b.Advertise != nil {
		address = b.Advertise(address)
	}

	return address
}

// listenAddr returns where to listen; port -1 means a free one.
func (b *Bus) listenAddr() (host string, port int, err error) {
	if b.Addr == "" {
		return b.host(), server.RANDOM_PORT, nil
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
