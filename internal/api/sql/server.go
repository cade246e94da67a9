// Package sql has the operations on SQL in a project's database: statements, migrations, functions,
// extensions, PostgreSQL clients.
package sql

import (
	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/statement"
)

// Server serves this package's operations. Its fields are their dependencies.
type Server struct {
	Accounts   *account.Service
	EndUsers   *enduser.Service
	Migrations *migration.Service
	Platform   *platform.Store
	Proxy      *pgproxy.Proxy // proxy for PostgreSQL clients
}

// Register registers the operations.
func (s *Server) Register(p *operation.Pipeline) {
	operation.DescribeAs[statement.Rows, [][]any](p)

	p.Chapter("SQL", "sql",
		"SQL in a project's database: statements, functions, extensions.")
	s.registerSQL(p)
	s.registerSavedQueries(p)
	s.registerMigrations(p)
	s.registerDatabase(p)
	s.registerFunctions(p)
	s.registerExtensions(p)
}
