package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// stamp is the version of a release, set by the linker (scripts/release.sh).
var stamp string

func version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "socle", Version())
			return err
		},
	}
}

// Version returns the version of the release. For other builds it returns the version that the go
// command derived from the tag or commit, or "devel".
func Version() string {
	if stamp != "" {
		return stamp
	}

	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return "devel"
	}

	return cmp.Or(info.Main.Version, "devel")
}
