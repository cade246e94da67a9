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
	// Signals stay caught until the end, so that a second one does not interrupt the shutdown.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
