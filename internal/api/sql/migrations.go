package sql

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerMigrations(p *operation.Pipeline) {
	operation.HandleInProject(p, listMigrations, s.listMigrations, nil)
	operation.HandleInProject(p, applyMigrations, s.applyMigrations, nil)
	operation.HandleInProject(p, diffMigrations, s.diffMigrations, nil)
}

var listMigrations = operation.Operation{
	ID: "listMigrations", Method: "GET", Path: "/migrations", Summary: "List applied migrations",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
}

type listMigrationsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"version,appliedAt" default:"version"`
}

func (s *Server) listMigrations(
	ctx context.Context, p *projectdb.Project, in *listMigrationsInput,
) (operation.Answer[[]migration.Migration, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	migrations, total, err := migration.List(ctx, p, page)
	return operation.ListOf(migrations, page, total), err
}

var applyMigrations = operation.Operation{
	ID: "applyMigrations", Method: "POST", Path: "/migrations", Summary: "Apply migrations", Success: 200,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 409, 413, 422, 500},
	Timeout: migration.ApplyTimeout + operation.DefaultTimeout, MaxBody: maxMigrationsBody,
	Destructive: operation.When(func(in *applyMigrationsInput) bool { return !in.Body.RecordOnly }),
	Notes: "Applies the migrations that the project has not applied yet, in order, until one fails. Each runs as " +
		"the project's owner in a transaction that also records it, so the request can be repeated. A file whose " +
		"first line is `-- socle: no-transaction` runs statement by statement; if it stops halfway, it runs again " +
		"from its start. Statements that create extensions run before the transaction. A BEGIN and its COMMIT are " +
		"left out; COPY and other statements that end the transaction are refused. What only Supabase's platform " +
		"has is left out or changed: `notes` says what. A migration that was changed after it was applied is refused with both " +
		"checksums (`migration_changed`), one that is older than an applied one with `out_of_order`. If the " +
		"database rejects a statement, `metadata.postgres` has its report, as for `runSQL`, `metadata.version` " +
		"the migration, and `metadata.applied` those that were applied before it.",
}

// maxMigrationsBody is the maximum size for a request with migrations, in bytes.
const maxMigrationsBody = 8 << 20

type applyMigrationsInput struct {
	Body struct {
		Migrations      []migration.Source `json:"migrations" maxItems:"1000" doc:"In ascending order of their versions."`
		AllowOutOfOrder bool               `json:"allow_out_of_order,omitempty" doc:"Apply migrations although newer ones are applied."`
		RecordOnly      bool               `json:"record_only,omitempty" doc:"Record migrations as applied without running them."`
		operation.ProjectInBody
	}
}

func (s *Server) applyMigrations(
	ctx context.Context, p *projectdb.Project, in *applyMigrationsInput,
) (migration.ApplyResult, error) {
	return s.Migrations.Apply(ctx, p, operation.Caller(ctx).User, in.Body.Migrations,
		migration.Options{OutOfOrder: in.Body.AllowOutOfOrder, RecordOnly: in.Body.RecordOnly})
}

var diffMigrations = operation.Operation{
	ID: "diffMigrations", Method: "POST", Path: "/migrations/diff", Summary: "Compare with migrations", Success: 200,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 409, 413, 422, 500},
	Timeout: migration.DiffTimeout + operation.DefaultTimeout, MaxBody: maxMigrationsBody, Grows: operation.Always,
	Notes: "Applies the migrations to an empty scratch database, compares the project with it, and returns the SQL " +
		"of the next migrations. The SQL has run in the scratch database. Warnings are about statements that destroy " +
		"data or block a table. `differences` has each object that still differs after the files, and why: write its " +
		"change by hand. Without migrations the result describes the whole project. The project does not change.",
}

type diffMigrationsInput struct {
	Body struct {
		Migrations []migration.Source `json:"migrations" maxItems:"1000" doc:"In ascending order of their versions; may be empty."`
		operation.ProjectInBody
	}
}

func (s *Server) diffMigrations(
	ctx context.Context, p *projectdb.Project, in *diffMigrationsInput,
) (migration.SchemaDiff, error) {
	return s.Migrations.Diff(ctx, p, in.Body.Migrations)
}
