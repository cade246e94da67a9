package session

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// fakePool returns a pool of one connection to a server that serve plays after the login. The rules
// of this package need no PostgreSQL; the tests of package rest run sessions on one.
func fakePool(t *testing.T, serve func(*pgproto3.Backend)) *pgxpool.Pool {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go login(conn, serve)
		}
	}()

	config, err := pgxpool.ParseConfig("postgres://user@" + l.Addr().String() + "/database?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	return pool
}

// login plays the login, or hangs up at a cancel request.
func login(conn net.Conn, serve func(*pgproto3.Backend)) {
	defer func() { _ = conn.Close() }()

	b := pgproto3.NewBackend(conn, conn)
	first, err := b.ReceiveStartupMessage()
	if _, ok := first.(*pgproto3.StartupMessage); !ok || err != nil {
		return
	}

	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: txIdle})

	if b.Flush() == nil {
		serve(b)
	}
}

// answer plays a PostgreSQL whose statements return row until the connection ends. It calls served
// before it answers a Sync or simple query.
func answer(row [][]byte, served func()) func(*pgproto3.Backend) {
	return func(b *pgproto3.Backend) {
		for {
			m, err := b.Receive()
			if err != nil {
				return
			}

			switch m := m.(type) {
			case *pgproto3.Terminate:
				return
			case *pgproto3.Parse:
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Bind:
				b.Send(&pgproto3.BindComplete{})
				if m.PreparedStatement == "socle_2" { // the settings come first
					b.Send(&pgproto3.DataRow{Values: row})
				}
			case *pgproto3.Execute:
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			case *pgproto3.Query:
				for range endRead.outcome {
					b.Send(&pgproto3.CommandComplete{CommandTag: []byte("RESET")})
				}
				b.Send(&pgproto3.ReadyForQuery{TxStatus: txIdle})
			case *pgproto3.Sync:
				b.Send(&pgproto3.ReadyForQuery{TxStatus: txIdle})
			}

			switch m.(type) {
			case *pgproto3.Query, *pgproto3.Sync:
				served()
				if b.Flush() != nil {
					return
				}
			}
		}
	}
}

// fail plays a PostgreSQL that answers each execution with an error, and then nothing before Sync.
// After a fatal error it disconnects.
func fail(e *pgproto3.ErrorResponse) func(*pgproto3.Backend) {
	return func(b *pgproto3.Backend) {
		for skipping := false; ; {
			m, err := b.Receive()
			if err != nil {
				return
			}

			if _, sync := m.(*pgproto3.Sync); skipping && !sync {
				continue
			}
			if e.Severity == "FATAL" {
				b.Send(e)
				_ = b.Flush()
				return
			}

			switch m.(type) {
			case *pgproto3.Sync:
				skipping = false
				b.Send(&pgproto3.ReadyForQuery{TxStatus: txIdle})
			case *pgproto3.Query:
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("RESET")})
				b.Send(&pgproto3.ReadyForQuery{TxStatus: txIdle})
			case *pgproto3.Parse:
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Bind:
				skipping = true
				b.Send(e)
			}

			if b.Flush() != nil {
				return
			}
		}
	}
}

// read is an execution of a read on a pool.
func read(pool *pgxpool.Pool) *Execution {
	return &Execution{Pool: pool, Deadline: time.Now().Add(time.Minute), ReadOnly: true, Streams: true,
		Step: Step{Statement: Statement{SQL: "select"}}}
}
