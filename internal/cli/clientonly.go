//go:build !unix

package cli

import (
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/docs"
)

// serverCommands returns placeholders: this build has no server.
func serverCommands(environment) []*cobra.Command { return missingCommands() }

// openAPIDocument returns the OpenAPI document of the platform API.
func openAPIDocument() []byte { return docs.OpenAPI }
