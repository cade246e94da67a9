//go:build unix

package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/server"
)

func databases(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "databases [flags]", Short: "List the projects with the names of their databases", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := e.checkDataDir(cmd); err != nil {
				return err
			}

			return e.withDatabase(cmd, func(ctx context.Context, d *server.Database, _ int, _ []byte) error {
				names, err := d.DatabaseNames(ctx)
				if err != nil {
					return err
				}

				projects, err := d.Store.ProjectNames(ctx)
				if err != nil {
					return err
				}

				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "PROJECT\tUUID\tSTATUS\tDATABASE")

				for _, p := range projects {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, p.UUID, p.Status, names.Database(p.UUID))
				}

				return table.Flush()
			})
		},
	}

	e.flags(cmd)
	return cmd
}
