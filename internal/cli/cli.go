// Package cli is the command line: socle serve, maintenance commands, and one command for each
// operation of the platform API. Results go to stdout, everything else to stderr. The exit status
// is 0 for success, 1 for a failure, and 2 for wrong usage.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"socle/internal/api"
	"socle/internal/config"
	"socle/internal/server"
)

// errUsage marks a usage error.
var errUsage = errors.New("usage")

// Run runs the command that args name and returns the exit status.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "socle", Short: "One binary that turns PostgreSQL into a backend",
		Version: Version(), SilenceErrors: true, SilenceUsage: true,
		Args: noCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}

	root.SetArgs(append([]string{}, args...)) // with nil, cobra uses the arguments of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })

	env := environment{environ: environ}
	root.AddCommand(serve(env), migrate(env), admin(env), auditLog(env), databases(env), files(env), doctor(env),
		rest(env), openapi(), version())

	root.AddCommand(login(env), logout(env), use(env), gen(env))

	// The remote commands need the OpenAPI document, whose construction dominates the start time.
	// Skip it for commands that are already known.
	if c, _, err := root.Find(args); err != nil || c.HasSubCommands() {
		if err := addRemote(root, env); err != nil {
			fmt.Fprintln(stderr, "socle:", err)
			return 1
		}
	}

	arrange(root)

	started := false
	eachCommand(root, func(c *cobra.Command) {
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				started = true
				return run(cmd, args)
			}
		}
	})

	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}

	fail(stderr, err)

	if !started || errors.Is(err, errUsage) { // cobra rejects usage before it runs a command
		return 2
	}

	return 1
}

// eachCommand calls f for a command and all below it.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)

	for _, sub := range c.Commands() {
		eachCommand(sub, f)
	}
}

// oneLine joins the lines of an error into one.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch joined := b.String(); {
		case joined == "":
		case strings.HasSuffix(joined, ":"), strings.HasSuffix(joined, "?"):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}

		b.WriteString(strings.TrimSpace(line))
	}

	return b.String()
}

// environment is the environment of a command, as [os.Environ] returns it.
type environment struct{ environ []string }

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
	given := map[string]string{}
	for _, s := range config.Settings() {
		if f := cmd.Flags().Lookup(s.Flag); f != nil && f.Changed {
			given[s.Flag] = f.Value.String()
		}
	}

	c, err := config.Load(e.environ, given)
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
			return s.Run(cmd.Context())
		},
	}

	e.flags(cmd)
	return cmd
}

// printReady prints the server's address and, on a new install, how to create the administrator.
func printReady(w io.Writer, s *server.Server) {
	fmt.Fprintf(w, "Socle is ready at %s\nAPI reference: %s/docs\n", s.URL, s.URL)

	if s.SetupToken != "" {
		fmt.Fprintf(w,
			"\nThis install has no administrator yet. "+
				"The first user who signs up from this machine becomes its administrator:\n\n"+
				"  curl -X POST %s/users -d '{\"username\": \"ada\", \"email\": \"ada@example.com\", "+
				"\"password\": \"correct horse battery\"}'\n\n"+
				"From another machine, add \"setup_token\": \"%s\"\n", s.URL, s.SetupToken)
	}
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

func openapi() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(api.Document())
			return err
		},
	}
}

func version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "socle", Version())
			return err
		},
	}
}

// Version returns the version of the main module, or its VCS revision.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}

	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}

	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel " + s.Value
		}
	}

	return "devel"
}

// noCommand rejects arguments of a command that only groups subcommands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		hint := "see " + cmd.CommandPath() + " --help"
		cmd.SuggestionsMinimumDistance = 2 // edits

		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}

		return fmt.Errorf("%w: unknown command %q; %s", errUsage, args[0], hint)
	}
	return nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: %s takes no arguments, got %q", errUsage, cmd.Name(), args[0])
	}
	return nil
}
