package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// addSQL adds socle sql run, and makes socle sql a shell.
func addSQL(group *cobra.Command, d *description, o operation, e environment) {
	run := newRemote(d, o, "run", e)
	cmd := run.command()
	cmd.Use, cmd.Args = "run [FILE|-]", cobra.MaximumNArgs(1)
	cmd.Short = "Run SQL from a flag, a file or standard input"
	cmd.ValidArgsFunction = nil // a file
	cmd.Flags().String("file", "", "file with the SQL, - for standard input")
	exclude(cmd, "query", "file", "body")
	lift(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, _ := cmd.Flags().GetString("file")
		if len(args) > 0 {
			if file != "" || run.flags["query"].given() {
				return fmt.Errorf("%w: give the SQL once: as a file, by --file or by --query", errUsage)
			}
			file = args[0]
		}

		return run.runSQL(cmd, file)
	}
	group.AddCommand(cmd)

	shell := newRemote(d, o, "sql", e)
	shell.addFlags(group)
	lift(group)
	e.addConnectionFlags(group)

	for _, name := range []string{"query", "body", "parameters"} { // flags of socle sql run
		_ = group.Flags().MarkHidden(name) // the flag exists
	}

	group.Long = "Type SQL in a shell on a terminal, or run it from standard input."
	group.RunE = func(cmd *cobra.Command, _ []string) error {
		_, in := terminal(cmd.InOrStdin())
		if _, out := terminal(cmd.OutOrStdout()); in && out {
			return shell.interact(cmd)
		}

		return shell.runSQL(cmd, "-")
	}
}

// runSQL runs the SQL of a file, or of the flags, and prints the results.
func (r *remote) runSQL(cmd *cobra.Command, file string) error {
	body := cmd.Flags().Lookup("body").Changed
	switch {
	case file != "":
		text, err := readInput(cmd, file)
		if err != nil {
			return err
		}

		r.flags["query"].texts = []string{string(text)}
	case !body && !r.flags["query"].given():
		return fmt.Errorf("%w: give the SQL as a file, by --file or by --query; a shell: socle sql", errUsage)
	}

	c, err := r.e.client(cmd)
	if err != nil {
		return err
	}

	if err := (finder{r.document, c}).selectProject(cmd.Context()); err != nil {
		return err
	}

	reply, err := r.query(cmd, c)
	if err != nil {
		return err
	}

	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), reply)
	}

	return printResults(cmd.OutOrStdout(), cmd.ErrOrStderr(), reply, false, false)
}

// query sends the SQL of the flags.
func (r *remote) query(cmd *cobra.Command, c *client.Client) (*client.Reply, error) {
	if as := r.flags["as"]; as.given() {
		as.texts = []string{callerName(as.String())}
	}

	body, err := r.json(cmd, c)
	if err != nil {
		return nil, err
	}

	reply, err := c.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: r.Path, Body: body})

	err = r.explain(cmd, err)
	if f, ok := errors.AsType[*failure](err); ok {
		f.query = r.flags["query"].String()

		if !cmd.Flags().Changed("query") { // SQL in a file, on standard input or in the shell
			f.label = func(field string) string {
				if field == "query" {
					return "the SQL"
				}

				return r.label(field)
			}
		}

		if f.cause.Code == "read_only" {
			f.hints = append(f.hints, "Changes need --read-only=false; in the shell: \\readonly off")
		}
	}

	return reply, err
}

// callerName returns the API's name of a caller. As with socle rows, an end user's UUID or address
// needs no prefix.
func callerName(who string) string {
	if who == "anon" || who == "authenticated" || strings.HasPrefix(who, "user:") {
		return who
	}
	return "user:" + who
}

// historyFile returns the path of the shell's history.
func (e environment) historyFile() (string, error) {
	name, err := e.accountFile()
	if err != nil {
		return "", err
	}

	return dirOf(name) + string(os.PathSeparator) + "sql_history", nil
}
