package cli

import (
	"bytes"
	"compress/gzip"
	_ "embed" // embeds the licenses
	"io"

	"github.com/spf13/cobra"
)

// licenseText has the licenses of everything in the binary, written by make generate.
//
//go:embed licenses.txt.gz
var licenseText []byte

func licenses() *cobra.Command {
	return &cobra.Command{
		Use: "licenses", Short: "Print the licenses of the software in this program", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := gzip.NewReader(bytes.NewReader(licenseText))
			if err != nil {
				return err
			}

			_, err = io.Copy(cmd.OutOrStdout(), r)
			return err
		},
	}
}
