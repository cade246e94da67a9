package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerTables() {
	within(s, createTable, s.createTable, nil)
	within(s, listTables, s.listTables, nil)
	within(s, getTable, s.getTable, nil)
	within(s, renameTable, s.renameTable, existingTable[renameTableInput])
	within(s, listColumns, s.listColumns, nil)
	within(s, createColumn, s.createColumn, s.findTableByName)
}

// tableMetadata has the UUID of a table, which the specified Table lacks.
type tableMetadata struct {
	UUID uuid.UUID `json:"uuid" doc:"Stays the same when the table is renamed."`
}

type oneTable = Answer[schema.Table, tableMetadata]

// detailedMetadata has the properties of a table that the specified Table lacks.
type detailedMetadata struct {
	UUID uuid.UUID `json:"uuid" doc:"Stays the same when the table is renamed."`
	schema.TableDetails
}

type detailedTable = Answer[schema.Table, detailedMetadata]

// detailed responds with a table and its details, unless err is set.
func detailed(ctx context.Context, p *tenant.Project, t schema.Table, err error) (detailedTable, error) {
	if err != nil {
		return detailedTable{}, err
	}

	d, err := schema.GetTableDetails(ctx, p.Trusted(), t.ID)
	return detailedTable{Content: t, Metadata: detailedMetadata{schema.TableUUID(p.UUID, t.ID), d}}, err
}

func tableOf(p *tenant.Project, t schema.Table) oneTable {
	return oneTable{Content: t, Metadata: tableMetadata{UUID: schema.TableUUID(p.UUID, t.ID)}}
}

var createTable = Operation{
	ID: "createTable", Method: "POST", Path: "/tables", Summary: "Create a table",
	Access: project(platform.Developer), Errors: creating, Timeout: lasting,
	Notes: "A new table is closed to the project's own users: row level security is on, and no policy exists.",
}

type createTableInput struct {
	Body createTableBody
}

type createTableBody struct {
	Name        string                 `json:"name"`
	Schema      string                 `json:"schema,omitempty" default:"public"`
	Columns     []schema.NewColumn     `json:"columns" minItems:"1" maxItems:"1600"`
	Comment     string                 `json:"comment,omitempty" maxLength:"10000"`
	Constraints []schema.NewConstraint `json:"constraints,omitempty" maxItems:"100" doc:"What is not of one column alone: keys of several, checks."`
	ProjectInBody
}

func (*createTableBody) normalize(v any) (any, string) {
	if object, ok := v.(map[string]any); ok {
		if columns, ok := object["columns"].([]any); ok {
			for _, c := range columns {
				camelCase(c)
			}
		}
	}

	return v, ""
}

func (s *Server) createTable(ctx context.Context, p *tenant.Project, in *createTableInput) (detailedTable, error) {
	b := in.Body
	t, err := schema.CreateTable(ctx, p.Owner(), schema.NewTable{Name: b.Name, Schema: b.Schema, Comment: b.Comment,
		Columns: b.Columns, Constraints: b.Constraints})

	return detailed(ctx, p, t, err)
}

var listTables = Operation{
	ID: "listTables", Method: "GET", Path: "/tables", Summary: "List tables",
	Access: project(platform.Viewer), Errors: specified,
}

type listTablesInput struct {
	PageQuery
	Sort string `query:"sort" enum:"name,schema,id,estimatedRows" default:"name"`
}

type tablesMetadata struct {
	PageMetadata
	UUIDs map[string]uuid.UUID `json:"uuids" doc:"UUIDs of the tables by their full names."`
}

func (s *Server) listTables(
	ctx context.Context, p *tenant.Project, in *listTablesInput,
) (Answer[[]schema.Table, tablesMetadata], error) {
	page := in.by(in.Sort)
	tables, total, err := schema.ListTables(ctx, p.Trusted(), page)
	uuids := make(map[string]uuid.UUID, len(tables))
	for _, t := range tables {
		uuids[t.FullName()] = schema.TableUUID(p.UUID, t.ID)
	}

	return Answer[[]schema.Table, tablesMetadata]{
		Content: tables, Metadata: tablesMetadata{metadataOf(page, total), uuids},
	}, err
}

