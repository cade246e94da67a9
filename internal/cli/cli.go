// Package cli is the command line: socle serve, maintenance commands, and one command for each
// operation of the platform API. Results go to stdout, everything else to stderr. The exit status
// is 0 for success, 1 for a failure, and 2 for wrong usage.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// errUsage marks a usage error.
var errUsage = errors.New("usage")

// Run runs the command that args name and returns the exit status.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "socle", Short: "One binary that turns PostgreSQL into a backend",
		SilenceErrors: true, SilenceUsage: true,
		Args: noCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}

	root.SetArgs(append([]string{}, args...)) // with nil, cobra uses the arguments of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })

	env := environment{environ: environ}
	root.AddCommand(serverCommands(env)...)
	root.AddCommand(openapi(), version(), licenses())

	root.AddGroup(&cobra.Group{ID: remoteGroup, Title: "Commands that call a server:"})
	root.AddCommand(login(env), logout(env), use(env), gen(env))

	// The remote commands need the OpenAPI document, whose construction dominates the start time.
	// Skip it for commands that are already known.
	if c, _, err := root.Find(args); err != nil || c.HasSubCommands() {
		if err := addRemote(root, env); err != nil {
			fmt.Fprintln(stderr, "socle:", err)
			return 1
		}
	}

	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}

	fmt.Fprintln(stderr, "socle:", oneLine(err.Error()))

	if errors.Is(err, errUsage) {
		return 2
	}

	return 1
}

// oneLine joins the lines of an error into one.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch joined := b.String(); {
		case joined == "":
		case strings.HasSuffix(joined, ":"):
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

func openapi() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(openAPIDocument())
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
		return fmt.Errorf("%w: unknown command %q; see %s --help", errUsage, args[0], cmd.CommandPath())
	}
	return nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: %s takes no arguments, got %q", errUsage, cmd.Name(), args[0])
	}
	return nil
}
