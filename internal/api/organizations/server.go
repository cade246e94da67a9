// Package organizations has the operations on organizations, their members and invitations.
package organizations

import (
	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts *account.Service
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Organizations", "organizations",
		"An organization owns projects. Its members have a role in all of them.")
	s.registerOrganizations(p)
	s.registerMembers(p)
	s.registerInvitations(p)
}
