package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerTableChanges() {
	within(s, updateTable, s.updateTable, existingTable[updateTableInput])
	within(s, duplicateTable, s.duplicateTable, existingTable[duplicateTableInput])
	within(s, deleteTable, s.deleteTable, nil)
}

var updateTable = Operation{
	ID: "updateTable", Method: "PUT",
	Path: "/tables/{tableUUID}", Summary: "Change a table's comment or row level security",
	Access: project(platform.Developer), Errors: shaping, Timeout: lasting,
	Notes: "To switch row level security off needs `confirm`: all rows are then open to whoever may use the table. Its name is changed by renameTable.",
}

type updateTableInput struct {
	tableInput
	Body struct {
		Comment          *string `json:"comment,omitempty" maxLength:"10000" doc:"Empty takes it back."`
		RowLevelSecurity *bool   `json:"row_level_security,omitempty"`
		Confirm          bool    `json:"confirm,omitempty"`
		ProjectInBody
	}
}

// unchanging returns the failure of an update that changes nothing.
func unchanging() error {
	return fault.New(fault.Unprocessable, "the body names nothing to change").WithCode("required")
}

func (s *Server) updateTable(ctx context.Context, p *tenant.Project, in *updateTableInput) (detailedTable, error) {
	b := in.Body
	if b.Comment == nil && b.RowLevelSecurity == nil {
		return detailedTable{}, unchanging()
	}

	t, err := schema.UpdateTable(ctx, p.Owner(), p.UUID, in.Table, schema.TableUpdate{Comment: b.Comment,
		RowLevelSecurity: b.RowLevelSecurity, Confirm: b.Confirm})
	return detailed(ctx, p, t, err)
}

var duplicateTable = Operation{
	ID: "duplicateTable", Method: "POST", Path: "/tables/{tableUUID}/duplicate", Summary: "Duplicate a table",
	Access: project(platform.Developer), Errors: shaping, Timeout: lasting, Grows: true,
	Notes: "The new table has the columns, defaults, constraints, indexes and comments of the other one, sequences of its own, and its rows if asked. It is closed: policies, grants and triggers are not copied.",
}

type duplicateTableInput struct {
	tableInput
	Body struct {
		Name     string `json:"name"`
		WithRows bool   `json:"with_rows,omitempty"`
		ProjectInBody
	}
}

func (s *Server) duplicateTable(
	ctx context.Context, p *tenant.Project, in *duplicateTableInput,
) (detailedTable, error) {
	t, err := schema.DuplicateTable(ctx, p.Owner(), p.UUID, in.Table, in.Body.Name, in.Body.WithRows)
	return detailed(ctx, p, t, err)
}

var deleteTable = Operation{
	ID: "deleteTable", Method: "DELETE", Path: "/tables/{tableUUID}", Summary: "Delete a table",
	Access: project(platform.Developer), Errors: unshaping, Timeout: lasting, Destructive: true,
	Notes: "What others depend on is not deleted, and `metadata.dependents` names them, unless `cascade` says that they go too.",
}

// CascadeQuery is embedded in the input of a deletion that may delete dependents.
type CascadeQuery struct {
	Cascade string `query:"cascade" enum:"true,false" default:"false" doc:"Whether what depends on it goes too."`
}

func (q CascadeQuery) cascade() bool { return q.Cascade == "true" }

type deleteTableInput struct {
	tableInput
	CascadeQuery
}

// deletedMetadata lists the dependents that were deleted too.
type deletedMetadata struct {
	Deleted []schema.Dependent `json:"deleted" nullable:"false" doc:"What depended on it and went too."`
}

type deletedTableMetadata struct {
	UUID    uuid.UUID          `json:"uuid"`
	Deleted []schema.Dependent `json:"deleted" nullable:"false" doc:"What depended on it and went too."`
}

func (s *Server) deleteTable(
	ctx context.Context, p *tenant.Project, in *deleteTableInput,
) (Answer[schema.Table, deletedTableMetadata], error) {
	t, gone, err := schema.DeleteTable(ctx, p.Owner(), p.UUID, in.Table, in.cascade())
	return Answer[schema.Table, deletedTableMetadata]{
		Content: t, Metadata: deletedTableMetadata{schema.TableUUID(p.UUID, t.ID), gone},
	}, err
}