var getTable = Operation{
	ID: "getTable", Method: "GET", Path: "/tables/{tableUUID}", Summary: "Get a table",
	Access: project(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

type tableInput struct {
	Table string `path:"tableUUID" maxLength:"200" doc:"The table's full name, its id, or its UUID."`
}

func (in *tableInput) table() string { return in.Table }

// existingTable fails if the table in the path does not exist.
func existingTable[I any, P interface {
	*I
	table() string
}](ctx context.Context, p *tenant.Project, in P) error {
	_, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.table())
	return err
}

func (s *Server) getTable(ctx context.Context, p *tenant.Project, in *tableInput) (detailedTable, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	return detailed(ctx, p, t, err)
}

var renameTable = Operation{
	ID: "renameTable", Method: "PUT", Path: "/tables/{tableUUID}/rename", Summary: "Rename a table",
	Access: project(platform.Developer), Errors: specifiedWithBody, Timeout: lasting,
	Notes: "The table stays in its schema, and keeps its id and UUID.",
}

type renameTableInput struct {
	tableInput
	Body struct {
		Name string `json:"name"`
		ProjectInBody
	}
}

func (s *Server) renameTable(ctx context.Context, p *tenant.Project, in *renameTableInput) (oneTable, error) {
	t, err := schema.RenameTable(ctx, p.Owner(), p.UUID, in.Table, in.Body.Name)
	return tableOf(p, t), err
}

type tableNameInput struct {
	Table string `path:"fullTableName" maxLength:"200" doc:"schema.table, or table for public.table."`
}

var listColumns = Operation{
	ID: "listColumns", Method: "GET", Path: "/tables/{fullTableName}/columns", Summary: "List a table's columns",
	Access: project(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

type commentsMetadata struct {
	Comments map[string]string `json:"comments" doc:"What is said of the columns, by their names."`
}

func (s *Server) listColumns(
	ctx context.Context, p *tenant.Project, in *tableNameInput,
) (Answer[[]schema.Column, commentsMetadata], error) {
	columns, err := schema.ListColumns(ctx, p.Trusted(), in.Table)
	if err != nil {
		return Answer[[]schema.Column, commentsMetadata]{}, err
	}

	comments, err := schema.ColumnComments(ctx, p.Trusted(), in.Table)
	return Answer[[]schema.Column, commentsMetadata]{Content: columns, Metadata: commentsMetadata{comments}}, err
}

var createColumn = Operation{
	ID: "createColumn", Method: "POST", Path: "/tables/{fullTableName}/columns", Summary: "Create a column",
	Access: project(platform.Developer), Errors: specifiedWithBody, Timeout: lasting, Grows: true,
	Notes: "Takes one column, or several as `columns`, which are created all or none. The content is the first one, `metadata.columns` all of them. Members may be spelt in snake_case too.",
}

type createColumnInput struct {
	tableNameInput
	Body createColumnBody
}

type createColumnBody struct {
	Columns []schema.NewColumn `json:"columns" minItems:"1" maxItems:"1600"`
	ProjectInBody
}

// normalize converts a single column to a list.
func (b *createColumnBody) normalize(v any) (any, string) {
	object, ok := v.(map[string]any)
	if !ok {
		return v, ""
	}

	if columns, ok := object["columns"]; ok {
		for _, c := range asArray(columns) {
			camelCase(c)
		}
		return object, ""
	}

	camelCase(object)
	normal := map[string]any{"columns": []any{object}}
	if id, ok := object["projectUUID"]; ok {
		normal["projectUUID"] = id
	}

	return normal, "columns.0."
}

type columnsMetadata struct {
	Columns []schema.Column `json:"columns"`
}

func (s *Server) findTableByName(ctx context.Context, p *tenant.Project, in *createColumnInput) error {
	_, err := schema.ListColumns(ctx, p.Trusted(), in.Table)
	return err
}

func (s *Server) createColumn(
	ctx context.Context, p *tenant.Project, in *createColumnInput,
) (Answer[schema.Column, columnsMetadata], error) {
	columns, err := schema.CreateColumns(ctx, p.Owner(), in.Table, in.Body.Columns)
	if err != nil {
		return Answer[schema.Column, columnsMetadata]{}, err
	}

	return Answer[schema.Column, columnsMetadata]{Content: columns[0], Metadata: columnsMetadata{columns}}, nil
}

// snakeNames maps the alternative spelling of column members to the specified one.
var snakeNames = map[string]string{"not_null": "notNull", "default_value": "defaultValue",
	"reference_table": "referenceTable", "reference_column": "referenceColumn"}

// camelCase renames the members of a column to camelCase. If both spellings are present, the
// camelCase one wins.
func camelCase(column any) {
	object, ok := column.(map[string]any)
	if !ok {
		return
	}

	for snake, camel := range snakeNames {
		if v, ok := object[snake]; ok {
			if _, both := object[camel]; !both {
				object[camel] = v
			}
			delete(object, snake)
		}
	}
}

func asArray(v any) []any {
	array, _ := v.([]any)
	return array
}
