//go:build unix

package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/standalone"
)

// rest serves the rows of a database without the platform. It takes the settings of PostgREST.
func rest(e environment) *cobra.Command {
	var example, ready bool
	cmd := &cobra.Command{
		Use:   "rest [configuration file]",
		Short: "Serve the rows of any PostgreSQL database as PostgREST does, without the platform",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%w: rest takes one configuration file, got %q too", errUsage, args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if example {
				_, err := io.WriteString(cmd.OutOrStdout(), standalone.Example())
				return err
			}

			file := ""
			if len(args) > 0 {
				file = args[0]
			}

			c, err := standalone.Load(file, e.environ)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}

			if ready {
				where, err := c.Ready(cmd.Context())
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "OK: %s\n", where)
				}

				return err
			}

			c.Level = new(slog.LevelVar)
			c.Level.Set(c.LogLevel)
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: c.Level}))

			s, err := standalone.Start(cmd.Context(), c, log)
			if err != nil {
				return err
			}
			defer reloadOnSignal(s)()

			fmt.Fprintf(cmd.OutOrStdout(), "The rows are served at %s\n", s.URL)

			if s.AdminURL != "" {
				fmt.Fprintf(cmd.OutOrStdout(),
					"Health and metrics: %s/live, /ready, /metrics, /config, /schema_cache\n", s.AdminURL)
			}

			return s.Run(cmd.Context())
		},
	}

	cmd.Flags().BoolVar(&example, "example", false, "print a configuration file with all settings")
	cmd.Flags().BoolVar(&ready, "ready", false,
		"check through its admin server whether the server with this configuration is ready")

	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprintf(cmd.OutOrStdout(),
			"%s\n\nUsage:\n  %s\n\nFlags:\n%s\nSettings (the environment overrides the file):\n\n%s",
			cmd.Short, cmd.UseLine(), cmd.LocalFlags().FlagUsages(), standalone.Help())
	})

	return cmd
}

// reloadOnSignal reloads the schema on SIGUSR1 and the configuration on SIGUSR2, until stop is
// called.
func reloadOnSignal(s *standalone.Server) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)

	go func() {
		defer close(done)

		for received := range signals {
			if received == syscall.SIGUSR2 {
				s.ReloadConfig()
			} else {
				s.Reload()
			}
		}
	}()

	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
