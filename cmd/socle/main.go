// Command socle turns PostgreSQL into a backend platform.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/socle-dev/socle/internal/cli"
)

func main() {
	becomeSandbox()

	ctx, cancel := context.WithCancelCause(context.Background())

	// Signals stay caught until the end, so that a second one does not interrupt the shutdown.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				cancel(cli.ErrTerminated)
			} else {
				cancel(context.Canceled)
			}
		}
	}()

	os.Exit(cli.Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
