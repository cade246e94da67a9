// Package schedules has the operations on schedules and their runs.
package schedules

import (
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/schedule"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Schedules *schedule.Service
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Schedules", "schedules",
		"Work by the clock: SQL or calls of endpoints, by cron expressions, with the history of runs.")
	s.registerSchedules(p)
	s.registerRuns(p)
}
