package pgdump

import "slices"

// subject is the object of a statement.
type subject struct {
	action string // first word of the statement: create, alter, comment, grant, copy
	kind   string // kind of the object: table, event trigger; "" if it is unknown
	name   name
	table  name // table that has the policy, trigger, rule, index or constraint
	after  int  // index of the token after the name
}

// schema returns the schema that the statement changes, or "".
func (s subject) schema() string {
	switch {
	case s.table != nil:
		return s.table.schema()
	case s.kind == "schema" && len(s.name) == 1:
		return s.name[0]
	}
	return s.name.schema()
}

var (
	// modifiers are words between CREATE and the kind of the object.
	modifiers = []string{"or", "replace", "global", "local", "temporary", "temp", "unlogged", "recursive", "unique",
		"constraint", "trusted", "procedural", "default"}
	longKinds = [][]string{{"event", "trigger"}, {"foreign", "data", "wrapper"}, {"foreign", "table"},
		{"user", "mapping"}, {"materialized", "view"}, {"access", "method"}, {"operator", "class"},
		{"operator", "family"}, {"large", "object"}, {"text", "search", "configuration"},
		{"text", "search", "dictionary"}, {"text", "search", "parser"}, {"text", "search", "template"},
		{"default", "privileges"}, {"procedural", "language"}}
	// memberKinds are the kinds of objects that belong to a table.
	memberKinds = []string{"policy", "trigger", "rule", "index", "constraint"}
)

// subjectOf returns the subject of a statement.
func subjectOf(ts tokens) subject {
	s := subject{action: ts.word(0)}
	switch s.action {
	case "create":
		s.object(ts, ts.skipAny(1, modifiers...))
	case "alter", "drop":
		s.object(ts, 1)
	case "comment", "security":
		if on := ts.find(1, "on"); on > 0 {
			s.object(ts, on+1)
			if s.kind == "column" && len(s.name) > 1 {
				s.name = s.name[:len(s.name)-1]
			}
		}
	case "grant", "revoke":
		if on := ts.find(1, "on"); on > 0 {
			s.granted(ts, on+1)
		}
	case "copy":
		s.kind = "table"
		s.name, s.after = ts.name(1)
	case "insert", "delete":
		s.kind = "table"
		s.name, s.after = ts.name(ts.skip(2, "only"))
	case "update", "truncate":
		s.kind = "table"
		s.name, s.after = ts.name(ts.skipAny(1, "table", "only"))
	case "refresh":
		s.kind = "materialized view"
		s.name, s.after = ts.name(ts.skip(3, "concurrently"))
	case "select":
		s.called(ts)
	}

	return s
}

// object reads the kind and the name of an object from i on.
func (s *subject) object(ts tokens, i int) {
	s.kind = ts.word(i)
	i++

	for _, kind := range longKinds {
		if ts.has(i-1, kind...) {
			s.kind = kind[0]
			for _, word := range kind[1:] {
				s.kind += " " + word
			}
			i += len(kind) - 1
		}
	}

	i = ts.skip(i, "concurrently")
	i = ts.skip(ts.skip(i, "if", "not", "exists"), "if", "exists")
	i = ts.skip(i, "only")

	if s.kind == "index" && ts.word(i) == "on" { // without a name
		s.after = i
	} else {
		s.name, s.after = ts.name(i)
	}

	if !slices.Contains(memberKinds, s.kind) {
		return
	}

	word := "on"
	if s.kind == "rule" && s.action == "create" {
		word = "to"
	}
	if on := ts.find(s.after, word); on > 0 {
		s.table, s.after = ts.name(ts.skipAny(on+1, "only", "domain"))
	}
}

// granted reads the objects of a GRANT or REVOKE from i on.
func (s *subject) granted(ts tokens, i int) {
	if ts.word(i) == "all" { // ALL TABLES IN SCHEMA s
		if in := ts.find(i, "schema"); in > 0 {
			s.kind = "schema"
			s.name, s.after = ts.name(in + 1)
		}
		return
	}

	kinds := []string{"table", "sequence", "function", "procedure", "routine", "schema", "type", "domain", "database",
		"language", "large", "tablespace", "foreign", "parameter"}
	s.kind = "table"
	if w := ts.word(i); slices.Contains(kinds, w) && ts.raw(i+1) != "." {
		s.object(ts, i)
		return
	}

	s.name, s.after = ts.name(i)
}

// called reads the function that a SELECT calls, and the sequence of setval.
func (s *subject) called(ts tokens) {
	i := 1
	if ts.raw(1) == "*" { // SELECT * FROM f()
		i = 3
	}
	s.kind = "function"
	s.name, s.after = ts.name(i)

	if len(s.name) > 0 && s.name[len(s.name)-1] == "setval" {
		if text := ts.raw(s.after + 1); len(text) > 2 {
			s.kind = "sequence"
			s.name, _ = tokenize(text[1:len(text)-1], maxHead).name(0)
		}
	}
}
