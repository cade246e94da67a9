// Package keys has the operations on application credentials.
package keys

import (
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Platform *platform.Store
	Projects *projectdb.Registry
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Keys", "keys",
		"Credentials of applications: API keys, S3 keys, JSON Web Tokens of your own users, and secrets for SQL.")
	s.registerKeys(p)
	s.registerS3Keys(p)
	s.registerJWTKeys(p)
	s.registerVaultSecrets(p)
}
