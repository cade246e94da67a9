package schema

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// defaultSpec is a parsed column default. The zero value means no default.
type defaultSpec struct {
	call    string // SQL call, or ""
	returns uint32 // the call's return type
	literal bool   // the value was quoted
	value   string // without quotes
	cast    string // cast type after the quotes, or ""
	bare    bool   // the value was not quoted
}

// calls are the permitted calls in defaults. None has side effects.
var calls = map[string]defaultSpec{
	"now()":                   {call: "pg_catalog.now()", returns: pgtype.TimestamptzOID},
	"transaction_timestamp()": {call: "pg_catalog.transaction_timestamp()", returns: pgtype.TimestamptzOID},
	"statement_timestamp()":   {call: "pg_catalog.statement_timestamp()", returns: pgtype.TimestamptzOID},
	"clock_timestamp()":       {call: "pg_catalog.clock_timestamp()", returns: pgtype.TimestamptzOID},
	"current_timestamp":       {call: "current_timestamp", returns: pgtype.TimestamptzOID},
	"localtimestamp":          {call: "localtimestamp", returns: pgtype.TimestampOID},
	"current_date":            {call: "current_date", returns: pgtype.DateOID},
	"current_time":            {call: "current_time", returns: pgtype.TimetzOID},
	"localtime":               {call: "localtime", returns: pgtype.TimeOID},
	"gen_random_uuid()":       {call: "pg_catalog.gen_random_uuid()", returns: pgtype.UUIDOID},
}

var (
	callText    = regexp.MustCompile(`^([A-Za-z_]+)\s*(?:(\()\s*\))?$`)
	literalText = regexp.MustCompile(`^(?s)'((?:[^']|'')*)'\s*(?:::(.+))?$`)
	bareText    = regexp.MustCompile(`^[\p{L}\p{M}\p{N} _.:/@+#%&!?=~*^-]+$`)

	// likeSQL matches text that looks like a comment, a clause or a call instead of a value. Safety
	// does not depend on it, since bare text is always a value. It warns clients that meant SQL.
	likeSQL = regexp.MustCompile(`(?i)--|/\*|\*/|^(current|session|system)_(user|role|catalog|schema)$|` +
		`\s(references|check|constraint|unique|generated|collate|default|primary\s+key|not\s+null|(add|drop|alter)\s+\w+)(\s|$)`)

	// relativeTime matches words that PostgreSQL would evaluate only once, during the change.
	relativeTime = regexp.MustCompile(`(?i)(^|[^a-z])(now|today|tomorrow|yesterday)([^a-z]|$)`)
)

// parseDefault parses a default: a call, a quoted literal with an optional cast, or a bare value.
// Blank text and null mean no default. Its errors are texts for the client.
func parseDefault(text string) (defaultSpec, error) {
	text = strings.TrimSpace(text)
	if !pg.Storable(text) {
		return defaultSpec{}, errors.New("must be text without a NUL")
	}
	if text == "" || strings.EqualFold(text, "null") {
		return defaultSpec{}, nil
	}
	if call, ok := parseCall(text); ok {
		return call, nil
	}
	if text[0] != '\'' {
		return defaultSpec{value: text, bare: true}, nil
	}

	m := literalText.FindStringSubmatch(text)
	if m == nil {
		return defaultSpec{}, errors.New("is not a single quoted literal: double the quotes inside it")
	}

	return defaultSpec{literal: true, value: strings.ReplaceAll(m[1], "''", "'"), cast: strings.TrimSpace(m[2])}, nil
}

func parseCall(text string) (defaultSpec, bool) {
	m := callText.FindStringSubmatch(text)
	if m == nil {
		return defaultSpec{}, false
	}

	word := strings.ToLower(m[1])
	if m[2] != "" {
		word += "()"
	}

	call, ok := calls[word]
	return call, ok
}

// checkDefault returns a column default as SQL, or "" for none. It checks with PostgreSQL that the
// default fits the type, and fails with Unprocessable on the field.
func (t *types) checkDefault(ctx context.Context, field, text string, target dataType) (string, error) {
	d, err := parseDefault(text)
	if d.call == "" && looksPrinted.MatchString(text) {
		if ok, err := t.isDefault(ctx, text, target); ok || err != nil {
			return strings.TrimSpace(text), err
		}
	}
	if err != nil {
		return "", badDefault(field, err.Error())
	}

	switch {
	case d.call != "":
		return d.call, t.checkCall(ctx, field, d, target)
	case d.literal:
		err = t.checkCast(ctx, field, d.cast, target)
	case d.bare && target.Textual && (!bareText.MatchString(d.value) || likeSQL.MatchString(d.value)):
		err = badDefault(field, "looks like an expression: write text in single quotes")
	case !d.bare: // no default
		return "", nil
	}

	if err != nil {
		return "", err
	}

	if target.Moment && relativeTime.MatchString(d.value) {
		return "", badDefault(field, "would be evaluated only once, now: write now() or current_date")
	}

	return pg.Literal(d.value), t.checkValue(ctx, field, d.value, target)
}

