package form

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Field is a question in a form.
type Field struct {
	UUID     uuid.UUID `json:"uuid" format:"uuid"`
	FormUUID uuid.UUID `json:"formUuid" format:"uuid"`
	Definition
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

const fieldColumns = `
	uuid, form_uuid, label, name, type, description, is_required, default_value, options::text as options, pattern,
	min_length, max_length, min_value, max_value, date_format, start_date, end_date, created_at, updated_at`

const (
	maxFields = 500 // per form
	maxBatch  = 100 // per request
)

// CreateFields appends fields to a form in the given order, all or none. It fails with NotFound if
// the form does not exist, and with Unprocessable on every invalid member, such as fields.0.label.
func CreateFields(ctx context.Context, p *projectdb.Project, form uuid.UUID, fields []FieldInput) ([]Field, error) {
	definitions, invalid := validateFields(fields)
	var result []Field
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		honeypot, err := incrementVersion(ctx, tx, form)
		if err != nil {
			return err
		}

		if invalid != nil { // NotFound takes precedence
			return invalid
		}

		last, err := pg.One[struct{ Count, Position int }](ctx, tx, `
			select count(*), coalesce(max(position), 0) as position from forms.fields where form_uuid = @form`,
			pgx.StrictNamedArgs{"form": form})
		if err != nil {
			return err
		}

		if last.Count+len(fields) > maxFields {
			return fault.OnField(fault.Unprocessable, "fields", "too_many",
				"must not exceed %d per form", maxFields)
		}

		result = make([]Field, 0, len(fields)) // InTx may retry the function
		for i, d := range definitions {
			member := fmt.Sprintf("fields.%d.name", i)
			if err := checkHoneypot(d.Name, honeypot, member); err != nil {
				return err
			}

			f, err := insertField(ctx, tx, form, last.Position+i+1, d)
			if err != nil {
				return nameTaken(err, member)
			}

			result = append(result, f)
		}

		return checkPatterns(ctx, tx, form, result, func(i int) string { return fmt.Sprintf("fields.%d.pattern", i) })
	})
	if err != nil {
		return nil, err
	}

	return result, nil
}

// incrementVersion increments a form's field version, and returns the form's honeypot. The lock on
// the form's row serializes changes, so that versions and positions are unique.
func incrementVersion(ctx context.Context, tx pgx.Tx, form uuid.UUID) (honeypot *string, err error) {
	return pg.Value[*string](ctx, tx,
		`update forms.forms set version = version + 1 where uuid = @form returning honeypot`,
		pgx.StrictNamedArgs{"form": form})
}

// validateFields validates new fields.
func validateFields(fields []FieldInput) ([]Definition, error) {
	switch n := len(fields); {
	case n == 0:
		return nil, fault.OnField(fault.Unprocessable, "fields", "required", "must be at least one field")
	case n > maxBatch:
		return nil, fault.OnField(fault.Unprocessable, "fields", "too_many", "must be at most %d fields", maxBatch)
	}

	definitions := make([]Definition, len(fields))
	var all problems
	for i, in := range fields {
		d, invalid := Definition{}.apply(in)
		for _, f := range invalid {
			f.Name = fmt.Sprintf("fields.%d.%s", i, f.Name)
			all = append(all, f)
		}

		definitions[i] = d
	}

	return definitions, all.err()
}

func insertField(ctx context.Context, tx pgx.Tx, form uuid.UUID, position int, d Definition) (Field, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Field{}, err
	}

	args := d.args()
	args["id"], args["form"], args["position"] = id, form, position

	return pg.One[Field](ctx, tx, `
		insert into forms.fields (uuid, form_uuid, position, label, name, type, description, is_required, default_value,
			options, pattern, min_length, max_length, min_value, max_value, date_format, start_date, end_date)
		values (@id, @form, @position, @label, @name, @type, @description, @required, @default,
			@options::text::json, @pattern, @min_length, @max_length, @min_value, @max_value,
			@date_format, @start_date, @end_date)
		returning `+fieldColumns, args)
}

// GetField returns a form's field. It fails with NotFound if the form has no such field.
func GetField(ctx context.Context, p *projectdb.Project, form, field uuid.UUID) (Field, error) {
	return pg.One[Field](ctx, p.Trusted(), `
		select `+fieldColumns+` from forms.fields where uuid = @field and form_uuid = @form`,
		pgx.StrictNamedArgs{"field": field, "form": form})
}

// ListFields returns a form's fields in order. It fails with NotFound if the form does not exist.
func ListFields(ctx context.Context, p *projectdb.Project, form uuid.UUID) ([]Field, error) {
	f, err := GetFullForm(ctx, p, form)
	return f.Fields, err
}

func listFields(ctx context.Context, q pg.Querier, form uuid.UUID) ([]Field, error) {
	return pg.All[Field](ctx, q, `select `+fieldColumns+` from forms.fields where form_uuid = @form order by position`,
		pgx.StrictNamedArgs{"form": form})
}

