package pgdump

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// hidden reports whether nothing in the project can refer to a schema.
func (r *rules) hidden(schema string) bool {
	return r.skipped[schema] || slices.Contains(PlatformSchemas, schema)
}

// schemas decides about objects in schemas of the platform and of Supabase, and about dependents of
// an omitted object.
func (r *rules) schemas(ts tokens, s subject) (verdict, bool) {
	if s.isStoragePolicy() && slices.Contains([]string{"create", "alter", "comment", "drop"}, s.action) {
		return r.storagePolicy(ts, s), true
	}

	schema := s.schema()
	v := leave(Schemas, "%s", strings.TrimSpace(s.action+" "+s.kind+" "+s.describe()))
	switch {
	case s.action == "create" && s.kind == "trigger" && s.table.String() == endUsers:
		v.notes[0].topic, v.action, v.sql = References, attemptTrigger, ts.text
		return v, true
	case s.action == "copy":
		v.action = skipRows
	case s.action == "create" && (s.kind == "trigger" || s.kind == "policy"): // written by the user
		v.notes[0].topic = References
	}

	switch {
	case r.skipped[schema]:
		return v, true
	case r.left.has(s):
		v.notes[0].topic = Objects
		return v, true
	case s.kind == "schema" && (schema == "public" || schema == "extensions") &&
		(s.action == "create" || s.action == "drop"):
		v.notes[0].text += ": it is the project's"
		return v, true
	case schema == "extensions" && (r.supabase || s.action == "comment" || s.action == "alter"):
		return v, true
	case !slices.Contains(PlatformSchemas, schema):
		return verdict{}, false
	}

	if s.action == "comment" || s.action == "drop" || s.table != nil {
		return v, true
	}
	if s.name.String() == buckets && slices.Contains([]string{"insert", "update", "delete"}, s.action) {
		return verdict{action: attempt, sql: ts.text, notes: v.notes}, true
	}
	if slices.Contains(policyTables, s.name.String()) && s.action != "create" {
		v.notes[0].text += ": the Storage API changes buckets and objects"
		return v, true
	}

	return refused("the schema %s belongs to the platform: leave it out by --exclude-schema %s, "+
		"or rename it before you dump", schema, schema), true
}

// storagePolicy decides about a policy on storage.buckets or storage.objects. Those of Supabase may
// name columns and roles that the project lacks.
func (r *rules) storagePolicy(ts tokens, s subject) verdict {
	v, ok := r.policy(ts, s)
	if !ok {
		v = r.rewritten(ts, s)
	}
	if v.action != run && v.action != tryRun {
		return v
	}

	reason := note{References, s.action + " policy " + s.describe()}
	return verdict{action: attempt, sql: v.sql, notes: append([]note{reason}, v.notes...)}
}

// summary returns the action, the kind and the names of a subject, or the start of its statement if
// it has no name.
func (s subject) summary(sql string) string {
	if len(s.name) == 0 {
		line, _, _ := strings.Cut(sql, "\n")
		return strings.ToValidUTF8(line[:min(len(line), maxSummary)], "")
	}

	return s.action + " " + s.kind + " " + s.describe()
}

const maxSummary = 100 // bytes

// describe returns the names of a subject.
func (s subject) describe() string {
	if s.table != nil {
		return s.name.String() + " on " + s.table.String()
	}
	return s.name.String()
}

// rows decides about COPY, and about rows of tables that belong to an extension.
func (r *rules) rows(ts tokens, s subject) (verdict, bool) {
	switch member := len(s.name) == 2 && r.members[s.name[0]][s.name[1]]; {
	case s.action == "copy" && member:
		return verdict{action: skipRows, notes: []note{{Extensions, "rows of " + s.describe()}}}, true
	case s.action == "insert" && member:
		return leave(Extensions, "rows of %s", s.describe()), true
	case s.action != "copy":
		return verdict{}, false
	}

	if from := ts.find(1, "from"); from > 0 && ts.word(from+1) == "stdin" {
		return verdict{action: copyRows, sql: ts.text}, true
	}

	return refused("only COPY … FROM stdin is supported"), true
}

// table decides about statements that need other rights or another order in a project.
func (r *rules) table(ts tokens, s subject) (verdict, bool) {
	if s.action != "alter" || s.kind != "table" {
		return verdict{}, false
	}

	switch {
	case ts.has(s.after, "force", "row", "level", "security"): // it would stop the rows of the owner
		return verdict{action: runLast, sql: ts.text}, true
	case ts.word(s.after+1) == "trigger" && ts.word(s.after+2) == "all":
		all := ts.all[s.after+2]
		return verdict{action: run, sql: ts.text[:all.Start] + "user" + ts.text[all.End:],
			notes: []note{{Changed, "TRIGGER ALL is TRIGGER USER: foreign keys stay enabled"}}}, true
	}

	return verdict{}, false
}

