//go:build unix

package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/server"
	"github.com/socle-dev/socle/internal/token"
)

func auditLog(e environment) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Verify the audit logs", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(verifyAudit(e))

	return cmd
}

func verifyAudit(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Verify that no entry of the audit logs was changed, added or removed outside Socle", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := e.checkDataDir(cmd); err != nil {
				return err
			}

			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, _ int, secret []byte) error {
				return verifyLogs(ctx, d, secret, cmd.OutOrStdout())
			})
		},
	}

	e.flags(cmd)
	return cmd
}

// errTampered makes the command exit with 1.
var errTampered = errors.New("an audit log was tampered with")

func verifyLogs(ctx context.Context, d *server.Database, secret []byte, out io.Writer) error {
	key := token.Derive(secret, audit.KeyPurpose)
	intact := true

	report, err := verifyLog(ctx, d.Pool, key)
	if err != nil {
		return err
	}

	intact = printReport(out, "platform", report) && intact

	projects, err := d.Store.ActiveProjects(ctx)
	if err != nil {
		return err
	}

	registry, err := d.Registry(ctx, secret, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}

	for _, id := range projects {
		report, err := verifyLog(ctx, registry.Open(id).Trusted(), key)
		if err != nil {
			return fmt.Errorf("project %s: %w", id, err)
		}

		intact = printReport(out, "project "+id.String(), report) && intact
	}

	if !intact {
		return errTampered
	}

	return nil
}

// verifyLog chains the pending entries of a log and verifies the chain.
func verifyLog(ctx context.Context, pool *pgxpool.Pool, key []byte) (audit.Report, error) {
	if err := audit.Chain(ctx, pool, key); err != nil {
		return audit.Report{}, err
	}

	return audit.Check(ctx, pool, key)
}

func printReport(out io.Writer, log string, r audit.Report) (intact bool) {
	for _, fault := range r.Faults {
		fmt.Fprintf(out, "%s: %s\n", log, fault)
	}

	fmt.Fprintf(out, "%s: %d entries, the last one %d %s\n", log, r.Entries, r.Head.Seq,
		hex.EncodeToString(r.Head.Hash))

	return len(r.Faults) == 0
}