// DeleteField deletes a field from a form; existing responses keep their answers. It fails with
// NotFound if the form has no such field.
func DeleteField(ctx context.Context, p *projectdb.Project, form, field uuid.UUID) (Field, error) {
	var f Field
	err := p.InTx(ctx, func(tx pgx.Tx) (err error) {
		if _, err := incrementVersion(ctx, tx, form); err != nil {
			return err
		}

		f, err = pg.One[Field](ctx, tx, `
			delete from forms.fields where uuid = @field and form_uuid = @form
			returning `+fieldColumns, pgx.StrictNamedArgs{"field": field, "form": form})
		return err
	})

	return f, err
}

// OrderFields reorders a form's fields and returns them. order names each field once. It fails with
// NotFound if the form does not exist, and with Unprocessable on fields if order does not match the
// form's fields.
func OrderFields(ctx context.Context, p *projectdb.Project, form uuid.UUID, order []uuid.UUID) ([]Field, error) {
	var fields []Field
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := incrementVersion(ctx, tx, form); err != nil {
			return err
		}

		current, err := listFields(ctx, tx, form)
		if err != nil {
			return err
		}

		missing := make(map[uuid.UUID]bool, len(current))
		for _, f := range current {
			missing[f.UUID] = true
		}

		for i, id := range order {
			if !missing[id] {
				return fault.OnField(fault.Unprocessable, fmt.Sprintf("fields.%d", i), "unknown",
					"must be a field of the form, listed once")
			}

			delete(missing, id)
		}

		if len(missing) > 0 {
			return fault.OnField(fault.Unprocessable, "fields", "incomplete", "must list all %s of the form",
				plural(len(current), "field"))
		}

		// Negate the positions first: they must be unique at any time.
		if _, err := pg.Exec(ctx, tx, `update forms.fields set position = -position where form_uuid = @form`,
			pgx.StrictNamedArgs{"form": form}); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `
			update forms.fields f set position = o.position
			from unnest(@order::uuid[]) with ordinality as o (uuid, position)
			where f.uuid = o.uuid and f.form_uuid = @form`,
			pgx.StrictNamedArgs{"form": form, "order": order}); err != nil {
			return err
		}

		fields, err = listFields(ctx, tx, form)
		return err
	})

	return fields, err
}

// UpdateField changes a form's field; existing responses stay unchanged. It fails with NotFound if
// the form has no such field, and with Unprocessable on every invalid member.
func UpdateField(ctx context.Context, p *projectdb.Project, form, field uuid.UUID, in FieldInput) (Field, error) {
	var f Field
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		honeypot, err := incrementVersion(ctx, tx, form)
		if err != nil {
			return err
		}

		current, err := pg.One[Field](ctx, tx, `
			select `+fieldColumns+` from forms.fields where uuid = @field and form_uuid = @form for no key update`,
			pgx.StrictNamedArgs{"field": field, "form": form})
		if err != nil {
			return err
		}

		d, invalid := current.Definition.apply(in)
		if err := invalid.err(); err != nil {
			return err
		}
		if err := checkHoneypot(d.Name, honeypot, "name"); err != nil {
			return err
		}

		args := d.args()
		args["field"] = field
		f, err = pg.One[Field](ctx, tx, `
			update forms.fields
			set label = @label, name = @name, type = @type, description = @description, is_required = @required,
			    default_value = @default, options = @options::text::json, pattern = @pattern,
			    min_length = @min_length, max_length = @max_length, min_value = @min_value, max_value = @max_value,
			    date_format = @date_format, start_date = @start_date, end_date = @end_date, updated_at = now()
			where uuid = @field
			returning `+fieldColumns, args)
		if err != nil {
			return nameTaken(err, "name")
		}

		return checkPatterns(ctx, tx, form, []Field{f}, func(int) string { return "pattern" })
	})

	return f, err
}

// checkPatterns fails with Unprocessable if a form's patterns exceed their common limit. The error
// names the changed field that exceeds it; name returns the i-th changed field's member.
func checkPatterns(ctx context.Context, tx pgx.Tx, form uuid.UUID, fields []Field, name func(i int) string) error {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Pattern != nil })
	if i < 0 {
		return nil
	}

	all, err := listFields(ctx, tx, form)
	if err != nil {
		return err
	}

	budget := newPatternBudget()
	for _, f := range all {
		if f.Pattern == nil {
			continue
		}

		p, err := compilePattern(patterns, *f.Pattern)
		if err != nil { // stored under the limits of an older release
			continue
		}

		if !budget.spend(p) {
			if at := slices.IndexFunc(fields, func(c Field) bool { return c.UUID == f.UUID }); at >= 0 {
				i = at
			}

			return fault.OnField(fault.Unprocessable, name(i), "invalid_value",
				"is too complex together with the other patterns of the form")
		}
	}

	return nil
}

func (d Definition) args() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"label": d.Label, "name": d.Name, "type": d.Type, "description": d.Description,
		"required": d.IsRequired, "default": d.DefaultValue, "options": d.Options, "pattern": d.Pattern,
		"min_length": d.MinLength, "max_length": d.MaxLength, "min_value": d.MinValue, "max_value": d.MaxValue,
		"date_format": d.DateFormat, "start_date": d.StartDate, "end_date": d.EndDate}
}
