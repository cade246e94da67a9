// Package accounts has the operations on users: sessions, passwords, second factors, personal
// access tokens.
package accounts

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
	p.Chapter("Accounts", "users-tokens-roles",
		"Sign up, log in, and manage your user: sessions, passwords, second factors, personal access "+
			"tokens.")
	s.registerUsers(p)
	s.registerSessions(p)
	s.registerPasswords(p)
	s.registerAccounts(p)
	s.registerFactors(p)
	s.registerTokens(p)
}
