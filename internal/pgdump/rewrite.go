package pgdump

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/sqllex"
)

// hidden reports whether nothing in the project can refer to a schema.
func (r *rules) hidden(schema string) bool {
	return r.omittedSchemas[schema] || slices.Contains(namespace.Platform, schema)
}

// schemas decides about objects in the platform's and Supabase's schemas, and about an omitted
// object's dependents.
func (r *rules) schemas(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	if isStoragePolicy(s) && slices.Contains([]string{"create", "alter", "comment", "drop"}, s.Action) {
		return r.storagePolicy(ts, s), true
	}

	schema := s.Schema()
	v := leave(Schemas, "%s", strings.TrimSpace(s.Action+" "+s.Kind+" "+s.Describe()))
	switch {
	case s.Action == "create" && s.Kind == "trigger" && s.Table.String() == endUsers:
		v.notes[0].topic, v.action, v.sql = References, attemptTrigger, ts.Text
		return v, true
	case s.Action == "copy":
		v.action = skipRows
	case s.Action == "create" && (s.Kind == "trigger" || s.Kind == "policy"): // written by the user
		v.notes[0].topic = References
	}

	switch {
	case r.omittedSchemas[schema] && s.Action == "copy" && s.Name.String() == secrets && !r.excludedSchemas[schema]:
		v.action, v.columns = nameSecrets, copyColumns(ts, s.After)
		return v, true
	case r.omittedSchemas[schema]:
		return v, true
	case isQueueSchema(schema) && !isQueue(s):
		v.notes[0].text += ": every project has the functions of pgmq"
		return v, true
	case r.omissions.has(s):
		v.notes[0].topic = Objects
		return v, true
	case s.Kind == "schema" && (schema == "public" || schema == "extensions") &&
		(s.Action == "create" || s.Action == "drop"):
		v.notes[0].text += ": it is the project's"
		return v, true
	case schema == "extensions" && (r.supabase || s.Action == "comment" || s.Action == "alter"):
		return v, true
	case !slices.Contains(namespace.Platform, schema):
		return verdict{}, false
	}

	if s.Action == "comment" || s.Action == "drop" || s.Table != nil {
		return v, true
	}
	if slices.Contains(policyTables, s.Name.String()) && s.Action != "create" {
		v.notes[0].text += ": only its policies are the project's"
		return v, true
	}

	return refused("the schema %s belongs to the platform: leave it out by --exclude-schema %s, "+
		"or rename it before you dump", schema, schema), true
}

// queueSchema is the platform's schema in which the project's owner has the tables of queues.
const queueSchema = "pgmq"

// isQueueSchema reports whether a schema has pgmq's functions, in every project.
func isQueueSchema(schema string) bool {
	return schema == queueSchema || schema == queueSchema+"_public"
}

// isQueue reports whether a statement in [queueSchema] is about the tables of a queue, or about the
// list of queues' rows.
func isQueue(s dialect.Subject) bool {
	name := s.Name
	if s.Table != nil {
		name = s.Table
	}
	if len(name) < 2 || name[0] != queueSchema {
		return false
	}

	object := name[1]
	return strings.HasPrefix(object, "q_") || strings.HasPrefix(object, "a_") ||
		(object == "meta" && s.Action == "copy")
}

// storagePolicy decides about a policy on storage.buckets or storage.objects. Supabase's policies
// may name columns and roles that the project lacks.
func (r *rules) storagePolicy(ts dialect.Tokens, s dialect.Subject) verdict {
	v, ok := r.policy(ts, s)
	if !ok {
		v = r.rewritten(ts, s)
	}
	if v.action != run && v.action != tryRun {
		return v
	}

	reason := note{References, s.Action + " policy " + s.Describe()}
	return verdict{action: attempt, sql: v.sql, notes: append([]note{reason}, v.notes...)}
}

// summarize returns a subject's action, kind and names, or its statement's start if it has no name.
func summarize(s dialect.Subject, sql string) string {
	if len(s.Name) == 0 {
		line, _, _ := strings.Cut(sql, "\n")
		return strings.ToValidUTF8(line[:min(len(line), maxSummary)], "")
	}

	return s.Action + " " + s.Kind + " " + s.Describe()
}

const maxSummary = 100 // bytes

// rows decides about COPY, and about rows in tables that belong to an extension.
func (r *rules) rows(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	switch member := len(s.Name) == 2 && r.members[s.Name[0]][s.Name[1]]; {
	case s.Action == "copy" && member:
		return verdict{action: skipRows, notes: []note{{Extensions, "rows of " + s.Describe()}}}, true
	case s.Action == "insert" && member:
		return leave(Extensions, "rows of %s", s.Describe()), true
	case s.Action != "copy":
		return verdict{}, false
	}

	if from := ts.Find(1, "from"); from > 0 && ts.Word(from+1) == "stdin" {
		return verdict{action: copyRows, sql: ts.Text}, true
	}

	return refused("only COPY … FROM stdin is supported"), true
}

// table decides about statements that need other rights or another order in a project.
func (r *rules) table(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	if s.Action != "alter" || s.Kind != "table" {
		return verdict{}, false
	}

	switch {
	case ts.Has(s.After, "force", "row", "level", "security"): // it would stop the owner's rows
		return verdict{action: runLast, sql: ts.Text}, true
	case ts.Word(s.After+1) == "trigger" && ts.Word(s.After+2) == "all":
		all := ts.All[s.After+2]
		return verdict{action: run, sql: ts.Text[:all.Start] + "user" + ts.Text[all.End:],
			notes: []note{{Changed, "TRIGGER ALL is TRIGGER USER: foreign keys stay enabled"}}}, true
	}

	return verdict{}, false
}

