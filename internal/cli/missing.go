package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// serverCommandNames are the commands that need the packages of the server.
var serverCommandNames = []string{
	"serve", "migrate", "admin create", "admin rotate-key", "audit verify", "databases", "files verify", "doctor",
	"rest", "upgrade-postgres", "dev",
}

// missingCommands returns a command for each of serverCommandNames that only says where it runs.
func missingCommands() []*cobra.Command {
	const systems = "runs on Linux and macOS only"

	root := &cobra.Command{}
	for _, name := range serverCommandNames {
		parent := root
		group, leaf, grouped := strings.Cut(name, " ")
		if !grouped {
			leaf = group
		} else if parent = findCommand(root, group); parent == nil {
			parent = &cobra.Command{Use: group, Short: systems, Args: noCommand,
				RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
			root.AddCommand(parent)
		}

		parent.AddCommand(&cobra.Command{Use: leaf, Short: systems, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return fmt.Errorf("socle %s %s", name, systems) }})
	}

	commands := root.Commands()
	root.RemoveCommand(commands...)

	return commands
}