// looksPrinted matches text that PostgreSQL may have printed for an expression.
var looksPrinted = regexp.MustCompile(`[(\[]|::|^[A-Z_]+$`)

// isDefault reports whether PostgreSQL prints the text for the default of a column with the type.
// Clients send such a text back from a column list.
func (t *types) isDefault(ctx context.Context, text string, target dataType) (bool, error) {
	if !pg.Storable(text) {
		return false, nil
	}

	return pg.Value[bool](ctx, t.tx, `
		select exists (
			select from pg_catalog.pg_attrdef d
			join pg_catalog.pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
			join pg_catalog.pg_class c on c.oid = a.attrelid
			join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where a.atttypid = @type and a.attgenerated = '' and `+userSchema+`
				and pg_catalog.pg_get_expr(d.adbin, case when a.attgenerated <> '' then d.adrelid else 0 end) = @text)`,
		pgx.StrictNamedArgs{"type": target.OID, "text": strings.TrimSpace(text)})
}

func badDefault(field, message string) *fault.Error {
	return fault.OnField(fault.Unprocessable, field, "invalid_default", "%s", message)
}

// checkCall checks that the call's return type has an assignment cast to the column type.
func (t *types) checkCall(ctx context.Context, field string, call defaultSpec, target dataType) error {
	if target.Textual || target.Base == call.returns {
		return nil
	}

	assignable, err := pg.Value[bool](ctx, t.tx, `
		select exists (select from pg_catalog.pg_cast where castsource = @from and casttarget = @to and castcontext in ('i', 'a'))`,
		pgx.StrictNamedArgs{"from": call.returns, "to": target.Base})
	if err == nil && !assignable {
		return badDefault(field, "returns another type than the column's")
	}

	return err
}

// checkCast checks that a cast after a literal is to the column's type.
func (t *types) checkCast(ctx context.Context, field, cast string, target dataType) error {
	if cast == "" {
		return nil
	}

	to, err := t.getNonSerial(ctx, field, cast)
	if fault.Is(err, fault.Unprocessable) {
		return badDefault(field, "has a cast to an invalid type after the literal").WithCause(err)
	}
	if err != nil {
		return err
	}

	if to.OID != target.OID || to.hasModifier && to.SQL != target.SQL {
		return badDefault(field, "is cast to another type than the column's")
	}

	return nil
}

// checkValue checks that the value can be assigned to the type. A cast would truncate long values
// silently; an assignment does not, and only plpgsql assigns without a table. plpgsql assigns no
// text to a composite type, which needs a cast and truncates nothing.
func (t *types) checkValue(ctx context.Context, field, value string, target dataType) error {
	literal := pg.Literal(value)
	if target.Composite {
		literal += "::" + target.SQL
	}

	err := execute(ctx, t.tx, "do "+pg.Literal("declare v "+target.SQL+" := "+literal+"; begin end"))
	if state := pg.State(err); state != "" && blamesUser(state) {
		return badDefault(field,
			"is neither a value of the column's type nor a supported call such as now()").WithCause(err)
	}

	return err
}

// printedLiteral matches a literal with its type as PostgreSQL prints it.
var printedLiteral = regexp.MustCompile(`^(?s)'((?:[^']|'')*)'::(.*)$`)

// displayDefault returns the client's form of a default that PostgreSQL prints as expression.
// typeNames are the column type's spellings: their literals lose quotes and cast, unless the value
// would be rejected or change its meaning without quotes. No default, and null, are "".
func displayDefault(expression string, typeNames []string, textual bool) string {
	if isNull(expression) {
		return ""
	}

	m := printedLiteral.FindStringSubmatch(expression)
	if m == nil || !slices.Contains(typeNames, m[2]) && !(textual && m[2] == "text") {
		return expression
	}

	value := strings.ReplaceAll(m[1], "''", "'")
	d, err := parseDefault(value)
	if err == nil && d.bare && d.value == value &&
		(!textual || bareText.MatchString(value) && !likeSQL.MatchString(value)) {
		return value
	}

	return "'" + m[1] + "'"
}

var printedNumber = regexp.MustCompile(`^(-?[0-9.]+|\(-[0-9.]+\)|true|false)$`)

func isNull(expression string) bool { return strings.HasPrefix(expression, "NULL::") }

// isConstant reports whether a printed expression is a literal, with or without its type.
func isConstant(expression string) bool {
	if printedNumber.MatchString(expression) {
		return true
	}

	m := printedLiteral.FindStringSubmatch(expression)
	if m == nil {
		return false
	}

	_, err := parseType(m[2])
	return err == nil
}
