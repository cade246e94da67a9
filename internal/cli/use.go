package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"socle/client"
)

func use(e environment) *cobra.Command {
	return &cobra.Command{Use: "use PROJECT",
		Short: "Select the project for further commands, by name or UUID",
		Args:  exactArgs(1), GroupID: remoteGroup,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}

			p, err := findProject(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}

			if err := e.withAccount(func(a *account) error { a.Project = p.UUID; return nil }); err != nil {
				return err
			}

			fmt.Fprintf(cmd.OutOrStdout(), "Using %s, %s.\n", p.Name, p.UUID)
			return nil
		}}
}

type namedProject struct{ UUID, Name string }

// findProject returns a project by UUID or by name. A name may be ambiguous across organizations.
func findProject(ctx context.Context, c *client.Client, name string) (namedProject, error) {
	if uuid.Validate(name) == nil {
		var p namedProject
		reply, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/projects/" + url.PathEscape(name)})
		if err != nil {
			return p, explain(err)
		}

		return p, reply.Into(&p)
	}

	reply, err := c.Do(ctx, client.Request{
		Method: http.MethodGet,
		Path:   "/projects",
		Query:  url.Values{"search": {name}, "limit": {"100"}},
	})
	if err != nil {
		return namedProject{}, explain(err)
	}

	var similar []namedProject
	if err := reply.Into(&similar); err != nil {
		return namedProject{}, err
	}

	var found []namedProject
	var uuids []string
	for _, p := range similar {
		if p.Name == name {
			found, uuids = append(found, p), append(uuids, p.UUID)
		}
	}

	switch len(found) {
	case 0:
		return namedProject{}, fmt.Errorf("you have no project %q; list them with: socle projects list", name)
	case 1:
		return found[0], nil
	}

	return namedProject{}, fmt.Errorf("several projects are named %q, use a UUID: %s", name, strings.Join(uuids, ", "))
}
