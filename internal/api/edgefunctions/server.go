// Package edgefunctions has the operations on edge functions: deployments, versions, secrets, logs,
// limits, metrics.
package edgefunctions

import (
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/operation"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct{ Functions *function.Service }

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Edge functions", "edge-functions",
		"Code of the project in TypeScript or JavaScript that the server runs: functions as those of Supabase. "+
			"Applications call them at `/projects/{projectUUID}/functions/v1/{name}`.")
	s.registerFunctions(p)
	s.registerSecrets(p)
	s.registerLimits(p)
}
