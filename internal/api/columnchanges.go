package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerColumnChanges() {
	within(s, updateColumn, s.updateColumn, existingTable[updateColumnInput])
	within(s, deleteColumn, s.deleteColumn, nil)
}

var updateColumn = Operation{
	ID: "updateColumn", Method: "PUT", Path: "/tables/{tableUUID}/columns/{columnName}", Summary: "Change a column",
	Access: project(platform.Developer), Errors: shaping, Timeout: lasting, Destructive: true, Grows: true,
	Notes: "All members change or none. A type changes only if every row's value becomes one of it, in the way that `using` names; otherwise `metadata.failing` counts the rows (up to 1000), and `metadata.example` is the key of one. Members may be spelt in snake_case too.",
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
	Name         *string `json:"name,omitempty"`
	Type         *string `json:"type,omitempty"`
	Using        string  `json:"using,omitempty" enum:"cast,trimmed,empty_as_null,epoch_seconds,epoch_milliseconds,json,one_element" doc:"How a value becomes one of the type: by the database's cast (this is usual); without surrounding blanks; and empty as null; from seconds or milliseconds since 1970; as JSON; as an array's one element."`
	NotNull      *bool   `json:"notNull,omitempty"`
	Unique       *bool   `json:"unique,omitempty"`
	DefaultValue *string `json:"defaultValue,omitempty" nullable:"true" doc:"As for a new column; empty and null are none."`
	Comment      *string `json:"comment,omitempty" maxLength:"10000" doc:"Empty takes it back."`
	ProjectInBody
}

func (*updateColumnBody) normalize(v any) (any, string) {
	camelCase(v)

	if object, ok := v.(map[string]any); ok {
		if value, ok := object["defaultValue"]; ok && value == nil {
			object["defaultValue"] = ""
		}
	}

	return v, ""
}

// spares reports whether all values stay unchanged. A cast may round them.
func (in *updateColumnInput) spares() bool { return in.Body.Type == nil }

// slim reports whether the change neither rewrites rows nor builds an index.
func (in *updateColumnInput) slim() bool {
	return in.Body.Type == nil && (in.Body.Unique == nil || !*in.Body.Unique)
}

func (s *Server) updateColumn(ctx context.Context, p *tenant.Project, in *updateColumnInput) (schema.Column, error) {
	b := in.Body
	u := schema.ColumnUpdate{Name: b.Name, Type: b.Type, Using: b.Using, NotNull: b.NotNull, Unique: b.Unique,
		DefaultValue: b.DefaultValue, Comment: b.Comment}
	if u == (schema.ColumnUpdate{}) {
		return schema.Column{}, unchanging()
	}

	return schema.UpdateColumn(ctx, p.Owner(), p.UUID, in.Table, in.Column, u)
}

var deleteColumn = Operation{
	ID: "deleteColumn", Method: "DELETE", Path: "/tables/{tableUUID}/columns/{columnName}", Summary: "Delete a column",
	Access: project(platform.Developer), Errors: unshaping, Timeout: lasting, Destructive: true,
	Notes: "Indexes and constraints that it is a part of go with it. What else depends on it is in the way, and named in `metadata.dependents`, unless `cascade` says that it goes too.",
}

type deleteColumnInput struct {
	columnInput
	CascadeQuery
}

func (s *Server) deleteColumn(
	ctx context.Context, p *tenant.Project, in *deleteColumnInput,
) (Answer[schema.Column, deletedMetadata], error) {
	c, gone, err := schema.DeleteColumn(ctx, p.Owner(), p.UUID, in.Table, in.Column, in.cascade())
	return Answer[schema.Column, deletedMetadata]{Content: c, Metadata: deletedMetadata{gone}}, err
}
