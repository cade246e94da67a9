package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Trigger is a trigger of a table of the user's.
type Trigger struct {
	Name     string   `json:"name"`
	Timing   string   `json:"timing" enum:"before,after,instead of"`
	Events   []string `json:"events" doc:"insert, update, delete, truncate"`
	Level    string   `json:"level" enum:"row,statement"`
	Columns  []string `json:"columns" doc:"Those whose update it is for; empty for all."`
	Function string   `json:"function" doc:"schema.name"`
	Enabled  bool     `json:"enabled"`
}

// NewTrigger is what a trigger is made of.
type NewTrigger struct {
	Name     string
	Timing   string // before or after
	Events   []string
	Level    string // row or statement; "" is row
	Columns  []string
	Function string // schema.name, or name for public.name
}

// The bits of pg_trigger.tgtype are PostgreSQL's own: 1 row, 2 before, 4 insert, 8 delete, 16 update, 32 truncate, 64 instead of.
const selectTriggers = `
	select t.tgname as name, case when t.tgtype & 2 <> 0 then 'before' when t.tgtype & 64 <> 0 then 'instead of' else 'after' end as timing,
		array_remove(array[case when t.tgtype & 4 <> 0 then 'insert' end, case when t.tgtype & 16 <> 0 then 'update' end,
			case when t.tgtype & 8 <> 0 then 'delete' end, case when t.tgtype & 32 <> 0 then 'truncate' end], null) as events,
		case when t.tgtype & 1 <> 0 then 'row' else 'statement' end as level,
		array(select a.attname::text from pg_catalog.unnest(t.tgattr::int2[]) with ordinality c(number, n)
			join pg_catalog.pg_attribute a on a.attrelid = t.tgrelid and a.attnum = c.number order by c.n) as columns,
		n.nspname || '.' || p.proname as function, t.tgenabled <> 'D' as enabled
	from pg_catalog.pg_trigger t
	join pg_catalog.pg_proc p on p.oid = t.tgfoid
	join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	where t.tgrelid = @id and not t.tgisinternal and (@name::text is null or t.tgname = @name)
	order by t.tgname`

// ListTriggers returns the triggers, by name, of the table that ref leads to. It fails as [GetTable] does.
func ListTriggers(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) ([]Trigger, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}
	return pg.All[Trigger](ctx, q, selectTriggers, pgx.StrictNamedArgs{"id": t.ID, "name": nil})
}

// GetTrigger returns a trigger of the table that ref leads to. It fails as [GetTable] does, and with NotFound if there is
// no such trigger.
func GetTrigger(ctx context.Context, q pg.Querier, project uuid.UUID, ref, name string) (Trigger, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return Trigger{}, err
	}
	return getTrigger(ctx, q, t, name)
}

func getTrigger(ctx context.Context, q pg.Querier, t Table, name string) (Trigger, error) {
	trigger, err := pg.One[Trigger](ctx, q, selectTriggers, pgx.StrictNamedArgs{"id": t.ID, "name": name})
	if fault.Is(err, fault.NotFound) {
		return trigger, fault.New(fault.NotFound, "there is no such trigger").Because(err)
	}
	return trigger, err
}

// CreateTrigger makes a trigger of the table that ref leads to. It fails as [GetTable] does, with Conflict on name if the
// table has such a trigger, with Conflict, code busy, if others hold the table, and with Unprocessable on the
// field at fault.
func CreateTrigger(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, n NewTrigger) (Trigger, error) {
	var made Trigger
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if err := n.check(); err != nil {
			return err
		}
		err := execute(ctx, tx, n.statement(t))
		if err != nil {
			return refused(err, n.explain)
		}
		made, err = getTrigger(ctx, tx, t, n.Name)
		return err
	})
	return made, err
}

// EnableTrigger switches a trigger on or off. It fails as [GetTrigger] does, and with Conflict, code busy, if others hold
// the table.
func EnableTrigger(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, enabled bool) (Trigger, error) {
	var changed Trigger
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		if changed, err = getTrigger(ctx, tx, t, name); err != nil || changed.Enabled == enabled {
			return err
		}
		verb := " disable trigger "
		if enabled {
			verb = " enable trigger "
		}
		changed.Enabled = enabled
		return refused(execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+verb+pg.Quote(name)), nil)
	})
	return changed, err
}

