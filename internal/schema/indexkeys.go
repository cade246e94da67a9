package schema

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// IndexKey is an index key: a column or an expression.
type IndexKey struct {
	Column        string `json:"column,omitempty" doc:"Either column or expression is required."`
	Expression    string `json:"expression,omitempty" maxLength:"10000" doc:"An immutable SQL expression on one row, such as lower(email)."`
	OperatorClass string `json:"operator_class,omitempty" maxLength:"127" doc:"Operator class, such as text_pattern_ops. The default is that of the type."`
	Descending    bool   `json:"descending,omitempty"`
	Nulls         string `json:"nulls,omitempty" enum:"first,last" doc:"The default is last, or first if descending."`
}

// sql returns the key as SQL.
func (k IndexKey) sql() string {
	sql := "(" + k.Expression + ")"
	if k.Column != "" {
		sql = pg.Quote(k.Column)
	}
	if k.OperatorClass != "" {
		sql += " " + pg.Quote(strings.Split(k.OperatorClass, ".")...)
	}
	if k.Descending {
		sql += " desc"
	}
	if k.Nulls != "" {
		sql += " nulls " + k.Nulls
	}

	return sql
}

// allKeys returns the index keys from Columns or Keys.
func (n NewIndex) allKeys() []IndexKey {
	if len(n.Columns) == 0 {
		return n.Keys
	}

	keys := make([]IndexKey, len(n.Columns))
	for i, c := range n.Columns {
		keys[i].Column = c
	}

	return keys
}

// keyColumns returns the columns among the keys.
func (n NewIndex) keyColumns() []string {
	columns := []string{}
	for _, k := range n.allKeys() {
		if k.Column != "" {
			columns = append(columns, k.Column)
		}
	}

	return columns
}

// Planned describes the index before it exists.
func (n NewIndex) Planned(status, reason string) Index {
	x := Index{Name: n.Name, Columns: n.keyColumns(), Keys: []string{}, Include: append([]string{}, n.Include...),
		Unique: n.Unique, NullsNotDistinct: n.NullsNotDistinct,
		Method: n.Method, Status: status, Error: reason}

	for _, k := range n.allKeys() {
		x.Keys = append(x.Keys, k.Column+k.Expression)
	}

	if n.Where != "" {
		x.Where = &n.Where
	}

	return x
}

// validate checks the index's parts and that its method supports them. Names in expressions resolve
// as in [withSearchPath].
func (n NewIndex) validate(ctx context.Context, tx pgx.Tx, t Table) error {
	switch {
	case len(n.Columns) == 0 && len(n.Keys) == 0:
		return fault.OnField(fault.Unprocessable, "columns", "required", "is required unless keys are given")
	case len(n.Columns) > 0 && len(n.Keys) > 0:
		return fault.OnField(fault.Unprocessable, "keys", "not_applicable", "can't be combined with columns")
	case n.NullsNotDistinct && !n.Unique:
		return fault.OnField(fault.Unprocessable, "nulls_not_distinct", "not_applicable",
			"requires a unique index")
	}

	if err := checkColumnNames(ctx, tx, t, "columns", n.Columns); err != nil {
		return err
	}
	if err := checkColumnNames(ctx, tx, t, "include", n.Include); err != nil {
		return err
	}

	for i, k := range n.Keys {
		if err := k.validate(ctx, tx, t, "keys."+strconv.Itoa(i)+"."); err != nil {
			return err
		}
	}

	if n.Where != "" {
		if _, err := condition(ctx, tx, t, "where", n.Where); err != nil {
			return err
		}
	}

	return n.checkMethod(ctx, tx)
}

func (k IndexKey) validate(ctx context.Context, tx pgx.Tx, t Table, prefix string) error {
	if k.OperatorClass != "" {
		for part := range strings.SplitSeq(k.OperatorClass, ".") {
			if err := checkName(fault.Unprocessable, prefix+"operator_class", part); err != nil {
				return err
			}
		}

		if strings.Count(k.OperatorClass, ".") > 1 {
			return fault.OnField(fault.Unprocessable, prefix+"operator_class", "invalid_value",
				"must be the name of an operator class, optionally qualified")
		}
	}

	switch {
	case k.Column != "" && k.Expression != "":
		return fault.OnField(fault.Unprocessable, prefix+"expression", "not_applicable",
			"can't be combined with column")
	case k.Expression != "":
		return expression(ctx, tx, t, prefix+"expression", k.Expression)
	}

	columns, err := columnNames(ctx, tx, t.ID)
	if err != nil {
		return err
	}

	for _, name := range columns {
		if name == k.Column {
			return nil
		}
	}

	return fault.OnField(fault.Unprocessable, prefix+"column", "not_found", "is not a column of the table")
}

