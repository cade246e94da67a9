package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Trigger is a trigger on a user's table.
type Trigger struct {
	Name       string   `json:"name"`
	Timing     string   `json:"timing" enum:"before,after,instead of"`
	Events     []string `json:"events" doc:"insert, update, delete, truncate"`
	Level      string   `json:"level" enum:"row,statement"`
	Columns    []string `json:"columns" doc:"Columns whose update fires the trigger; empty for all."`
	Function   string   `json:"function" doc:"schema.name"`
	Enabled    bool     `json:"enabled"`
	Arguments  []string `json:"arguments" db:"-" doc:"Arguments of the function, in TG_ARGV."`
	Constraint bool     `json:"constraint" doc:"A constraint trigger, which can fire at the end of the transaction if it is deferrable."`
	Deferral
	Definition string `json:"definition" doc:"As the database prints it, with its condition."`
}

// Deferral defines whether and how a constraint or constraint trigger is deferred.
type Deferral struct {
	Deferrable        bool `json:"deferrable" doc:"SET CONSTRAINTS can defer it until the end of the transaction."`
	InitiallyDeferred bool `json:"initiallyDeferred" doc:"Deferred by default; SET CONSTRAINTS can change that."`
}

// NewTrigger describes a trigger to create.
type NewTrigger struct {
	Name     string
	Timing   string // before or after
	Events   []string
	Level    string // row or statement; "" means row
	Columns  []string
	Function string // schema.name, or name for public.name

	Arguments  []string
	When       string // a condition on old and new; "" for none
	Constraint bool
	Deferral
}

type triggerRow struct {
	Trigger
	Args []byte // each terminated by a NUL
}

// triggersOf returns a table's triggers, or only the named one unless name is nil.
func triggersOf(ctx context.Context, q pg.Querier, t Table, name any) ([]Trigger, error) {
	rows, err := pg.All[triggerRow](ctx, q, selectTriggers, pgx.StrictNamedArgs{"id": t.ID, "name": name})
	all := make([]Trigger, len(rows))
	for i, r := range rows {
		all[i] = r.Trigger
		all[i].Arguments = strings.Split(string(r.Args), "\x00")
		all[i].Arguments = all[i].Arguments[:len(all[i].Arguments)-1]
	}

	return all, err
}

// selectTriggers decodes pg_trigger.tgtype's bits: 1 row, 2 before, 4 insert, 8 delete, 16 update,
// 32 truncate, 64 instead of.
const selectTriggers = `
	select t.tgname as name, case when t.tgtype & 2 <> 0 then 'before' when t.tgtype & 64 <> 0 then 'instead of' else 'after' end as timing,
		array_remove(array[case when t.tgtype & 4 <> 0 then 'insert' end, case when t.tgtype & 16 <> 0 then 'update' end,
			case when t.tgtype & 8 <> 0 then 'delete' end, case when t.tgtype & 32 <> 0 then 'truncate' end], null) as events,
		case when t.tgtype & 1 <> 0 then 'row' else 'statement' end as level,
		array(select a.attname::text from pg_catalog.unnest(t.tgattr::int2[]) with ordinality c(number, n)
			join pg_catalog.pg_attribute a on a.attrelid = t.tgrelid and a.attnum = c.number order by c.n) as columns,
		n.nspname || '.' || p.proname as function, t.tgenabled <> 'D' as enabled,
		t.tgargs as args, t.tgconstraint <> 0 as constraint, t.tgdeferrable as deferrable, t.tginitdeferred as initially_deferred,
		coalesce(pg_catalog.pg_get_triggerdef(t.oid), '') as definition -- null if dropped concurrently
	from pg_catalog.pg_trigger t
	join pg_catalog.pg_proc p on p.oid = t.tgfoid
	join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	where t.tgrelid = @id and not t.tgisinternal and (@name::text is null or t.tgname = @name)
	order by t.tgname`

