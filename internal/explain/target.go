package explain

import (
	"strings"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/requestlog"
)

// target is what a request of the rows API names.
type target struct {
	table, function string // schema.name, or a name in the default schema; "": none
	command         string // select, insert, update or delete
}

// commands are the commands of methods on a table.
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

// relationOf returns the table that a failure names, or else that of the request: a policy, trigger
// or view may read another one.
func relationOf(r requestlog.Request, t target) string {
	if r.ErrorCode == nil || *r.ErrorCode != "42501" || r.ErrorMessage == nil {
		return t.table
	}

	name, ok := strings.CutPrefix(*r.ErrorMessage, "permission denied for table ")
	if _, plain, qualified := strings.Cut(t.table, "."); !ok || name == t.table || (qualified && name == plain) {
		return t.table
	}

	return name
}

// sqlOperators are the operators of filters in SQL.
var sqlOperators = map[string]string{"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=",
	"like": "like", "ilike": "ilike", "match": "~", "imatch": "~*", "in": "in", "is": "is", "cs": "@>", "cd": "<@",
	"ov": "&&", "fts": "@@"}

// statementOf returns the shape of the statement of a request, "" for no request for rows.
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
		return "select " + columns + " from " + quoted(t.function) + "(" + strings.Join(arguments, ", ") + ")" + where +
			order + page
	case t.table == "":
		return ""
	case t.command == "select":
		return "select " + columns + " from " + quoted(t.table) + where + order + page
	case t.command == "insert":
		return "insert into " + quoted(t.table) + " (…) values (…)"
	case t.command == "update":
		return "update " + quoted(t.table) + " set …" + where
	case t.command == "delete":
		return "delete from " + quoted(t.table) + where
	}

	return ""
}

// condition returns a filter in SQL. A group of filters stays as it was sent.
func condition(name, value string) string {
	rest, negated := strings.CutPrefix(value, "not.")
	operator, operand, ok := strings.Cut(rest, ".")
	sql, known := sqlOperators[operator]
	if !ok || !known {
		return name + "=" + value
	}
	if operator == "in" {
		operand = "(…)"
	}

	text := name + " " + sql + " " + strings.ReplaceAll(operand, "not_null", "not null")
	if negated {
		text = "not (" + text + ")"
	}

	return text
}

func quoted(name string) string { return pg.Quote(strings.SplitN(name, ".", 2)...) }
