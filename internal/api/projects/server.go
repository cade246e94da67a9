// Package projects has the operations on projects: their life, quotas, statistics, requests, audit
// log and lint.
package projects

import (
	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/realtimeapi"
	"github.com/socle-dev/socle/internal/requestlog"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts  *account.Service
	Backups   *backup.Service
	Lifecycle *lifecycle.Service
	Platform  *platform.Store
	Realtime  *realtimeapi.Server
	Requests  *requestlog.Counter

	pipeline *operation.Pipeline // knows the operations that the audit log names
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	s.pipeline = p
	p.Chapter("Projects", "projects",
		"A project is a PostgreSQL database of its own, with files, forms and backups.")
	s.registerProjects(p)
	s.registerQuotas(p)
	s.registerStatistics(p)
	s.registerRealtimeLimits(p)
	s.registerRequests(p)
	s.registerAudit(p)
	s.registerLint(p)
}
