package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	nats "github.com/nats-io/nats.go"
)

const (
	startTimeout = 5 * time.Second
	writeTimeout = 5 * time.Second // for a route that takes nothing
	routePings   = 2 * time.Second
	inboxSize    = 16 << 10 // messages that wait for the handler; their bytes are the senders' pools

	maxClients     = 8 // this process, and strangers before they are refused
	reconnectDelay = 500 * time.Millisecond
)

// transport is a connection to NATS: to the server of this process, or to existing ones.
type transport struct {
	conn    *nats.Conn
	inbox   chan *nats.Msg
	server  *server.Server // nil: existing servers
	options *server.Options
}

// connect returns a transport that receives messages to all servers and to this one.
func (b *Bus) connect(t *transport, url string, options ...nats.Option) error {
	options = append(options, nats.Name("socle"), nats.NoEcho(), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectDelay), nats.ReconnectBufSize(-1), nats.ErrorHandler(b.lose),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.Log.Warn("connection to NATS lost, reconnecting", "error", err)
			}
		}))

	var err error
	if t.conn, err = nats.Connect(url, options...); err != nil {
		return err
	}

	t.inbox = make(chan *nats.Msg, inboxSize)
	for _, subject := range []string{b.all(), b.direct(b.id)} {
		if t.subscribe(subject) == nil {
			return errors.New("could not subscribe")
		}
	}

	return nil
}

// lose counts messages that NATS drops because they come faster than they are handled.
func (b *Bus) lose(_ *nats.Conn, _ *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		b.counts.dropped.Add(1)
		return
	}

	b.Log.Warn("messages between servers", "error", err)
}

// subscribe returns a subscription, or nil if the connection is closed.
func (t *transport) subscribe(subject string) *nats.Subscription {
	s, err := t.conn.ChanSubscribe(subject, t.inbox)
	if err != nil {
		return nil
	}

	return s
}

// serve sends and receives until ctx ends. It then says goodbye.
func (b *Bus) serve(ctx context.Context, t *transport) {
	var wg sync.WaitGroup
	wg.Go(func() { b.receive(ctx, t) })
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.work:
				b.send(t)
			}
		}
	})
	wg.Wait()

	b.send(t)
	b.write(t, b.all(), encode(byeFrame, b.id, nil))
	_ = t.conn.FlushTimeout(time.Second) // fails if NATS is out of reach, and so are the others
	t.close()
}

func (t *transport) close() {
	if t.conn != nil {
		t.conn.Close()
	}
	if t.server != nil {
		t.server.Shutdown()
		t.server.WaitForShutdown()
	}
}

// runClient connects to existing NATS servers, and serves until ctx ends.
func (b *Bus) runClient(ctx context.Context) error {
	t := &transport{}
	if err := b.connect(t, b.NATSURL, nats.RetryOnFailedConnect(true)); err != nil {
		t.close()
		return fmt.Errorf("SOCLE_NATS_URL: %w", err)
	}

	b.serve(ctx, t)
	return nil
}

// listen starts NATS in this process, with routes to other servers.
func (b *Bus) listen(routes []*url.URL) (*transport, error) {
	t := &transport{}
	var err error
	if t.options, err = b.options(routes); err != nil {
		return nil, err
	}
	if t.server, err = server.NewServer(t.options.Clone()); err != nil {
		return nil, err
	}

	t.server.SetLoggerV2(logger{b.Log}, false, false, false)
	t.server.Start()
	isReady := t.server.ReadyForConnections(startTimeout)
	addr := t.server.ClusterAddr()
	if !isReady || addr == nil {
		t.close()
		return nil, fmt.Errorf("can't listen on %s for other servers; choose another SOCLE_CLUSTER_ADDR",
			net.JoinHostPort(t.options.Cluster.Host, strconv.Itoa(max(t.options.Cluster.Port, 0))))
	}
	t.options.Cluster.Port = addr.Port

	if err := b.connect(t, "", nats.InProcessServer(t.server), nats.Token(t.options.Authorization)); err != nil {
		t.close()
		return nil, err
	}

	return t, nil
}

// route replaces the routes.
func (t *transport) route(routes []*url.URL) error {
	same := func(a, b *url.URL) bool { return *a == *b }
	if slices.EqualFunc(t.options.Routes, routes, same) {
		return nil
	}

	t.options.Routes = routes
	return t.server.ReloadOptions(t.options.Clone())
}

// options returns the options of NATS in this process. Its only client is the process itself. NATS
// starts no routes without a listener for clients: theirs is on the loopback interface, and takes
// none without the token, which only the process knows.
func (b *Bus) options(routes []*url.URL) (*server.Options, error) {
	secure, err := tlsConfig(b.Secret)
	if err != nil {
		return nil, err
	}

	host, port, err := b.listenAddr()
	if err != nil {
		return nil, err
	}

	return &server.Options{
		ServerName:      b.id.String(),
		Host:            "127.0.0.1",
		Port:            server.RANDOM_PORT,
		Authorization:   rand.Text(),
		MaxConn:         maxClients,
		NoSigs:          true,
		NoSystemAccount: true,
		MaxPayload:      maxMessage,
		Routes:          routes,
		Cluster: server.ClusterOpts{
			Name:         installName(b.Secret),
			Host:         host,
			Port:         port,
			TLSConfig:    secure,
			TLSTimeout:   writeTimeout.Seconds(),
			PoolSize:     -1, // one connection keeps the order
			PingInterval: routePings,
			MaxPingsOut:  2,
			// A server that takes nothing is dropped, whatever waits for it.
			WriteDeadline: writeTimeout,
			WriteTimeout:  server.WriteTimeoutPolicyClose,
			NoAdvertise:   true,
			Compression:   server.CompressionOpts{Mode: server.CompressionOff},
		},
	}, nil
}
