// Package instance has the operations on the install as its administrators see it: users, settings,
// health.
package instance

import (
	"log/slog"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/queue"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts *account.Service
	Blobs    *blob.Store
	Log      *slog.Logger
	Platform *platform.Store
	Queue    *queue.Queue
	Settings []config.Shown // configuration that the server was started with
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Instance", "administration",
		"For administrators of the install: users, settings, health.")
	s.registerAdministration(p)
	s.registerHealth(p)
}
