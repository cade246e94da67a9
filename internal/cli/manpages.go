//go:build manpages

package cli

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/socle-dev/socle/internal/build"
)

// releaseCommands returns the command with which scripts/release.sh writes the manual. It is not
// part of a released binary: the writer and its libraries would be.
func releaseCommands(env environment) []*cobra.Command {
	return []*cobra.Command{{
		Use: "manpages FOLDER", Short: "Write a manual page for each command", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
			}

			root, date := cmd.Root(), time.Unix(epoch, 0).UTC()
			root.DisableAutoGenTag = true
			if err := addRemote(root, env, ""); err != nil {
				return err
			}

			return doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Date: &date, Source: "Socle " + build.Version(), Manual: "Socle",
			}, args[0])
		},
	}}
}