// expression checks a client's text as an expression on one table row, as [condition] does.
func expression(ctx context.Context, tx pgx.Tx, t Table, field, text string) error {
	if strings.TrimSpace(text) == "" {
		return fault.OnField(fault.Unprocessable, field, "required", "must not be empty")
	}

	if err := parseExpression(text); err != nil {
		return fault.OnField(fault.Unprocessable, field, "invalid_expression", "%s", err)
	}

	// pg_typeof accepts exactly one expression with any type.
	head := "select pg_catalog.pg_typeof("
	_, err := tx.Conn().PgConn().Prepare(ctx, "", head+text+") from only "+pg.Quote(t.Schema, t.Name), nil)

	return translateExpression(err, field, head, text)
}

// checkMethod checks that the index method supports the requested features, so that errors identify
// their field.
func (n NewIndex) checkMethod(ctx context.Context, tx pgx.Tx) error {
	can, err := pg.One[struct{ Unique, Several, Includes, Orders bool }](ctx, tx, `
		select coalesce(pg_catalog.pg_indexam_has_property(oid, 'can_unique'), false) as unique,
			coalesce(pg_catalog.pg_indexam_has_property(oid, 'can_multi_col'), false) as several,
			coalesce(pg_catalog.pg_indexam_has_property(oid, 'can_include'), false) as includes,
			coalesce(pg_catalog.pg_indexam_has_property(oid, 'can_order'), false) as orders
		from pg_catalog.pg_am where amname = @method`, pgx.StrictNamedArgs{"method": n.Method})
	if err != nil {
		return err
	}

	keys := n.allKeys()
	if n.Unique && !can.Unique || len(keys) > 1 && !can.Several {
		return fault.OnField(fault.Unprocessable, "method", "not_supported",
			"does not support unique or multicolumn indexes")
	}
	if len(n.Include) > 0 && !can.Includes {
		return fault.OnField(fault.Unprocessable, "include", "not_applicable", "is not supported by the method")
	}

	for i, k := range keys {
		if (k.Descending || k.Nulls != "") && !can.Orders {
			return fault.OnField(fault.Unprocessable, "keys."+strconv.Itoa(i), "not_applicable",
				"has ordering options that the method does not support")
		}
	}

	return nil
}

// explain translates an SQLSTATE from CREATE INDEX.
func (n NewIndex) explain(state string) *fault.Error {
	on := func(field, code, message string) *fault.Error {
		return fault.OnField(fault.Unprocessable, field, code, "%s", message)
	}

	text, class := "", false
	if n.Where != "" {
		text = "where"
	}

	for _, k := range n.allKeys() {
		if k.Expression != "" {
			text = "keys"
		}
		class = class || k.OperatorClass != ""
	}

	switch state {
	case "42P07", "42710": // duplicate_table, duplicate_object
		return indexNameTaken()
	case "23505": // unique_violation
		return on("unique", "not_unique", "can't be true: the table has rows with duplicate values")
	// undefined_object, datatype_mismatch, invalid_schema_name: an operator class
	case "42704", "42804", "3F000":
		if class {
			return on("keys", "not_supported", "have an operator class that does not exist for the method and type")
		}
		return on("method", "not_supported", "does not support columns of this type")
	case "54000", "54011": // program_limit_exceeded, too_many_columns
		return on("columns", "too_many", "are too many, or have values that are too long for an index")
	case "42703": // undefined_column: dropped concurrently
		return on("columns", "not_found", "are not columns of the table")
	}

	switch {
	case text != "" && (state[:2] == "42" || state == "0A000") && state != "42501":
		return badExpression(text, state)
	case text != "" && blamesUser(state) && state != "42501":
		return on(text, "failed", "can't be evaluated for a row of the table") // the report can have the row's values
	case state == "0A000" && n.Unique: // feature_not_supported on a partitioned table
		return on("unique", "not_supported", "requires all columns of the partition key, without expressions")
	case state == "0A000": // feature_not_supported on a partitioned table
		return on("method", "not_supported", "is not supported for this kind of table")
	}

	return nil
}

func indexNameTaken() *fault.Error {
	return fault.OnField(fault.Conflict, "name", "already_exists",
		"is already used by an index or table of the schema")
}
