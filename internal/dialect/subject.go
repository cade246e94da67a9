package dialect

import "slices"

// Subject is a statement's object.
type Subject struct {
	Action string // the statement's first word: create, alter, comment, grant, copy
	Kind   string // object kind: table, event trigger; "" if it is unknown
	Name   Name
	Table  Name // table that has the policy, trigger, rule, index or constraint
	After  int  // token index after the name
}

// Schema returns the schema that the statement changes, or "".
func (s Subject) Schema() string {
	switch {
	case s.Table != nil:
		return s.Table.Schema()
	case s.Kind == "schema" && len(s.Name) == 1:
		return s.Name[0]
	}
	return s.Name.Schema()
}

var (
	// modifiers are words between CREATE and the object kind.
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

// SubjectOf returns a statement's subject.
func SubjectOf(ts Tokens) Subject {
	s := Subject{Action: ts.Word(0)}
	switch s.Action {
	case "create":
		s.object(ts, ts.SkipAny(1, modifiers...))
	case "alter", "drop":
		s.object(ts, 1)
	case "comment", "security":
		if on := ts.Find(1, "on"); on > 0 {
			s.object(ts, on+1)
			if s.Kind == "column" && len(s.Name) > 1 {
				s.Name = s.Name[:len(s.Name)-1]
			}
		}
	case "grant", "revoke":
		if on := ts.Find(1, "on"); on > 0 {
			s.granted(ts, on+1)
		}
	case "copy":
		s.Kind = "table"
		s.Name, s.After = ts.Name(1)
	case "insert", "delete":
		s.Kind = "table"
		s.Name, s.After = ts.Name(ts.Skip(2, "only"))
	case "update", "truncate":
		s.Kind = "table"
		s.Name, s.After = ts.Name(ts.SkipAny(1, "table", "only"))
	case "refresh":
		s.Kind = "materialized view"
		s.Name, s.After = ts.Name(ts.Skip(3, "concurrently"))
	case "select":
		s.called(ts)
	}

	return s
}

// object reads an object's kind and name from i on.
func (s *Subject) object(ts Tokens, i int) {
	s.Kind = ts.Word(i)
	i++

	for _, kind := range longKinds {
		if ts.Has(i-1, kind...) {
			s.Kind = kind[0]
			for _, word := range kind[1:] {
				s.Kind += " " + word
			}
			i += len(kind) - 1
		}
	}

	i = ts.Skip(i, "concurrently")
	i = ts.Skip(ts.Skip(i, "if", "not", "exists"), "if", "exists")
	i = ts.Skip(i, "only")

	if s.Kind == "index" && ts.Word(i) == "on" { // without a name
		s.After = i
	} else {
		s.Name, s.After = ts.Name(i)
	}

	if !slices.Contains(memberKinds, s.Kind) {
		return
	}

	word := "on"
	if s.Kind == "rule" && s.Action == "create" {
		word = "to"
	}
	if on := ts.Find(s.After, word); on > 0 {
		s.Table, s.After = ts.Name(ts.SkipAny(on+1, "only", "domain"))
	}
}

// granted reads the objects in a GRANT or REVOKE from i on.
func (s *Subject) granted(ts Tokens, i int) {
	if ts.Word(i) == "all" { // ALL TABLES IN SCHEMA s
		if in := ts.Find(i, "schema"); in > 0 {
			s.Kind = "schema"
			s.Name, s.After = ts.Name(in + 1)
		}
		return
	}

	kinds := []string{"table", "sequence", "function", "procedure", "routine", "schema", "type", "domain", "database",
		"language", "large", "tablespace", "foreign", "parameter"}
	s.Kind = "table"
	if w := ts.Word(i); slices.Contains(kinds, w) && ts.Raw(i+1) != "." {
		s.object(ts, i)
		return
	}

	s.Name, s.After = ts.Name(i)
}

// maxArgument is the maximum number of tokens to read from a name in an argument.
const maxArgument = 64

// called reads the function that a SELECT calls, and setval's sequence.
func (s *Subject) called(ts Tokens) {
	i := 1
	if ts.Raw(1) == "*" { // SELECT * FROM f()
		i = 3
	}
	s.Kind = "function"
	s.Name, s.After = ts.Name(i)

	if len(s.Name) > 0 && s.Name[len(s.Name)-1] == "setval" {
		if text := ts.Raw(s.After + 1); len(text) > 2 {
			s.Kind = "sequence"
			s.Name, _ = Tokenize(text[1:len(text)-1], maxArgument).Name(0)
		}
	}
}

// Describe returns a subject's names.
func (s Subject) Describe() string {
	if s.Table != nil {
		return s.Name.String() + " on " + s.Table.String()
	}
	return s.Name.String()
}
