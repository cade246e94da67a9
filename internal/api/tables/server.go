// Package tables has the operations on tables, columns, indexes, constraints, triggers, enums,
// privileges and policies.
package tables

import (
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/tablejob"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	TableJobs *tablejob.Service
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	p.Chapter("Tables", "tables-and-columns",
		"Tables and their columns, indexes, constraints, triggers and enums.")
	s.registerTables(p)
	s.registerColumns(p)
	s.registerIndexes(p)
	s.registerConstraints(p)
	s.registerTriggers(p)
	s.registerEnums(p)
	s.registerCompactions(p)

	p.Chapter("Access to rows", "policies-and-grants",
		"Privileges of the roles anon, authenticated and service_role, and row level security.")
	s.registerGrants(p)
	s.registerDefaultPrivileges(p)
	s.registerPolicies(p)
}
