//go:build unix

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/server"
	"github.com/socle-dev/socle/internal/token"
)

func admin(e environment) *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Administer the install from the server's machine", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(createAdmin(e), rotateKey(e))

	return cmd
}

func createAdmin(e environment) *cobra.Command {
	var username, email string
	cmd := &cobra.Command{
		Use:   "create --username NAME --email ADDRESS [flags] < password",
		Short: "Create an administrator; the password is read from standard input", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, minimum int, _ []byte) error {
				line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return fmt.Errorf("read the password: %w", err)
				}

				user, err := d.CreateAdministrator(ctx, minimum, username, email, strings.TrimRight(line, "\r\n"))
				if err != nil {
					return err
				}

				fmt.Fprintf(cmd.OutOrStdout(), "Created the administrator %s.\n", user.Username)
				return nil
			})
		},
	}

	cmd.Flags().StringVar(&username, "username", "", "user name")
	cmd.Flags().StringVar(&email, "email", "", "e-mail address")
	e.flags(cmd)

	return cmd
}

func rotateKey(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate-key [flags]",
		Short: "Rotate the signing key of access tokens; issued tokens stay valid until they expire", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, _ int, secret []byte) error {
				if err := d.RotateKey(ctx, secret); err != nil {
					return err
				}

				fmt.Fprintln(cmd.OutOrStdout(), "Running servers use the new key within seconds.")
				return nil
			})
		},
	}

	e.flags(cmd)
	return cmd
}

// withDatabase runs f on the platform database. No server needs to run.
func (e environment) withDatabase(
	cmd *cobra.Command, f func(ctx context.Context, d *server.Database, passwordMin int, secret []byte) error,
) error {
	c, log, err := e.config(cmd)
	if err != nil {
		return err
	}

	d, secret, err := server.OpenDatabase(cmd.Context(), c, log)
	if err != nil {
		return err
	}

	ctx := audit.Begin(cmd.Context(), token.Derive(secret, audit.KeyPurpose), audit.Entry{Action: cmd.CommandPath()})
	return errors.Join(f(ctx, d, c.PasswordMin, secret), d.Close(context.WithoutCancel(cmd.Context())))
}

// checkDataDir fails if there are no data yet that a command could check.
func (e environment) checkDataDir(cmd *cobra.Command) error {
	c, _, err := e.config(cmd)
	if err != nil {
		return err
	}

	return server.CheckDataDir(c)
}
