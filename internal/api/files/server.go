// Package files has the operations on containers and their files: uploads, downloads, pictures,
// signed URLs.
package files

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts   *account.Service
	Blobs      *blob.Store
	Cleaner    *object.Cleaner
	Platform   *platform.Store
	PublicURL  string // without trailing slash
	SigningKey []byte // signs URLs
	Variants   *object.Variants
}

// member returns the caller as an actor on the project's files.
func member(ctx context.Context) actor.Actor { return actor.Member(operation.Caller(ctx).User) }

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Files", "containers-and-files",
		"Files in containers, which are public or for members: upload, download, pictures, signed URLs.")
	s.registerContainers(p)
	s.registerFiles(p)
	s.registerSignedURLs(p)
	s.registerTus(p)
}
