package enduser

import "github.com/socle-dev/socle/internal/projectdb"

// Subject returns what end users give the house. A backup keeps their rows as they are.
func (s *Service) Subject() projectdb.Subject {
	return projectdb.Subject{Schema: "auth", Sweep: s.Sweep}
}
