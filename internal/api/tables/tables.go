package tables

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerTables(p *operation.Pipeline) {
	operation.HandleInProject(p, createTable, s.createTable, nil)
	operation.HandleInProject(p, listTables, s.listTables, nil)
	operation.HandleInProject(p, getTable, s.getTable, nil)
	operation.HandleInProject(p, renameTable, s.renameTable, existingTable[renameTableInput])
	operation.HandleInProject(p, updateTable, s.updateTable, existingTable[updateTableInput])
	operation.HandleInProject(p, duplicateTable, s.duplicateTable, existingTable[duplicateTableInput])
	operation.HandleInProject(p, deleteTable, s.deleteTable, nil)
}

// tableMetadata has a table's UUID, which the specified Table lacks.
type tableMetadata struct {
	UUID uuid.UUID `json:"uuid" doc:"Stable across renames of the table."`
}

type oneTable = operation.Answer[schema.Table, tableMetadata]

// detailedMetadata has the table properties that the specified Table lacks.
type detailedMetadata struct {
	UUID uuid.UUID `json:"uuid" doc:"Stable across renames of the table."`
	schema.TableDetails
}

type detailedTable = operation.Answer[schema.Table, detailedMetadata]

// answerWithDetails responds with a table and the details, unless err is set.
func answerWithDetails(ctx context.Context, p *projectdb.Project, t schema.Table, err error) (detailedTable, error) {
	if err != nil {
		return detailedTable{}, err
	}

	d, err := schema.GetTableDetails(ctx, p.Trusted(), t.ID)
	return detailedTable{Content: t, Metadata: detailedMetadata{schema.TableUUID(p.UUID, t.ID), d}}, err
}

func tableOf(p *projectdb.Project, t schema.Table) oneTable {
	return oneTable{Content: t, Metadata: tableMetadata{UUID: schema.TableUUID(p.UUID, t.ID)}}
}

var createTable = operation.Operation{
	ID: "createTable", Method: "POST", Path: "/tables", Summary: "Create a table",
	Access: operation.Project(account.Developer), Errors: operation.CreateErrors, Timeout: operation.LongTimeout,
	Aliases: snakeNames,
	Notes: "A new table is closed: row level security is on and no policy exists, so the project's users have no " +
		"access.",
	Example: `{"name": "books", "columns": [{"name": "id", "type": "serial",
		"primary": true}, {"name": "title", "type": "text", "notNull": true}]}`,
}

type createTableInput struct {
	Body createTableBody
}

type createTableBody struct {
	Name        string                 `json:"name"`
	Schema      string                 `json:"schema,omitempty" doc:"Default: public."`
	Columns     []schema.NewColumn     `json:"columns" minItems:"1" maxItems:"1600"`
	Comment     string                 `json:"comment,omitempty" maxLength:"10000"`
	Constraints []schema.NewConstraint `json:"constraints,omitempty" maxItems:"100" doc:"Constraints on several columns: keys, foreign keys, checks."`
	operation.ProjectInBody
}

func (s *Server) createTable(ctx context.Context, p *projectdb.Project, in *createTableInput) (detailedTable, error) {
	b := in.Body
	t, err := schema.CreateTable(ctx, p.Owner(), schema.NewTable{Name: b.Name, Schema: b.Schema, Comment: b.Comment,
		Columns: b.Columns, Constraints: b.Constraints})

	return answerWithDetails(ctx, p, t, err)
}

var listTables = operation.Operation{
	ID: "listTables", Method: "GET", Path: "/tables", Summary: "List tables",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
}

type listTablesInput struct {
	operation.PageQuery
	Sort   string `query:"sort" enum:"name,schema,id,estimatedRows" default:"name"`
	Search string `query:"search" maxLength:"100" doc:"Part of the full name, such as public.books, case-insensitive."`
}

type tablesMetadata struct {
	operation.PageMetadata
	UUIDs map[string]uuid.UUID `json:"uuids" doc:"UUIDs of the tables by their full names."`
}

func (s *Server) listTables(
	ctx context.Context, p *projectdb.Project, in *listTablesInput,
) (operation.Answer[[]schema.Table, tablesMetadata], error) {
	page := in.By(in.Sort)
	tables, total, err := schema.ListTables(ctx, p.Trusted(), page, in.Search)
	uuids := make(map[string]uuid.UUID, len(tables))
	for _, t := range tables {
		uuids[t.FullName()] = schema.TableUUID(p.UUID, t.ID)
	}

	return operation.WithMetadata(tables, tablesMetadata{operation.MetadataOf(page, total), uuids}), err
}

var getTable = operation.Operation{
	ID: "getTable", Method: "GET", Path: "/tables/{tableUUID}", Summary: "Get a table",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type tableInput struct {
	Table string `path:"tableUUID" maxLength:"200" doc:"Full name, ID or UUID of the table."`
}

func (in *tableInput) table() string { return in.Table }

// existingTable fails if the table in the path does not exist.
func existingTable[I any, P interface {
	*I
	table() string
}](ctx context.Context, p *projectdb.Project, in P) error {
	_, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.table())
	return err
}

func (s *Server) getTable(ctx context.Context, p *projectdb.Project, in *tableInput) (detailedTable, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	return answerWithDetails(ctx, p, t, err)
}

