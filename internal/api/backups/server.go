// Package backups has the operations on project backups, backup schedules and restores.
package backups

import (
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Backups  *backup.Service
	Platform *platform.Store
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Backups", "backups",
		"Encrypted backups of a project, proven by a trial restore; schedules and restores.")
	s.registerBackups(p)
	s.registerBackupArchives(p)
	s.registerRestores(p)
}