// endUsers is the table of the platform that a project may have triggers on and refer to.
const endUsers = "auth.users"

// buckets is the table of the platform whose rows the project's SQL may change.
const buckets = "storage.buckets"

// policyTables are the tables of the platform that have policies of the project.
var policyTables = []string{buckets, "storage.objects"}

// isStoragePolicy reports whether the subject is a policy on a table of the platform.
func (s subject) isStoragePolicy() bool {
	return s.kind == "policy" && slices.Contains(policyTables, s.table.String())
}

// policyFunctions are the functions of the platform that a project may call.
var policyFunctions = []string{"auth.uid", "auth.role", "auth.email", "auth.jwt",
	"storage.foldername", "storage.filename", "storage.extension"}

// rewritten returns the verdict on a statement whose names may differ in the project: members of
// extensions are in another schema.
func (r *rules) rewritten(ts tokens, s subject) verdict {
	if s.action == "create" && len(s.name) == 2 { // an overload of the dump's own
		delete(r.members[s.name[0]], s.name[1])
	}

	w := rewriter{r: r, storagePolicy: s.isStoragePolicy()}
	sql := w.rewrite(ts)
	if w.refers == endUsers && !w.others && s.action == "alter" && ts.find(s.after, "foreign") > 0 {
		v := verdict{action: attemptKey, sql: sql}
		if i := ts.find(s.after, "constraint"); i > 0 {
			s.kind, s.name, s.table = "constraint", name{ts.identifier(i + 1)}, s.name
		}
		v.notes = leave(References, "%s %s refers to %s", s.kind, s.describe(), w.refers).notes

		return v
	}

	if w.refers == endUsers && !w.others && slices.Contains(readingKinds, s.kind) {
		return verdict{action: tryRun, sql: sql, subject: s}
	}

	if w.refers != "" && (slices.Contains(referringKinds, s.kind) || ts.find(s.after, "references") > 0) {
		if i := ts.find(s.after, "constraint"); i > 0 {
			s.kind, s.name, s.table = "constraint", name{ts.identifier(i + 1)}, s.name
		}

		return leave(References, "%s %s refers to %s", s.kind, s.describe(), w.refers)
	}

	v := ordinary(verdict{action: run, sql: sql}, s)
	for _, text := range w.changes {
		v.notes = append(v.notes, note{Changed, text})
	}

	return v
}

// referringKinds are the kinds of objects that are left out if they refer to a hidden schema.
var referringKinds = []string{"policy", "view", "materialized view", "trigger", "rule"}

// readingKinds are the kinds of objects that may read auth.users.
var readingKinds = []string{"policy", "view", "materialized view"}

// rewriter rewrites the names in a statement.
type rewriter struct {
	r             *rules
	storagePolicy bool     // the statement may refer to policyTables
	changes       []string // each once
	refers        string   // first name in a hidden schema
	others        bool     // it refers to another one too
}

func (w *rewriter) rewrite(ts tokens) string {
	var b strings.Builder
	copied := 0
	replace := func(from, to int, text string) { // the tokens [from, to]
		b.WriteString(ts.text[copied:ts.all[from].Start])
		b.WriteString(text)
		copied = ts.all[to].End
	}

	for i := range ts.all {
		if ts.kind(i) == sqllex.DollarString {
			w.body(ts, i, replace)
			continue
		}
		if ts.raw(i+1) != "." || ts.raw(i-1) == "." || ts.identifier(i) == "" || ts.all[i].Start < copied {
			continue
		}

		schema, name := ts.identifier(i), ts.identifier(i+2)
		if name == "" {
			name = ts.raw(i + 2) // an operator
		}

		switch {
		case schema != "extensions" && w.r.members[schema][name]:
			replace(i, i, "extensions")
			w.change(schema + "." + name + " is extensions." + name)
		case slices.Contains(policyFunctions, schema+"."+name) && ts.raw(i+3) == "(":
		case w.storagePolicy && slices.Contains(policyTables, schema+"."+name):
		case !w.r.hidden(schema):
		case w.refers == "":
			w.refers = schema + "." + name
		case w.refers != schema+"."+name:
			w.others = true
		}
	}

	b.WriteString(ts.text[copied:])
	return b.String()
}

// body rewrites the body of a function.
func (w *rewriter) body(ts tokens, i int, replace func(from, to int, text string)) {
	raw := ts.raw(i)
	tag := strings.IndexByte(raw[1:], '$') + 2
	if ts.all[i].Open || len(raw) < 2*tag {
		return
	}

	inner := rewriter{r: w.r} // references of a body matter when it runs
	body := raw[tag : len(raw)-tag]
	if text := inner.rewrite(tokenize(body, 0)); text != body {
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
