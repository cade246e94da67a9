package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerConstraints(p *operation.Pipeline) {
	operation.HandleInProject(p, listConstraints, s.listConstraints, nil)
	operation.HandleInProject(p, createConstraint, s.createConstraint, existingTable[createConstraintInput])
	operation.HandleInProject(p, validateConstraint, s.validateConstraint, nil)
	operation.HandleInProject(p, deleteConstraint, s.deleteConstraint, nil)
}

var listConstraints = operation.Operation{
	ID: "listConstraints", Method: "GET",
	Path: "/tables/{tableUUID}/constraints", Summary: "List a table's constraints",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
}

func (s *Server) listConstraints(
	ctx context.Context, p *projectdb.Project, in *tableInput,
) ([]schema.Constraint, error) {
	return schema.ListConstraints(ctx, p.Trusted(), p.UUID, in.Table)
}

var createConstraint = operation.Operation{
	ID: "createConstraint", Method: "POST", Path: "/tables/{tableUUID}/constraints", Summary: "Create a constraint",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors,
	Timeout: operation.LongTimeout, Grows: operation.Always,
	Notes: "With `not_valid`, a check or foreign key applies to new rows at once, and to existing rows after " +
		"validateConstraint. This avoids scanning a large table under a lock.",
	Example: `{"type": "foreign", "columns": ["author"], "reference_table": "authors", "on_delete": "cascade"}`,
}

type createConstraintInput struct {
	tableInput
	Body createConstraintBody
}

type createConstraintBody struct {
	schema.NewConstraint
	operation.ProjectInBody
}

func (s *Server) createConstraint(
	ctx context.Context, p *projectdb.Project, in *createConstraintInput,
) (schema.Constraint, error) {
	return schema.CreateConstraint(ctx, p.Owner(), p.UUID, in.Table, in.Body.NewConstraint)
}

type constraintInput struct {
	tableInput
	Constraint string `path:"constraintName" maxLength:"200"`
}

var validateConstraint = operation.Operation{
	ID: "validateConstraint", Method: "PUT",
	Path: "/tables/{tableUUID}/constraints/{constraintName}/validate", Summary: "Validate a constraint",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Notes: "Checks the rows that existed before the constraint, without blocking reads and writes. A valid " +
		"constraint stays unchanged.",
}

func (s *Server) validateConstraint(
	ctx context.Context, p *projectdb.Project, in *constraintInput,
) (schema.Constraint, error) {
	return schema.ValidateConstraint(ctx, p.Owner(), p.UUID, in.Table, in.Constraint)
}

var deleteConstraint = operation.Operation{
	ID: "deleteConstraint", Method: "DELETE",
	Path: "/tables/{tableUUID}/constraints/{constraintName}", Summary: "Delete a constraint",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Notes: "A key with referencing foreign keys is not deleted, and `metadata.dependents` lists them, unless " +
		"`cascade` is true.",
}

type deleteConstraintInput struct {
	constraintInput
	CascadeQuery
}

func (s *Server) deleteConstraint(
	ctx context.Context, p *projectdb.Project, in *deleteConstraintInput,
) (operation.Answer[schema.Constraint, deletedMetadata], error) {
	c, dependents, err := schema.DeleteConstraint(ctx, p.Owner(), p.UUID, in.Table, in.Constraint, in.cascade())
	if err != nil {
		return operation.Answer[schema.Constraint, deletedMetadata]{}, err
	}

	mentions, err := schema.Mentions(ctx, p.Trusted(), c.Name)
	return operation.WithMetadata(c, deletedMetadata{dependents, mentions}), err
}
