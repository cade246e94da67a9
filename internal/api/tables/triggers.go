package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerTriggers(p *operation.Pipeline) {
	operation.HandleInProject(p, createTrigger, s.createTrigger, s.findTableOfTrigger)
	operation.HandleInProject(p, listTriggers, s.listTriggers, nil)
	operation.HandleInProject(p, updateTrigger, s.updateTrigger, s.findTrigger)
	operation.HandleInProject(p, deleteTrigger, s.deleteTrigger, nil)
}

var createTrigger = operation.Operation{
	ID: "createTrigger", Method: "POST", Path: "/tables/{tableUUID}/triggers", Summary: "Create a trigger",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Timeout: operation.LongTimeout,
	Example: `{"name": "stamp", "timing": "before", "events": ["update"], "function": "stamp"}`,
}

type createTriggerInput struct {
	tableInput
	Body struct {
		Name              string   `json:"name"`
		Timing            string   `json:"timing" enum:"before,after"`
		Events            []string `json:"events" minItems:"1" maxItems:"4" enum:"insert,update,delete,truncate"`
		Level             string   `json:"level,omitempty" enum:"row,statement" doc:"Default: row. truncate requires statement."`
		Columns           []string `json:"columns,omitempty" maxItems:"1600" doc:"Fire only on updates of these columns."`
		Function          string   `json:"function" doc:"Trigger function without parameters: schema.name, or name for public.name."`
		Arguments         []string `json:"arguments,omitempty" maxItems:"32" maxLength:"1000" doc:"Arguments of the function, in TG_ARGV."`
		When              string   `json:"when,omitempty" maxLength:"10000" doc:"SQL condition on old and new, as far as all events have them; the trigger fires only if it is true."`
		Constraint        bool     `json:"constraint,omitempty" doc:"Create a constraint trigger, which can be deferrable. Requires after and row."`
		Deferrable        bool     `json:"deferrable,omitempty" doc:"Whether SET CONSTRAINTS can defer a constraint trigger to the end of the transaction."`
		InitiallyDeferred bool     `json:"initially_deferred,omitempty" doc:"Whether a deferrable trigger is deferred by default."`
		operation.ProjectInBody
	}
}

func (s *Server) findTableOfTrigger(ctx context.Context, p *projectdb.Project, in *createTriggerInput) error {
	_, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	return err
}

func (s *Server) createTrigger(
	ctx context.Context, p *projectdb.Project, in *createTriggerInput,
) (schema.Trigger, error) {
	b := in.Body
	return schema.CreateTrigger(ctx, p.Owner(), p.UUID, in.Table, schema.NewTrigger{Name: b.Name,
		Timing: b.Timing, Events: b.Events,
		Level: b.Level, Columns: b.Columns, Function: b.Function, Arguments: b.Arguments,
		When: b.When, Constraint: b.Constraint,
		Deferral: schema.Deferral{Deferrable: b.Deferrable, InitiallyDeferred: b.InitiallyDeferred}})
}

var listTriggers = operation.Operation{
	ID: "listTriggers", Method: "GET", Path: "/tables/{tableUUID}/triggers", Summary: "List a table's triggers",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) listTriggers(ctx context.Context, p *projectdb.Project, in *tableInput) ([]schema.Trigger, error) {
	return schema.ListTriggers(ctx, p.Trusted(), p.UUID, in.Table)
}

var updateTrigger = operation.Operation{
	ID: "updateTrigger", Method: "PUT",
	Path: "/tables/{tableUUID}/triggers/{triggerName}", Summary: "Enable or disable a trigger",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Timeout: operation.LongTimeout,
	Example: `{"enabled": false}`,
}

type triggerInput struct {
	tableInput
	Trigger string `path:"triggerName" maxLength:"63"`
}

type updateTriggerInput struct {
	triggerInput
	Body struct {
		Enabled bool `json:"enabled"`
		operation.ProjectInBody
	}
}

func (s *Server) findTrigger(ctx context.Context, p *projectdb.Project, in *updateTriggerInput) error {
	_, err := schema.GetTrigger(ctx, p.Trusted(), p.UUID, in.Table, in.Trigger)
	return err
}

func (s *Server) updateTrigger(
	ctx context.Context, p *projectdb.Project, in *updateTriggerInput,
) (schema.Trigger, error) {
	return schema.EnableTrigger(ctx, p.Owner(), p.UUID, in.Table, in.Trigger, in.Body.Enabled)
}

var deleteTrigger = operation.Operation{
	ID: "deleteTrigger", Method: "DELETE",
	Path: "/tables/{tableUUID}/triggers/{triggerName}", Summary: "Delete a trigger",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors,
	Timeout: operation.LongTimeout,
	Notes:   "The trigger's function remains.",
}

// triggerName identifies a deleted trigger.
type triggerName struct {
	Name string `json:"name"`
}

func (s *Server) deleteTrigger(ctx context.Context, p *projectdb.Project, in *triggerInput) (triggerName, error) {
	return triggerName{in.Trigger}, schema.DeleteTrigger(ctx, p.Owner(), p.UUID, in.Table, in.Trigger)
}
