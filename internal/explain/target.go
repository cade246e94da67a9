package explain

import (
	"strings"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/requestlog"
)

// target is the table or function that a rows API request addresses.
type target struct {
	table, function string // schema.name, or a name in the default schema; "": none
	command         string // select, insert, update or delete
}

// commands maps methods on a table to SQL commands.
var commands = map[string]string{"GET": "select", "HEAD": "select", "POST": "insert", "PUT": "insert",
	"PATCH": "update", "DELETE": "delete"}

func targetOf(r requestlog.Request) target {
	name, ok := strings.CutPrefix(r.Route, "/rest/v1/")
	if !ok || name == "" {
		return target{}
	}

	name, function := strings.CutPrefix(name, "rpc/")
	if r.Schema != nil {
		name = *r.Schema + "." + name
	}
	if function {
		return target{function: name}
	}

	return target{table: name, command: commands[r.Method]}
}

// relationOf returns the table that the failure names, or else the request's table. The failing one
// may be another, read by a policy, trigger or view.
func relationOf(r requestlog.Request, t target) string {
	if r.ErrorCode == nil || *r.ErrorCode != "42501" || r.ErrorMessage == nil {
		return t.table
	}

	d, ok := denialOf(r, t)
	if !ok || !d.isRelation() {
		return t.table
	}

	return d.String()
}

// denialOf returns what a request's failure denies. PostgreSQL names an object without its schema;
// the request's own has the schema of the request.
func denialOf(r requestlog.Request, t target) (denial, bool) {
	d, ok := parseDenial(text(r.ErrorMessage))
	for _, own := range []string{t.table, t.function} {
		if schema, plain, _ := strings.Cut(own, "."); ok && plain == d.name && d.kind != "schema" {
			d.schema = schema
		}
	}

	return d, ok
}

// sqlOperators maps filter operators to SQL.
var sqlOperators = map[string]string{"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=",
	"like": "like", "ilike": "ilike", "match": "~", "imatch": "~*", "in": "in", "is": "is", "cs": "@>", "cd": "<@",
	"ov": "&&", "fts": "@@"}

// statementOf returns the shape of the request's statement, or "" if the request is not for rows.
func statementOf(r requestlog.Request, t target) string {
	query := ""
	if r.Query != nil {
		query = *r.Query
	}

	columns, order, page := "*", "", ""
	var conditions, arguments []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok:
		case name == "select":
			columns = value
		case name == "order":
			order = " order by " + strings.ReplaceAll(value, ".", " ")
		case name == "limit", name == "offset":
			page += " " + name + " " + value
		case name == "columns", name == "on_conflict", strings.HasSuffix(name, ".order"):
		case t.function != "" && value == "…":
			arguments = append(arguments, name+" => …")
		default:
			conditions = append(conditions, condition(name, value))
		}
	}

	where := ""
	if len(conditions) > 0 {
		where = " where " + strings.Join(conditions, " and ")
	}

	switch {
	case t.function != "":
		if r.Method != "GET" && r.Method != "HEAD" {
			arguments = []string{"…"}
		}
		return "select " + columns + " from " + quoteName(t.function) + "(" + strings.Join(arguments, ", ") + ")" +
			where + order + page
	case t.table == "":
		return ""
	case t.command == "select":
		return "select " + columns + " from " + quoteName(t.table) + where + order + page
	case t.command == "insert":
		return "insert into " + quoteName(t.table) + " (…) values (…)"
	case t.command == "update":
		return "update " + quoteName(t.table) + " set …" + where
	case t.command == "delete":
		return "delete from " + quoteName(t.table) + where
	}

	return ""
}

// condition returns a filter in SQL. A group of filters stays as sent.
func condition(name, value string) string {
	rest, isNegated := strings.CutPrefix(value, "not.")
	operator, operand, ok := strings.Cut(rest, ".")
	sql, isOperator := sqlOperators[operator]
	if !ok || !isOperator {
		return name + "=" + value
	}
	if operator == "in" {
		operand = "(…)"
	}

	text := name + " " + sql + " " + strings.ReplaceAll(operand, "not_null", "not null")
	if isNegated {
		text = "not (" + text + ")"
	}

	return text
}

func quoteName(name string) string { return pg.Quote(strings.SplitN(name, ".", 2)...) }