// ListTriggers returns a table's triggers by name. It fails as [GetTable] does.
func ListTriggers(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) ([]Trigger, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}

	return triggersOf(ctx, q, t, nil)
}

// GetTrigger returns a table's trigger. It fails as [GetTable] does, and with NotFound for an
// unknown trigger.
func GetTrigger(ctx context.Context, q pg.Querier, project uuid.UUID, ref, name string) (Trigger, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return Trigger{}, err
	}

	return getTrigger(ctx, q, t, name)
}

func getTrigger(ctx context.Context, q pg.Querier, t Table, name string) (Trigger, error) {
	triggers, err := triggersOf(ctx, q, t, name)
	if err != nil {
		return Trigger{}, err
	}

	if len(triggers) == 0 {
		return Trigger{}, fault.New(fault.NotFound, "there is no such trigger")
	}

	return triggers[0], nil
}

// CreateTrigger creates a trigger on a table. It fails as [GetTable] does, with Conflict on name if
// the table has a trigger with that name, with Conflict, code busy, if the table is locked, and
// with Unprocessable on the field at fault.
func CreateTrigger(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, n NewTrigger,
) (Trigger, error) {
	var trigger Trigger
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if err := n.validate(); err != nil {
			return err
		}

		err := withSearchPath(ctx, tx, t.Schema, func() error {
			when, err := n.condition(ctx, tx, t)
			if err != nil {
				return err
			}

			return translate(execute(ctx, tx, n.statement(t, when)), n.explain)
		})
		if err != nil {
			return err
		}

		trigger, err = getTrigger(ctx, tx, t, n.Name)
		return err
	})

	return trigger, err
}

// EnableTrigger enables or disables a trigger. It fails as [GetTrigger] does, and with Conflict,
// code busy, if the table is locked.
func EnableTrigger(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, enable bool,
) (Trigger, error) {
	var trigger Trigger
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		if trigger, err = getTrigger(ctx, tx, t, name); err != nil || trigger.Enabled == enable {
			return err
		}

		verb := " disable trigger "
		if enable {
			verb = " enable trigger "
		}

		trigger.Enabled = enable
		return translate(execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+verb+pg.Quote(name)), nil)
	})

	return trigger, err
}

// DeleteTrigger drops a trigger. It fails as [EnableTrigger] does, and with Conflict, code in_use,
// if the trigger belongs to a partitioned table.
func DeleteTrigger(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string) error {
	return changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if _, err := getTrigger(ctx, tx, t, name); err != nil {
			return err
		}

		return translate(execute(ctx, tx, "drop trigger "+pg.Quote(name)+" on "+pg.Quote(t.Schema, t.Name)+" restrict"),
			func(state string) *fault.Error {
				if state == "2BP01" { // dependent_objects_still_exist
					return belongsToWhole()
				}
				return nil
			})
	})
}

var triggerEvents = []string{"insert", "update", "delete", "truncate"}

// validate checks the trigger without the database.
func (n NewTrigger) validate() error {
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
			return fault.OnField(fault.Unprocessable, "events", "not_allowed", "must be distinct values of %s",
				strings.Join(triggerEvents, ", "))
		}
	}

	if slices.Contains(n.Events, "truncate") && n.Level != "statement" {
		return fault.OnField(fault.Unprocessable, "level", "not_allowed", "must be statement for truncate")
	}
	if n.Constraint && (n.Timing != "after" || n.Level == "statement") {
		return fault.OnField(fault.Unprocessable, "constraint", "not_applicable",
			"requires the timing after and the level row")
	}
	if n.Deferrable && !n.Constraint {
		return fault.OnField(fault.Unprocessable, "deferrable", "not_applicable", "requires a constraint trigger")
	}
	if n.InitiallyDeferred && !n.Deferrable {
		return fault.OnField(fault.Unprocessable, "initially_deferred", "not_applicable",
			"requires deferrable")
	}
	if len(n.Columns) > 0 && !slices.Contains(n.Events, "update") {
		return fault.OnField(fault.Unprocessable, "columns", "not_applicable", "requires the event update")
	}

	for i, c := range n.Columns {
		if !pg.Storable(c) || c == "" || len(c) > 63 || slices.Contains(n.Columns[:i], c) {
			return fault.OnField(fault.Unprocessable, "columns", "invalid_value",
				"must be distinct columns of the table")
		}
	}

	if _, _, ok := splitName(n.Function); !ok {
		return fault.OnField(fault.Unprocessable, "function", "invalid_value",
			"must be the name of one of the project's functions")
	}

	return nil
}