// DeleteTrigger drops a trigger. It fails as [EnableTrigger] does, and with Conflict, code in_use, if it came from a
// partitioned table.
func DeleteTrigger(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string) error {
	return changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if _, err := getTrigger(ctx, tx, t, name); err != nil {
			return err
		}
		return refused(execute(ctx, tx, "drop trigger "+pg.Quote(name)+" on "+pg.Quote(t.Schema, t.Name)+" restrict"), nil)
	})
}

var triggerEvents = []string{"insert", "update", "delete", "truncate"}

// check checks what needs no database.
func (n NewTrigger) check() error {
	if err := checkName(fault.Unprocessable, "name", n.Name); err != nil {
		return err
	}
	if n.Timing != "before" && n.Timing != "after" {
		return fault.OnField(fault.Unprocessable, "timing", "not_allowed", "must be before or after")
	}
	if n.Level != "" && n.Level != "row" && n.Level != "statement" {
		return fault.OnField(fault.Unprocessable, "level", "not_allowed", "must be row or statement")
	}
	if len(n.Events) == 0 {
		return fault.OnField(fault.Unprocessable, "events", "required", "must not be empty")
	}
	for i, e := range n.Events {
		if !slices.Contains(triggerEvents, e) || slices.Contains(n.Events[:i], e) {
			return fault.OnField(fault.Unprocessable, "events", "not_allowed", "must be different ones of %s", strings.Join(triggerEvents, ", "))
		}
	}
	if slices.Contains(n.Events, "truncate") && n.Level != "statement" {
		return fault.OnField(fault.Unprocessable, "level", "not_allowed", "must be statement for truncate")
	}
	if len(n.Columns) > 0 && !slices.Contains(n.Events, "update") {
		return fault.OnField(fault.Unprocessable, "columns", "not_applicable", "must be empty without the event update")
	}
	for i, c := range n.Columns {
		if !storable(c) || c == "" || len(c) > 63 || slices.Contains(n.Columns[:i], c) {
			return fault.OnField(fault.Unprocessable, "columns", "invalid_value", "must be different columns of the table")
		}
	}
	if _, _, ok := splitName(n.Function); !ok {
		return fault.OnField(fault.Unprocessable, "function", "invalid_value", "must be the name of one of the project's functions")
	}
	return nil
}

// statement returns the statement that makes the trigger.
func (n NewTrigger) statement(t Table) string {
	events := make([]string, len(n.Events))
	for i, e := range n.Events {
		events[i] = e
		if e == "update" && len(n.Columns) > 0 {
			columns := make([]string, len(n.Columns))
			for j, c := range n.Columns {
				columns[j] = pg.Quote(c)
			}
			events[i] = "update of " + strings.Join(columns, ", ")
		}
	}
	level := "row"
	if n.Level != "" {
		level = n.Level
	}
	schema, function, _ := splitName(n.Function)
	return "create trigger " + pg.Quote(n.Name) + " " + n.Timing + " " + strings.Join(events, " or ") + " on " + pg.Quote(t.Schema, t.Name) +
		" for each " + level + " execute function " + pg.Quote(schema, function) + "()"
}

// explain says what the server has against the trigger.
func (n NewTrigger) explain(state string) *fault.Error {
	switch state {
	case "42710", "23505": // duplicate_object, unique_violation in the catalogue
		return fault.OnField(fault.Conflict, "name", "already_exists", "is the name of another trigger of the table")
	case "42883", "3F000": // undefined_function, invalid_schema_name
		return fault.OnField(fault.Unprocessable, "function", "not_found", "is not a function without parameters of the project")
	case "42P17", "42501": // invalid_object_definition, insufficient_privilege
		return fault.OnField(fault.Unprocessable, "function", "not_applicable", "must be one of the project's that returns trigger")
	case "42703": // undefined_column
		return fault.OnField(fault.Unprocessable, "columns", "not_found", "must be columns of the table")
	}
	return nil
}
