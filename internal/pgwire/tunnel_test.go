package pgwire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/socle-dev/socle/internal/pgwire"
)

// TestTunnel checks that a stream passes unchanged in both directions, also after hours of silence
// of both users.
func TestTunnel(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		left, right := net.Pipe()
		client, server := pgwire.NewTunnel(left), pgwire.NewTunnel(right)

		echoed := make(chan struct{})
		go func() {
			defer close(echoed)

			_, _ = io.Copy(server, server)
		}()

		for _, size := range []int{1, 4, 5, 64 << 10, 200_000} {
			sent := bytes.Repeat([]byte("socle"), size/5+1)[:size]
			go func() { _, _ = client.Write(sent) }()

			got := make([]byte, size)
			if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes: got %d bytes back, %v", size, len(got), err)
			}

			silent := make(chan error)
			go func() {
				_, err := client.Read(make([]byte, 1))
				silent <- err
			}()

			<-time.After(3 * time.Hour) // of the bubble's clock
			if err := client.SetReadDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := <-silent; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v, want the deadline of the reader", err)
			}
			if err := client.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}

		client.Close()
		<-echoed

		if _, err := server.Read(make([]byte, 1)); err == nil {
			t.Error("the other end reads on after Close")
		}
		server.Close()
	})
}

// TestSilentPeer checks that a read ends when the peer neither reads nor writes.
func TestSilentPeer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		conn, frozen := net.Pipe()
		defer frozen.Close()

		tunnel, began := pgwire.NewTunnel(conn), time.Now()
		defer tunnel.Close()

		if _, err := tunnel.Read(make([]byte, 1)); !errors.Is(err, pgwire.ErrSilent) {
			t.Errorf("got %v, want ErrSilent", err)
		}
		if waited := time.Since(began); waited != pgwire.SilenceTimeout {
			t.Errorf("the read ended after %v, want %v", waited, pgwire.SilenceTimeout)
		}
	})
}

// TestCutFrame checks that half a frame is no regular end of the stream.
func TestCutFrame(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		conn, peer := net.Pipe()
		tunnel := pgwire.NewTunnel(conn)
		defer tunnel.Close()

		go func() {
			_, _ = peer.Write([]byte{0, 0, 0, 9, 'h', 'a', 'l', 'f'})
			_ = peer.Close()
		}()

		got, err := io.ReadAll(tunnel)
		if string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %q, %v; want %v", got, err, io.ErrUnexpectedEOF)
		}
	})
}
