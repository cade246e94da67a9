//go:build unix

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"
)

// TestInterrupt: Ctrl-C, which cancels the context of a command, ends a question and a wait for
// another push. The process itself stays, since a server drains.
func TestInterrupt(t *testing.T) {
	t.Parallel()

	silent, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer open.Close()

	ctx, interrupt := context.WithCancel(t.Context())
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(silent)
	cmd.SetErr(io.Discard)

	e := environment{environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
	unlock, err := e.lockRepository(ctx, "/a", func() { t.Error("a free lock is busy") })
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	ends := make(chan error, 3)
	go func() {
		_, err := ask(cmd, "Continue?")
		ends <- err
	}()
	go func() {
		_, err := readInput(cmd, "-")
		ends <- err
	}()
	busy := make(chan struct{})
	go func() {
		_, err := e.lockRepository(ctx, "/a", func() { close(busy) })
		ends <- err
	}()

	<-busy
	interrupt()
	for range cap(ends) {
		if err := <-ends; !errors.Is(err, errCanceled) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}

	unlock()
	again, err := e.lockRepository(t.Context(), "/a", func() {})
	if err != nil {
		t.Fatal(err)
	}
	again()
}