// endUsers is the platform table that a project may have triggers on and refer to.
const endUsers = "auth.users"

// buckets is the platform table whose rows the project's SQL may change.
const buckets = "storage.buckets"

// policyTables are the platform tables on which a project has policies.
var policyTables = []string{buckets, "storage.objects", "realtime.messages"}

// isStoragePolicy reports whether a subject is a policy on a policyTables table.
func isStoragePolicy(s dialect.Subject) bool {
	return s.Kind == "policy" && slices.Contains(policyTables, s.Table.String())
}

// policyFunctions are the platform functions that a project may call.
var policyFunctions = []string{"auth.uid", "auth.role", "auth.email", "auth.jwt",
	"storage.foldername", "storage.filename", "storage.extension", "realtime.topic", "supabase_functions.http_request"}

// rewritten returns the verdict on a statement whose names may differ in the project: extension
// members are in another schema.
func (r *rules) rewritten(ts dialect.Tokens, s dialect.Subject) verdict {
	if s.Action == "create" && len(s.Name) == 2 { // the dump's overload
		delete(r.members[s.Name[0]], s.Name[1])
	}

	w := rewriter{r: r, storagePolicy: isStoragePolicy(s)}
	sql := w.rewrite(ts)
	if w.refers == endUsers && !w.others && s.Action == "alter" && ts.Find(s.After, "foreign") > 0 {
		v := verdict{action: attemptKey, sql: sql}
		if i := ts.Find(s.After, "constraint"); i > 0 {
			s.Kind, s.Name, s.Table = "constraint", dialect.Name{ts.Identifier(i + 1)}, s.Name
		}
		v.notes = leave(References, "%s %s refers to %s", s.Kind, s.Describe(), w.refers).notes

		return v
	}

	if w.refers == endUsers && !w.others && slices.Contains(readingKinds, s.Kind) {
		return verdict{action: tryRun, sql: sql, subject: s}
	}

	if w.refers != "" && (slices.Contains(referringKinds, s.Kind) || ts.Find(s.After, "references") > 0) {
		if i := ts.Find(s.After, "constraint"); i > 0 {
			s.Kind, s.Name, s.Table = "constraint", dialect.Name{ts.Identifier(i + 1)}, s.Name
		}

		return leave(References, "%s %s refers to %s", s.Kind, s.Describe(), w.refers)
	}

	v := ordinary(verdict{action: run, sql: sql}, s)
	for _, text := range w.changes {
		v.notes = append(v.notes, note{Changed, text})
	}

	return v
}

// referringKinds are the object kinds that are left out if they refer to a hidden schema.
var referringKinds = []string{"policy", "view", "materialized view", "trigger", "rule"}

// readingKinds are the object kinds that may read auth.users.
var readingKinds = []string{"policy", "view", "materialized view"}

// rewriter rewrites the names in a statement.
type rewriter struct {
	r             *rules
	storagePolicy bool     // the statement may refer to policyTables
	changes       []string // each once
	refers        string   // first name in a hidden schema
	others        bool     // it refers to another one too
}

func (w *rewriter) rewrite(ts dialect.Tokens) string {
	var b strings.Builder
	end := 0
	replace := func(from, to int, text string) { // the tokens [from, to]
		b.WriteString(ts.Text[end:ts.All[from].Start])
		b.WriteString(text)
		end = ts.All[to].End
	}

	for i := range ts.All {
		if ts.Kind(i) == sqllex.DollarString {
			w.body(ts, i, replace)
			continue
		}
		if ts.Raw(i+1) != "." || ts.Raw(i-1) == "." || ts.Identifier(i) == "" || ts.All[i].Start < end {
			continue
		}

		schema, name := ts.Identifier(i), ts.Identifier(i+2)
		if name == "" {
			name = ts.Raw(i + 2) // an operator
		}

		switch {
		case schema != "extensions" && w.r.members[schema][name]:
			replace(i, i, "extensions")
			w.change(schema + "." + name + " is extensions." + name)
		case slices.Contains(policyFunctions, schema+"."+name) && ts.Raw(i+3) == "(":
		case w.storagePolicy && slices.Contains(policyTables, schema+"."+name):
		case !w.r.hidden(schema):
		case w.refers == "":
			w.refers = schema + "." + name
		case w.refers != schema+"."+name:
			w.others = true
		}
	}

	b.WriteString(ts.Text[end:])
	return b.String()
}

// body rewrites a function body.
func (w *rewriter) body(ts dialect.Tokens, i int, replace func(from, to int, text string)) {
	raw := ts.Raw(i)
	tag := strings.IndexByte(raw[1:], '$') + 2
	if ts.All[i].Open || len(raw) < 2*tag {
		return
	}

	inner := rewriter{r: w.r} // a body's references matter when it runs
	body := raw[tag : len(raw)-tag]
	if text := inner.rewrite(dialect.Tokenize(body, 0)); text != body {
		replace(i, i, raw[:tag]+text+raw[len(raw)-tag:])
		for _, c := range inner.changes {
			w.change(c)
		}
	}
}

func (w *rewriter) change(text string) {
	if !slices.Contains(w.changes, text) {
		w.changes = append(w.changes, text)
	}
}
