package pgwire_test

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/pgwire"
)

// connection returns the two ends of a connection, which the test closes.
func connection(t *testing.T) (client, server net.Conn) {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}

	for _, conn := range []net.Conn{client, server} {
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}

	return client, server
}

// packet returns a startup packet with a code.
func packet(code uint32, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(binary.BigEndian.AppendUint32(b, code), body...)
}

func TestAccept(t *testing.T) {
	t.Parallel()

	const ssl, gss, cancel = 1234<<16 | 5679, 1234<<16 | 5680, 1234<<16 | 5678
	session := "user\x00ada\x00Application_Name\x00x\x00\x00"

	for name, test := range map[string]struct {
		sent       []byte
		want       pgwire.Startup
		parameters map[string]string
		answer     string
		fails      bool
	}{
		"session": {
			sent: packet(3<<16, session), want: pgwire.Startup{User: "ada", Database: "ada"},
			parameters: map[string]string{"application_name": "x"},
		},
		"encryption is declined": {
			sent: append(append(packet(ssl, ""), packet(gss, "")...), packet(3<<16, session)...),
			want: pgwire.Startup{User: "ada", Database: "ada"}, answer: "NN",
			parameters: map[string]string{"application_name": "x"},
		},
		"newer protocol": {
			sent: packet(3<<16|2, "user\x00ada\x00database\x00b\x00_pq_.x\x00\x00\x00"),
			want: pgwire.Startup{User: "ada", Database: "b"}, answer: "v",
		},
		"cancel": {
			sent: packet(cancel, "\x00\x00\x00\x07\x00\x00\x00\x09"),
			want: pgwire.Startup{Cancel: &pgwire.Key{PID: 7, Secret: 9}},
		},
		"no parameters": {sent: packet(3<<16, "\x00")},
		"protocol 2":    {sent: packet(2<<16, session), answer: "E", fails: true},
		"HTTP":          {sent: []byte("GET / HTTP/1.1\r\n\r\n"), fails: true},
		"too large":     {sent: packet(3<<16, string(make([]byte, 20_000))), fails: true},
		"cut off":       {sent: packet(3<<16, session)[:12], fails: true},
		"no end":        {sent: packet(3<<16, "user\x00ada"), fails: true},
		"endless negotiation": {
			sent: append(append(packet(ssl, ""), packet(ssl, "")...), packet(ssl, "")...), answer: "NNN", fails: true,
		},
		"cancel, long key": {sent: packet(cancel, string(make([]byte, 36))), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, server := connection(t)
			if _, err := client.Write(test.sent); err != nil {
				t.Fatal(err)
			}
			if err := client.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}

			_, got, err := pgwire.Accept(server, nil)
			server.Close()

			if (err != nil) != test.fails {
				t.Fatalf("got %v, want a failure: %v", err, test.fails)
			}

			if err == nil && (got.User != test.want.User || got.Database != test.want.Database ||
				!maps.Equal(got.Parameters, test.parameters)) {
				t.Errorf("got %+v, want %+v with %v", got, test.want, test.parameters)
			}
			if err == nil && test.want.Cancel != nil && (got.Cancel == nil || *got.Cancel != *test.want.Cancel) {
				t.Errorf("got the key %v, want %v", got.Cancel, test.want.Cancel)
			}

			answer, _ := io.ReadAll(client) // reset, if the server left bytes unread
			if len(answer) < len(test.answer) || string(answer[:len(test.answer)]) != test.answer {
				t.Errorf("got the answer %q, want %q", answer, test.answer)
			}
		})
	}
}

// TestStartupEncodes checks that an encoded startup is accepted as it was.
func TestStartupEncodes(t *testing.T) {
	t.Parallel()

	for _, want := range []pgwire.Startup{
		{User: "ada", Database: "b", Parameters: map[string]string{"options": "-c x=y"}},
		{Cancel: &pgwire.Key{PID: 1 << 30, Secret: 1<<32 - 1}},
	} {
		client, server := connection(t)
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write(text); err != nil {
			t.Fatal(err)
		}

		_, got, err := pgwire.Accept(server, nil)
		switch {
		case err != nil:
			t.Error(err)
		case want.Cancel != nil:
			if got.Cancel == nil || *got.Cancel != *want.Cancel {
				t.Errorf("got %v, want %v", got.Cancel, want.Cancel)
			}
		case got.User != want.User || got.Database != want.Database || !maps.Equal(got.Parameters, want.Parameters):
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// connect connects pgx over a connection.
func connect(ctx context.Context, conn net.Conn, password string) error {
	config, err := pgconn.ParseConfig("host=127.0.0.1 user=ada sslmode=disable max_protocol_version=latest password=" + password)
	if err != nil {
		return err
	}

	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	session, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}

	return session.Close(ctx)
}

// TestAuthenticate checks that a client with the right password, and no other, is accepted, and
// that the client accepts the server.
func TestAuthenticate(t *testing.T) {
	t.Parallel()

	stored, err := pgwire.ParseVerifier(pgwire.NewVerifier("secret", pgwire.Iterations).String())
	if err != nil {
		t.Fatal(err)
	}

	for password, right := range map[string]bool{"secret": true, "Secret": false} {
		client, server := connection(t)
		answered := make(chan error, 1)
		go func() {
			defer server.Close()

			_, startup, err := pgwire.Accept(server, nil)
			if err == nil {
				err = pgwire.Authenticate(server, stored)
			}
			if err == nil && startup.User == "ada" {
				err = pgwire.Send(server, &pgproto3.AuthenticationOk{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
			}

			answered <- err
		}()

		got := connect(t.Context(), client, password)
		if err := <-answered; (err == nil) != right || (!right && err != pgwire.ErrPassword) || (got == nil) != right {
			t.Errorf("password %q: got %v on the server and %v on the client", password, err, got)
		}
	}
}

func TestParseVerifier(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"", "md5abc", "SCRAM-SHA-256$x:YQ==$YQ==:YQ==", "SCRAM-SHA-256$1:YQ==$YQ==", "SCRAM-SHA-256$1:YQ==$?:YQ==",
	} {
		if _, err := pgwire.ParseVerifier(text); err == nil {
			t.Errorf("%q is a verifier", text)
		}
	}
}

// TestAuthenticateGarbage checks that no message of a client is believed or panics.
func TestAuthenticateGarbage(t *testing.T) {
	t.Parallel()

	verifier := pgwire.NewVerifier("secret", 1)
	first := func(text string) []byte {
		b, err := (&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte(text)}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	then := func(text string) []byte {
		b, err := (&pgproto3.SASLResponse{Data: []byte(text)}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	for _, sent := range [][]byte{
		[]byte("Q\x00\x00\x00\x08abcd"),
		[]byte("p\x7f\xff\xff\xff"),
		[]byte("p\x00\x00\x00\x04"),
		first(""), first("n,,"), first("n,,n=,r="), first("p=tls-unique,,n=,r=abc"), first("n,a=root,n=,r=abc"),
		append(first("n,,n=,r=abc"), then("")...),
		append(first("n,,n=,r=abc"), then("c=biws,r=abc,p=AAAA")...),
		append(first("y,,n=,r=abc"), then("c=biws,r=abc,p=!")...),
	} {
		client, server := connection(t)
		if _, err := client.Write(sent); err != nil {
			t.Fatal(err)
		}
		if err := client.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}

		if err := pgwire.Authenticate(server, verifier); err == nil {
			t.Errorf("%q is accepted", sent)
		}
	}
}
