// Package rows has the operations on a project's rows API, and whole tables as files.
package rows

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Blobs *blob.Store

	// DescribeRows returns the OpenAPI document for a project's rows API.
	DescribeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)
	Platform     *platform.Store
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Rows", "rows",
		"Applications read and write rows at `/projects/{projectUUID}/rest/v1`, by PostgREST's contract, "+
			"with a key of the project. The operations of this chapter describe that API, and import and "+
			"export whole tables.")
	s.registerRows(p)
	s.registerTransfers(p)
	s.registerTypes(p)
}
