package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/repository"
)

func newFunctionSecretsSet(d *description, e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set [NAME...]", Short: "Set secrets of edge functions, from a file, standard input or the environment",
		Long: "Set secrets that all functions of the project have in their environment, from their next process on. " +
			"Values are no arguments, which other users of a machine can read: they come from a file of lines " +
			"NAME=value, from the environment, or, for one name, from standard input.",
		Example: "  socle functions secrets set --env-file supabase/functions/.env\n" +
			"  socle functions secrets set STRIPE_KEY < key.txt\n  socle functions secrets set STRIPE_KEY MAIL_KEY --from-env",
	}

	cmd.Flags().String("env-file", "", "file of lines NAME=value, - for standard input; with names, only these")
	cmd.Flags().Bool("from-env", false, "take the values from environment variables of these names")
	cmd.MarkFlagsMutuallyExclusive("env-file", "from-env")
	e.addConnectionFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		secrets, err := e.readFunctionSecrets(cmd, args)
		if err != nil {
			return err
		}

		c, err := e.projectClient(cmd, d)
		if err != nil {
			return err
		}

		names := slices.Sorted(maps.Keys(secrets))
		for _, name := range names {
			if err := setFunctionSecret(cmd.Context(), c, name, secrets[name]); err != nil {
				return err
			}
			if !asJSON(cmd) {
				fmt.Fprintf(cmd.OutOrStdout(), "Set %s.\n", name)
			}
		}

		if asJSON(cmd) {
			return printContent(cmd.OutOrStdout(), names)
		}

		return nil
	}

	return cmd
}

// readFunctionSecrets returns the secrets of a command by name.
func (e environment) readFunctionSecrets(cmd *cobra.Command, names []string) (map[string]string, error) {
	for _, name := range names {
		if before, _, ok := strings.Cut(name, "="); ok {
			return nil, fmt.Errorf("%w: a secret is no argument: socle functions secrets set %s reads it from standard input",
				errUsage, before)
		}
	}

	file, _ := cmd.Flags().GetString("env-file")
	fromEnv, _ := cmd.Flags().GetBool("from-env")
	switch {
	case file != "":
		text, err := readInput(cmd, file)
		if err != nil {
			return nil, err
		}

		all := repository.ParseVariables(string(text))
		return pick(names, file, func(name string) (string, bool) { v, ok := all[name]; return v, ok }, all)
	case fromEnv && len(names) > 0:
		return pick(names, "the environment", e.lookup, nil)
	case fromEnv || len(names) != 1:
		return nil, fmt.Errorf("%w: name one secret to read from standard input, or use --env-file or --from-env", errUsage)
	}

	text, err := readSecretText(cmd, names[0])
	return map[string]string{names[0]: text}, err
}

// pick returns the variables with certain names, all without names. Those whose names are reserved
// for the platform are left out of all, since files for Supabase's own tools may have them.
func pick(
	names []string, from string, lookup func(string) (string, bool), all map[string]string,
) (map[string]string, error) {
	if len(names) == 0 {
		picked := maps.Clone(all)
		maps.DeleteFunc(picked, func(name, _ string) bool { return strings.HasPrefix(name, "SUPABASE_") })
		if len(picked) == 0 {
			return nil, fmt.Errorf("%s has no secrets: lines NAME=value", from)
		}
		return picked, nil
	}

	picked := map[string]string{}
	for _, name := range names {
		text, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("%s has no %s", from, name)
		}
		picked[name] = text
	}

	return picked, nil
}

// readSecretText asks for a secret on a terminal, or reads standard input up to a newline at its
// end.
func readSecretText(cmd *cobra.Command, name string) (string, error) {
	if _, ok := terminal(cmd.InOrStdin()); ok {
		return readPassword(cmd, name+": ")
	}

	text, err := readInput(cmd, "-")
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
}

func setFunctionSecret(ctx context.Context, c *client.Client, name, value string) error {
	path := "/projects/" + url.PathEscape(c.Project) + "/edge-function-secrets/" + url.PathEscape(name)
	_, err := c.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Body: map[string]any{"value": value}})
	if e, ok := errors.AsType[*client.Error](err); ok {
		f := newFailure(e)
		f.label = func(string) string { return name }
		return f
	}

	return err
}
