//go:build !unix

package cli

import "github.com/spf13/cobra"

// serverCommands returns placeholders: this build has no server.
func serverCommands(environment) []*cobra.Command { return missingCommands() }
