package schema

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"socle/internal/fault"
	"socle/internal/pg"
)

// defaultSpec is a column's default as a client wrote it, parsed. The zero value is no default.
type defaultSpec struct {
	call    string // SQL text of one of the calls, or ""
	returns uint32 // the call's type
	literal bool   // a value that stood in quotes
	value   string // without them
	cast    string // the type that followed the quotes, or ""
	bare    bool   // a value without quotes
}

// calls are the calls that a default may be: each has no effect but its value.
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

	// likeSQL is what looks like a comment, a clause or a call rather than a value. Safety does not rest on it,
	// since a bare text is never more than a value: it spares those who meant SQL a text that says so.
	likeSQL = regexp.MustCompile(`(?i)--|/\*|\*/|^(current|session|system)_(user|role|catalog|schema)$|` +
		`\s(references|check|constraint|unique|generated|collate|default|primary\s+key|not\s+null|(add|drop|alter)\s+\w+)(\s|$)`)

	// moving is what the server reads as the moment of the change, and would keep for ever.
	moving = regexp.MustCompile(`(?i)(^|[^a-z])(now|today|tomorrow|yesterday)([^a-z]|$)`)
)

// parseDefault parses a default: a call, a literal in SQL's quotes with an optional cast, or a bare value.
// Blank text and null are no default. Its errors are written for the client.
func parseDefault(text string) (defaultSpec, error) {
	text = strings.TrimSpace(text)
	if !storable(text) {
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
		return defaultSpec{}, errors.New("is not one literal in quotes: write a quote inside it twice")
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

// checkDefault returns the SQL text of a column's default, or "" for none, after it has made sure that the
// server takes it for the type. It fails with Unprocessable on the field.
func (t *types) checkDefault(ctx context.Context, field, text string, of dataType) (string, error) {
	d, err := parseDefault(text)
	if err != nil {
		return "", badDefault(field, err.Error())
	}

	switch {
	case d.call != "":
		return d.call, t.checkCall(ctx, field, d, of)
	case d.literal:
		err = t.checkCast(ctx, field, d.cast, of)
	case d.bare && of.Textual && (!bareText.MatchString(d.value) || likeSQL.MatchString(d.value)):
		err = badDefault(field, "could be meant as an expression: to have it as text, write it in single quotes")
	case !d.bare: // none
		return "", nil
	}

	if err != nil {
		return "", err
	}

	if of.Moment && moving.MatchString(d.value) {
		return "", badDefault(field, "would be the moment of this change for ever: write now() or current_date")
	}

	return pg.Literal(d.value), t.checkValue(ctx, field, d.value, of)
}

func badDefault(field, message string) *fault.Error {
	return fault.OnField(fault.Unprocessable, field, "invalid_default", "%s", message)
}

// checkCall makes sure that the server assigns what the call returns to the type.
func (t *types) checkCall(ctx context.Context, field string, call defaultSpec, of dataType) error {
	if of.Textual || of.Base == call.returns {
		return nil
	}

	assignable, err := pg.Value[bool](ctx, t.tx, `
		select exists (select from pg_catalog.pg_cast where castsource = @from and casttarget = @to and castcontext in ('i', 'a'))`,
		pgx.StrictNamedArgs{"from": call.returns, "to": of.Base})
	if err == nil && !assignable {
		return badDefault(field, "returns something else than the column's type")
	}

	return err
}

// checkCast makes sure that a cast behind a literal says nothing new.
func (t *types) checkCast(ctx context.Context, field, cast string, of dataType) error {
	if cast == "" {
		return nil
	}

	to, err := t.plain(ctx, field, cast)
	if fault.Is(err, fault.Unprocessable) {
		return badDefault(field, "has something behind the literal that is not the column's type").Because(err)
	}
	if err != nil {
		return err
	}

	if to.OID != of.OID || to.modified && to.SQL != of.SQL {
		return badDefault(field, "is cast to something else than the column's type")
	}

	return nil
}

// checkValue makes sure that the value can be assigned to the type. A cast would not do: it cuts what is too
// long in silence, as no assignment does, and only plpgsql assigns without a table. (It assigns no text to a
// composite, which in turn has nothing to cut.)
func (t *types) checkValue(ctx context.Context, field, value string, of dataType) error {
	literal := pg.Literal(value)
	if of.Composite {
		literal += "::" + of.SQL
	}

	err := execute(ctx, t.tx, "do "+pg.Literal("declare v "+of.SQL+" := "+literal+"; begin end"))
	if state := pg.State(err); state != "" && ofUser(state) {
		return badDefault(field,
			"is neither a value of the column's type nor a call that defaults may be, such as now()").Because(err)
	}

	return err
}

// printedLiteral is a literal with its type as the server prints it.
var printedLiteral = regexp.MustCompile(`^(?s)'((?:[^']|'')*)'::(.*)$`)

// shownDefault returns what a client would send to get the default that the server prints as expression. own
// are the spellings of the column's own type, whose literals lose their quotes and their cast; what would be
// refused or mean something else without its quotes keeps them. No default, and null, are "".
func shownDefault(expression string, own []string, textual bool) string {
	if strings.HasPrefix(expression, "NULL::") {
		return ""
	}

	m := printedLiteral.FindStringSubmatch(expression)
	if m == nil || !slices.Contains(own, m[2]) && !(textual && m[2] == "text") {
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
