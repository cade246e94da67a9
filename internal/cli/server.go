//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/server"
)

// serverCommands returns the commands that run or maintain a server on this machine.
func serverCommands(e environment) []*cobra.Command {
	return []*cobra.Command{serve(e), migrate(e), admin(e), auditLog(e), databases(e), files(e), doctor(e), rest(e),
		upgradePostgres(e), newDev(e)}
}

// flags adds a flag for each setting.
func (e environment) flags(cmd *cobra.Command) {
	for _, s := range config.Settings() {
		cmd.Flags().String(s.Flag, s.Default, s.Meaning)
	}

	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nUsage:\n  %s\n\n%s", cmd.Short, cmd.UseLine(), config.Help())
	})
}

// config returns the configuration and the logger that it configures.
func (e environment) config(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	values := map[string]string{}
	for _, s := range config.Settings() {
		if f := cmd.Flags().Lookup(s.Flag); f != nil && f.Changed {
			values[s.Flag] = f.Value.String()
		}
	}

	c, err := config.Load(e.environ, values)
	if err != nil {
		return c, nil, fmt.Errorf("%w: %w", errUsage, err)
	}

	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return c, slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}

	return c, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
}

func serve(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve [flags]", Short: "Serve the platform API", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := e.config(cmd)
			if err != nil {
				return err
			}

			s, err := server.Start(cmd.Context(), c, log)
			if err != nil {
				return err
			}

			printReady(cmd.OutOrStdout(), s)
			ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
			defer context.AfterFunc(cmd.Context(), func() {
				if errors.Is(context.Cause(cmd.Context()), ErrTerminated) {
					// Another signal cuts it short.
					draining, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
					s.Drain(draining, c.Drain)
					end()
				}
				stop()
			})()

			var memory sync.WaitGroup
			memory.Go(func() { server.ReleaseMemory(ctx) })

			defer memory.Wait()
			defer stop()

			return s.Run(ctx)
		},
	}

	e.flags(cmd)
	return cmd
}

// printReady prints the console's and the server's address. On a new install, the console's address
// has the set-up token in its fragment, which browsers do not send.
func printReady(w io.Writer, s *server.Server) {
	address := s.URL + "/console"
	if s.SetupToken != "" {
		address += "/sign-up#setup=" + s.SetupToken
	}

	fmt.Fprintf(w, "Console: %s\nSocle is ready at %s\nAPI reference: %s/docs\n", address, s.URL, s.URL)

	if s.SetupToken != "" {
		fmt.Fprintf(w,
			"\nThis install has no administrator yet. Open the console, or sign up from this machine:\n\n"+
				"  curl -X POST %s/users -d '{\"username\": \"ada\", \"email\": \"ada@example.com\", "+
				"\"password\": \"correct horse battery\"}'\n\n"+
				"From another machine, add \"setup_token\": \"%s\"\n", s.URL, s.SetupToken)
	}
}

func upgradePostgres(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "upgrade-postgres [flags]", Short: "Upgrade the private PostgreSQL to the newest installed version",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := e.config(cmd)
			if err != nil {
				return err
			}

			upgrade, err := server.UpgradePostgres(cmd.Context(), c, log)
			if errors.Is(err, pgserver.ErrUpToDate) {
				fmt.Fprintln(cmd.OutOrStdout(), "Nothing to do: the data have the newest installed version.")
				return nil
			}
			if err != nil {
				return err
			}

			fmt.Fprintf(cmd.OutOrStdout(), "PostgreSQL is upgraded from %d to %d, with %d databases.\n"+
				"The previous data are in %s. Remove them once Socle works as before.\n",
				upgrade.From.Major(), upgrade.To.Major(), upgrade.Databases, upgrade.Kept)

			return nil
		},
	}

	e.flags(cmd)
	return cmd
}

func migrate(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate [flags]", Short: "Migrate all databases and exit", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := e.config(cmd)
			if err != nil {
				return err
			}

			if err := server.Migrate(cmd.Context(), c, log); err != nil {
				return err
			}

			fmt.Fprintln(cmd.OutOrStdout(), "All databases are up to date.")
			return nil
		},
	}

	e.flags(cmd)
	return cmd
}