// condition returns the trigger's condition as SQL, or "". The condition may use old and new if all
// trigger events provide them.
func (n NewTrigger) condition(ctx context.Context, tx pgx.Tx, t Table) (string, error) {
	if n.When == "" {
		return "", nil
	}

	var rows []string
	if n.Level != "statement" && !slices.Contains(n.Events, "delete") {
		rows = append(rows, "only "+pg.Quote(t.Schema, t.Name)+` as "new"`)
	}
	if n.Level != "statement" && !slices.Contains(n.Events, "insert") {
		rows = append(rows, "only "+pg.Quote(t.Schema, t.Name)+` as "old"`)
	}

	from := ""
	if len(rows) > 0 {
		from = " from " + strings.Join(rows, ", ")
	}

	text, err := conditionOn(ctx, tx, from, "when", n.When)
	if err != nil {
		return "", err
	}

	// Check the function here, since CREATE TRIGGER's error does not tell it from the condition.
	schema, function, _ := splitName(n.Function)
	fits, err := pg.Value[bool](ctx, tx, `
		select exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
			where n.nspname = @schema and p.proname = @name and p.pronargs = 0 and p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype)`,
		pgx.StrictNamedArgs{"schema": schema, "name": function})
	if err != nil {
		return "", err
	}

	if !fits {
		return "", n.explain("42883")
	}

	return " when " + text, nil
}

// statement returns the SQL that creates the trigger.
func (n NewTrigger) statement(t Table, when string) string {
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
	arguments := make([]string, len(n.Arguments))
	for i, a := range n.Arguments {
		arguments[i] = pg.Literal(a)
	}

	kind := "create trigger "
	if n.Constraint {
		kind = "create constraint trigger "
	}

	return kind + pg.Quote(n.Name) + " " + n.Timing + " " + strings.Join(events, " or ") + " on " +
		pg.Quote(t.Schema, t.Name) + n.clause() +
		" for each " + level + when + " execute function " + pg.Quote(schema, function) + "(" +
		strings.Join(arguments, ", ") + ")"
}

// clause returns the deferral as SQL.
func (d Deferral) clause() string {
	switch {
	case d.InitiallyDeferred:
		return " deferrable initially deferred"
	case d.Deferrable:
		return " deferrable"
	}

	return ""
}

// explain translates an SQLSTATE from CREATE TRIGGER.
func (n NewTrigger) explain(state string) *fault.Error {
	// The function was checked before, so these states blame the condition.
	if n.When != "" && (state == "0A000" || state == "42P17" || state == "42803" || state == "42P20") {
		return badExpression("when", state)
	}

	switch state {
	case "42710", "23505": // duplicate_object, unique_violation in the catalog
		return fault.OnField(fault.Conflict, "name", "already_exists", "is already used by a trigger of the table")
	case "42883", "3F000": // undefined_function, invalid_schema_name
		return fault.OnField(fault.Unprocessable, "function", "not_found",
			"is not a function of the project without parameters")
	case "42P17", "42501": // invalid_object_definition, insufficient_privilege
		return fault.OnField(fault.Unprocessable, "function", "not_applicable",
			"must be a function of the project that returns trigger")
	case "42703": // undefined_column
		return fault.OnField(fault.Unprocessable, "columns", "not_found", "must be columns of the table")
	}

	return nil
}
