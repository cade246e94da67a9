package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

func gen(e environment) *cobra.Command {
	cmd := &cobra.Command{Use: "gen", Short: "Generate source code for applications",
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}

	types := &cobra.Command{
		Use:   "types --lang typescript",
		Short: "Print types of the project's tables, views and functions for @supabase/supabase-js",
		Args:  noArgs,
	}

	language := types.Flags().String("lang", "typescript", "language of the types: typescript")
	_ = types.RegisterFlagCompletionFunc("lang", // the flag exists
		cobra.FixedCompletions([]string{"typescript"}, cobra.ShellCompDirectiveNoFileComp))
	e.addConnectionFlags(types)

	types.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}

		d, err := describe()
		if err != nil {
			return err
		}

		if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
			return err
		}

		reply, err := c.Do(cmd.Context(), client.Request{
			Method: http.MethodGet,
			Path:   "/projects/" + url.PathEscape(c.Project) + "/types",
			Query:  url.Values{"language": {*language}},
		})
		if e, ok := errors.AsType[*client.Error](err); ok {
			f := newFailure(e)
			f.label = func(string) string { return "--lang" }

			return f
		}
		if err != nil {
			return err
		}

		var answer struct{ Source string }
		if err := json.Unmarshal(reply.Content, &answer); err != nil {
			return err
		}

		_, err = fmt.Fprint(cmd.OutOrStdout(), answer.Source)
		return err
	}

	cmd.AddCommand(types)
	return cmd
}
