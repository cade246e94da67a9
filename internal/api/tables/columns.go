package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerColumns(p *operation.Pipeline) {
	operation.HandleInProject(p, listColumns, s.listColumns, nil)
	operation.HandleInProject(p, createColumn, s.createColumn, s.findTableByName)
	operation.HandleInProject(p, updateColumn, s.updateColumn, existingTable[updateColumnInput])
	operation.HandleInProject(p, deleteColumn, s.deleteColumn, nil)
}

type tableNameInput struct {
	Table string `path:"fullTableName" maxLength:"200" doc:"schema.table, or table for public.table."`
}

var listColumns = operation.Operation{
	ID: "listColumns", Method: "GET", Path: "/tables/{fullTableName}/columns", Summary: "List a table's columns",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type commentsMetadata struct {
	Comments map[string]string `json:"comments" doc:"Comments of the columns, by name."`
}

func (s *Server) listColumns(
	ctx context.Context, p *projectdb.Project, in *tableNameInput,
) (operation.Answer[[]schema.Column, commentsMetadata], error) {
	columns, comments, err := schema.ListColumns(ctx, p.Trusted(), p.UUID, in.Table)
	return operation.WithMetadata(columns, commentsMetadata{comments}), err
}

var createColumn = operation.Operation{
	ID: "createColumn", Method: "POST", Path: "/tables/{fullTableName}/columns", Summary: "Create columns",
	Access: operation.Project(account.Developer), Specified: true, Errors: operation.SpecifiedBodyErrors,
	Timeout: operation.LongTimeout,
	Grows:   operation.Always, ListOf: "columns", Aliases: snakeNames,
	Notes: "Accepts one column, or several as `columns`, which are created all or none. The content is the first " +
		"one; `metadata.columns` has all of them. Members may also be spelled in snake_case.",
	Example: `{"name": "price", "type": "numeric(10,2)", "defaultValue": "9.90"}`,
}

type createColumnInput struct {
	tableNameInput
	Body createColumnBody
}

type createColumnBody struct {
	Columns []schema.NewColumn `json:"columns" minItems:"1" maxItems:"1600"`
	operation.ProjectInBody
}

type columnsMetadata struct {
	Columns []schema.Column `json:"columns"`
}

func (s *Server) findTableByName(ctx context.Context, p *projectdb.Project, in *createColumnInput) error {
	_, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	return err
}

func (s *Server) createColumn(
	ctx context.Context, p *projectdb.Project, in *createColumnInput,
) (operation.Answer[schema.Column, columnsMetadata], error) {
	columns, err := schema.CreateColumns(ctx, p.Owner(), p.UUID, in.Table, in.Body.Columns)
	if err != nil {
		return operation.Answer[schema.Column, columnsMetadata]{}, err
	}

	return operation.WithMetadata(columns[0], columnsMetadata{columns}), nil
}

// snakeNames maps the alternative spelling for column members to the specified one.
var snakeNames = map[string]string{"not_null": "notNull", "default_value": "defaultValue",
	"reference_table": "referenceTable", "reference_column": "referenceColumn"}

var updateColumn = operation.Operation{
	ID: "updateColumn", Method: "PUT", Path: "/tables/{tableUUID}/columns/{columnName}", Summary: "Update a column",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Destructive: operation.When((*updateColumnInput).convertsValues),
	Grows:       operation.When((*updateColumnInput).takesSpace),
	Aliases:     snakeNames,
	Notes: "All changes apply, or none. Changing the type requires that every value converts as `using` specifies; " +
		"otherwise `metadata.failing` has the number of failing rows (up to 1000) and `metadata.example` the key " +
		"of one. The default converts in the same way. If views, generated columns, policies or others prevent a " +
		"change, `metadata.dependents` lists them. `metadata.mentions` has the functions whose text has the table's " +
		"and the column's name, after a change of name or type. Members may also be spelled in snake_case.",
	Example: `{"type": "numeric(12,2)", "notNull": true}`,
}

type columnInput struct {
	tableInput
	Column string `path:"columnName" maxLength:"200"`
}

type updateColumnInput struct {
	columnInput
	Body updateColumnBody
}

type updateColumnBody struct {
	Name         *string          `json:"name,omitempty"`
	Type         *string          `json:"type,omitempty"`
	Using        string           `json:"using,omitempty" enum:"cast,trimmed,empty_as_null,epoch_seconds,epoch_milliseconds,json,one_element" doc:"How to convert values: cast (default) uses the database's cast; trimmed removes surrounding blanks first; empty_as_null also converts empty text to null; epoch_seconds and epoch_milliseconds read Unix times; json parses JSON; one_element takes the only element of an array."`
	NotNull      *bool            `json:"notNull,omitempty"`
	Unique       *bool            `json:"unique,omitempty"`
	DefaultValue form.Opt[string] `json:"defaultValue,omitzero" nullable:"true" doc:"Default as for a new column; empty or null removes it."`
	Comment      *string          `json:"comment,omitempty" maxLength:"10000" doc:"Empty removes the comment."`
	operation.ProjectInBody
}

// convertsValues reports whether values may change: a cast may round them.
func (in *updateColumnInput) convertsValues() bool { return in.Body.Type != nil }

// takesSpace reports whether the change rewrites rows or builds an index.
func (in *updateColumnInput) takesSpace() bool {
	return in.Body.Type != nil || (in.Body.Unique != nil && *in.Body.Unique)
}

func (s *Server) updateColumn(
	ctx context.Context, p *projectdb.Project, in *updateColumnInput,
) (operation.Answer[schema.Column, schema.MentionsMetadata], error) {
	b := in.Body
	u := schema.ColumnUpdate{Name: b.Name, Type: b.Type, Using: b.Using, NotNull: b.NotNull, Unique: b.Unique,
		DefaultValue: b.DefaultValue.Value, Comment: b.Comment}
	if b.DefaultValue.Named && b.DefaultValue.Value == nil {
		u.DefaultValue = new("")
	}
	if u == (schema.ColumnUpdate{}) {
		return operation.Answer[schema.Column, schema.MentionsMetadata]{}, fault.NothingToChange()
	}

	mentions := []schema.Dependent{}
	if u.Name != nil || u.Type != nil {
		var err error
		if mentions, err = schema.TableMentions(ctx, p.Trusted(), p.UUID, in.Table, in.Column); err != nil {
			return operation.Answer[schema.Column, schema.MentionsMetadata]{}, err
		}
	}

	c, err := schema.UpdateColumn(ctx, p.Owner(), p.UUID, in.Table, in.Column, u)
	return operation.WithMetadata(c, schema.MentionsMetadata{Mentions: mentions}), err
}

var deleteColumn = operation.Operation{
	ID: "deleteColumn", Method: "DELETE", Path: "/tables/{tableUUID}/columns/{columnName}", Summary: "Delete a column",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Destructive: operation.Always,
	Notes: "Deletes the indexes and constraints that include the column. Other dependents prevent the deletion, " +
		"and `metadata.dependents` lists them, unless `cascade` is true.",
}

type deleteColumnInput struct {
	columnInput
	CascadeQuery
}

func (s *Server) deleteColumn(
	ctx context.Context, p *projectdb.Project, in *deleteColumnInput,
) (operation.Answer[schema.Column, deletedMetadata], error) {
	mentions, err := schema.TableMentions(ctx, p.Trusted(), p.UUID, in.Table, in.Column)
	if err != nil {
		return operation.Answer[schema.Column, deletedMetadata]{}, err
	}

	c, dependents, err := schema.DeleteColumn(ctx, p.Owner(), p.UUID, in.Table, in.Column, in.cascade())
	return operation.WithMetadata(c, deletedMetadata{dependents, mentions}), err
}
