package enduser

import "github.com/socle-dev/socle/internal/projectdb"

// Subject returns the subject of end users. A restore keeps their rows as they are.
func (s *Service) Subject() projectdb.Subject {
	return projectdb.Subject{Schema: "auth", Sweep: s.Sweep}
}
