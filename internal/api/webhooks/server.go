// Package webhooks has the operations on webhooks and their deliveries.
package webhooks

import (
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/webhook"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct{ Webhooks *webhook.Service }

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Webhooks", "webhooks",
		"Endpoints of your own that are told what changed: rows, files, users, responses to forms.")
	s.registerWebhooks(p)
	s.registerDeliveries(p)
}
