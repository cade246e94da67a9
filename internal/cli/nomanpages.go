//go:build !manpages

package cli

import "github.com/spf13/cobra"

// releaseCommands returns nothing: a released binary writes no manual pages.
func releaseCommands(environment) []*cobra.Command { return nil }
