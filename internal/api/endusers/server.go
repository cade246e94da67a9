// Package endusers has the operations on applications' end users, auth settings and mails.
package endusers

import (
	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/operation"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts *account.Service
	EndUsers *enduser.Service
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("End users", "end-users",
		"Users of your application, who sign up and in at `/projects/{projectUUID}/auth/v1` by Supabase "+
			"Auth's contract. The operations of this chapter manage them, their rules and their mails.")
	s.registerEndUsers(p)
	s.registerSignIns(p)
	s.registerMails(p)
	s.registerAuthSettings(p)
}
