package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

func use(e environment) *cobra.Command {
	return &cobra.Command{Use: "use PROJECT",
		Short: "Select the project for further commands, by name or UUID",
		Args:  exactArgs(1), GroupID: groupStart,
		ValidArgsFunction: completeProjects(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := describe()
			if err != nil {
				return err
			}

			c, err := e.client(cmd)
			if err != nil {
				return err
			}

			c.Project = args[0]
			if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
				return err
			}

			reply, err := c.Do(cmd.Context(), client.Request{
				Method: http.MethodGet,
				Path:   "/projects/" + url.PathEscape(c.Project),
			})
			if err != nil {
				return err
			}

			var p struct{ UUID, Name string }
			if err := reply.Into(&p); err != nil {
				return err
			}

			if err := e.withAccount(func(a *account) error { a.Project = p.UUID; return nil }); err != nil {
				return err
			}

			fmt.Fprintf(cmd.OutOrStdout(), "Using %s, %s.\n", sanitize(p.Name), sanitize(p.UUID))
			return nil
		}}
}

// completeProjects completes the names of projects.
func completeProjects(e environment) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		d, err := describe()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		return (&remote{document: d, e: e}).completeNames(cmd, "", "project", nil)
	}
}
