// Package cli is the command line: socle serve, maintenance commands, and one command for each
// operation of the platform API. Results go to stdout, everything else to stderr. The exit status
// is 0 for success, 1 for a failure, and 2 for wrong usage.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/socle-dev/socle/docs"
	"github.com/socle-dev/socle/internal/build"
)

// errUsage marks a usage error.
var errUsage = errors.New("usage")

// ErrTerminated is the cause of a context that a service manager has ended, rather than a person at
// a terminal: a server drains first.
var ErrTerminated = errors.New("terminated")

// Run runs the command that args name and returns the exit status.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "socle", Short: "One binary that turns PostgreSQL into a backend",
		Version: build.Version(), SilenceErrors: true, SilenceUsage: true,
		Args: noCommand, RunE: func(cmd *cobra.Command, _ []string) error { return printOverview(cmd) },
	}

	root.SetArgs(append([]string{}, args...)) // with nil, cobra uses the arguments of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })

	env := environment{environ: environ}
	root.AddCommand(serverCommands(env)...)
	root.AddCommand(openapi(), version(), licenses())
	root.AddCommand(releaseCommands(env)...)
	root.AddCommand(login(env), logout(env), use(env), newExplain(env), gen(env))
	root.AddCommand(newInit(env), newLink(env), newPush(env), newPull(env), newEnv(env))

	// The construction of the remote commands dominates the start time. Skip it for known commands
	// and for other nouns.
	if c, _, err := root.Find(args); err != nil || c.HasSubCommands() {
		noun := ""
		if len(args) > 0 && findNoun(args[0]) != nil {
			noun = args[0]
		}

		if err := addRemote(root, env, noun); err != nil {
			fmt.Fprintln(stderr, "socle:", err)
			return 1
		}
	}

	root.InitDefaultCompletionCmd(args...)
	completeInBareBash(root)
	arrange(root)

	hasStarted := false
	eachCommand(root, func(c *cobra.Command) {
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				hasStarted = true
				return run(cmd, args)
			}
		}
	})

	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}

	fail(stderr, err)

	if !hasStarted || errors.Is(err, errUsage) { // cobra rejects usage before it runs a command
		return 2
	}

	return 1
}

// flagError returns the usage error of a flag, without the names of Go's functions.
func flagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	number, isNumber := errors.AsType[*strconv.NumError](err)
	if ok && isNumber {
		return fmt.Errorf("%w: invalid argument %q for \"--%s\" flag: takes a whole number", errUsage, number.Num,
			invalid.GetFlag().Name)
	}

	return fmt.Errorf("%w: %w", errUsage, err)
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

// bareBash defines what the completion script needs of the package bash-completion. The package
// replaces it.
const bareBash = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cword=$COMP_CWORD
        words=("${COMP_WORDS[@]}")
    }
fi

`

// completeInBareBash makes the script of socle completion bash work without bash-completion.
func completeInBareBash(root *cobra.Command) {
	c, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || c.Name() != "bash" {
		return
	}

	c.Long = "Print the completion script for bash. To load it: source <(socle completion bash)"
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := io.WriteString(cmd.OutOrStdout(), bareBash); err != nil {
			return err
		}

		plain, _ := cmd.Flags().GetBool("no-descriptions")
		return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), !plain)
	}
}

// environment is the environment of a command, as [os.Environ] returns it.
type environment struct{ environ []string }

func openapi() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := docs.OpenAPI()
			if err != nil {
				return err
			}

			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}

func version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "socle", build.Version())
			return err
		},
	}
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
