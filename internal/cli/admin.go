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

	"socle/internal/audit"
	"socle/internal/password"
	"socle/internal/platform"
	"socle/internal/server"
	"socle/internal/token"
)

func admin(e environment) *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Administer the install from the server's machine", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(createAdmin(e), rotateKey(e))

	return cmd
}

func createAdmin(e environment) *cobra.Command {
	var n platform.NewUser
	cmd := &cobra.Command{
		Use:   "create --username NAME --email ADDRESS [flags] < password",
		Short: "Create an administrator; the password is read from standard input", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, minimum int, _ []byte) error {
				user, err := newAdministrator(ctx, d, minimum, n, cmd.InOrStdin())
				if err != nil {
					return err
				}

				fmt.Fprintf(cmd.OutOrStdout(), "Created the administrator %s.\n", user.Username)
				return nil
			})
		},
	}

	cmd.Flags().StringVar(&n.Username, "username", "", "user name")
	cmd.Flags().StringVar(&n.Email, "email", "", "e-mail address")
	e.flags(cmd)

	return cmd
}

func newAdministrator(
	ctx context.Context, d *server.Database, minimum int, n platform.NewUser, in io.Reader,
) (platform.User, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return platform.User{}, fmt.Errorf("read the password: %w", err)
	}

	secret := strings.TrimRight(line, "\r\n")

	if n.Username, err = platform.CleanUsername(n.Username); err != nil {
		return platform.User{}, err
	}
	if n.Email, err = platform.CleanEmail(n.Email); err != nil {
		return platform.User{}, err
	}

	hasher := password.New(minimum)
	if err := hasher.Check(secret, n.Email, n.Username); err != nil {
		return platform.User{}, err
	}

	if n.PasswordHash, err = hasher.Hash(ctx, secret); err != nil {
		return platform.User{}, err
	}

	return d.Store.CreateAdministrator(ctx, n)
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