var renameTable = operation.Operation{
	ID: "renameTable", Method: "PUT", Path: "/tables/{tableUUID}/rename", Summary: "Rename a table",
	Access: operation.Project(account.Developer), Specified: true, Errors: operation.SpecifiedBodyErrors,
	Timeout: operation.LongTimeout,
	Notes: "The table stays in its schema and keeps its ID and UUID. `metadata.mentions` has the functions whose text has " +
		"the former name, which the database does not change.",
	Example: `{"name": "titles"}`,
}

type renameTableInput struct {
	tableInput
	Body struct {
		Name string `json:"name"`
		operation.ProjectInBody
	}
}

type renamedMetadata struct {
	UUID     uuid.UUID          `json:"uuid" doc:"Stable across renames of the table."`
	Mentions []schema.Dependent `json:"mentions,omitempty" nullable:"false" doc:"Functions whose text has the former name, if any: adjust them."`
}

func (s *Server) renameTable(
	ctx context.Context, p *projectdb.Project, in *renameTableInput,
) (operation.Answer[schema.Table, renamedMetadata], error) {
	mentions, err := schema.TableMentions(ctx, p.Trusted(), p.UUID, in.Table, "")
	if err != nil {
		return operation.Answer[schema.Table, renamedMetadata]{}, err
	}

	t, err := schema.RenameTable(ctx, p.Owner(), p.UUID, in.Table, in.Body.Name)
	return operation.WithMetadata(t, renamedMetadata{schema.TableUUID(p.UUID, t.ID), mentions}), err
}

var updateTable = operation.Operation{
	ID: "updateTable", Method: "PUT",
	Path: "/tables/{tableUUID}", Summary: "Update a table",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes: "Changes the comment or row level security. Switching row level security off needs `confirm`: all rows " +
		"become accessible to all roles with privileges on the table. renameTable changes the name.",
	Example: `{"comment": "Books in stock"}`,
}

type updateTableInput struct {
	tableInput
	Body struct {
		Comment          *string `json:"comment,omitempty" maxLength:"10000" doc:"Empty removes the comment."`
		RowLevelSecurity *bool   `json:"row_level_security,omitempty"`
		Confirm          bool    `json:"confirm,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) updateTable(ctx context.Context, p *projectdb.Project, in *updateTableInput) (detailedTable, error) {
	b := in.Body
	if b.Comment == nil && b.RowLevelSecurity == nil {
		return detailedTable{}, fault.NothingToChange()
	}

	t, err := schema.UpdateTable(ctx, p.Owner(), p.UUID, in.Table, schema.TableUpdate{Comment: b.Comment,
		RowLevelSecurity: b.RowLevelSecurity, Confirm: b.Confirm})
	return answerWithDetails(ctx, p, t, err)
}

var duplicateTable = operation.Operation{
	ID: "duplicateTable", Method: "POST", Path: "/tables/{tableUUID}/duplicate", Summary: "Duplicate a table",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors,
	Timeout: operation.LongTimeout, Grows: operation.Always,
	Notes: "The new table has the columns, defaults, constraints, indexes and comments of the original, its own " +
		"sequences, and the rows if requested. It is closed: policies, grants and triggers are not copied.",
	Example: `{"name": "books_copy", "with_rows": true}`,
}

type duplicateTableInput struct {
	tableInput
	Body struct {
		Name     string `json:"name"`
		WithRows bool   `json:"with_rows,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) duplicateTable(
	ctx context.Context, p *projectdb.Project, in *duplicateTableInput,
) (detailedTable, error) {
	t, err := schema.DuplicateTable(ctx, p.Owner(), p.UUID, in.Table, in.Body.Name, in.Body.WithRows)
	return answerWithDetails(ctx, p, t, err)
}

var deleteTable = operation.Operation{
	ID: "deleteTable", Method: "DELETE", Path: "/tables/{tableUUID}", Summary: "Delete a table",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Destructive: operation.Always,
	Notes:       "A table with dependents is not deleted, and `metadata.dependents` lists them, unless `cascade` is true.",
}

// CascadeQuery is embedded in the input when a deletion may delete dependents.
type CascadeQuery struct {
	Cascade string `query:"cascade" enum:"true,false" default:"false" doc:"Whether to delete dependents too."`
}

func (q CascadeQuery) cascade() bool { return q.Cascade == "true" }

type deleteTableInput struct {
	tableInput
	CascadeQuery
}

// deletedMetadata lists the dependents that were deleted too.
type deletedMetadata struct {
	Deleted  []schema.Dependent `json:"deleted" nullable:"false" doc:"Dependents that were deleted too."`
	Mentions []schema.Dependent `json:"mentions,omitempty" nullable:"false" doc:"Functions whose text has the former name, if any: adjust them."`
}

type deletedTableMetadata struct {
	UUID     uuid.UUID          `json:"uuid"`
	Deleted  []schema.Dependent `json:"deleted" nullable:"false" doc:"Dependents that were deleted too."`
	Mentions []schema.Dependent `json:"mentions,omitempty" nullable:"false" doc:"Functions whose text has the former name, if any: adjust them."`
}

func (s *Server) deleteTable(
	ctx context.Context, p *projectdb.Project, in *deleteTableInput,
) (operation.Answer[schema.Table, deletedTableMetadata], error) {
	mentions, err := schema.TableMentions(ctx, p.Trusted(), p.UUID, in.Table, "")
	if err != nil {
		return operation.Answer[schema.Table, deletedTableMetadata]{}, err
	}

	t, dependents, err := schema.DeleteTable(ctx, p.Owner(), p.UUID, in.Table, in.cascade())
	return operation.WithMetadata(t, deletedTableMetadata{schema.TableUUID(p.UUID, t.ID), dependents, mentions}), err
}
