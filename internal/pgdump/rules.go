package pgdump

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is the treatment of a statement of a dump.
type verdict struct {
	action action
	sql    string // statement to execute
	notes  []note // omissions and changes of the import

	extension, schema string // to install, and its schema in the dump

	subject subject // of a statement that may fail
}

type action int

const (
	run            action = iota
	leaveOut              // do nothing
	set                   // execute; a failure leaves it out
	copyRows              // COPY with its rows
	skipRows              // leave out a COPY with its rows
	runLast               // execute after all others
	attempt               // execute after those; a failure leaves it out, for the reason of its first note
	attemptKey            // the same, for a foreign key to auth.users
	attemptTrigger        // execute after those, for a trigger on auth.users; leave it out if users are missing
	extension             // install an extension
	tryRun                // execute at its place; a failure of its rights or names leaves it out
	refuse                // fail
)

// note is the reason why a statement is left out or changed.
type note struct {
	topic Topic
	text  string
}

// Topic groups the notes of a report.
type Topic string

// Topics of notes.
const (
	Owners      Topic = "owners"
	Privileges  Topic = "privileges"
	Roles       Topic = "roles"
	Settings    Topic = "settings"
	Commands    Topic = "commands of psql"
	Databases   Topic = "databases"
	Extensions  Topic = "extensions"
	Objects     Topic = "objects"
	References  Topic = "references"
	Schemas     Topic = "schemas"
	Transaction Topic = "transactions"
	LargeObject Topic = "large objects"
	Statistics  Topic = "statistics"
	Skipped     Topic = "skipped"
	Changed     Topic = "changed"
)

var (
	// knownRoles are the roles that privileges and policies in a project may name.
	knownRoles = []string{"anon", "authenticated", "service_role", "public", "current_user", "session_user",
		"current_role"}

	// PlatformSchemas are the platform's schemas in a project's database. Nothing may refer to
	// them.
	PlatformSchemas = []string{"auth", "forms", "realtime", "socle", "storage"}

	// publication is the one publication that a project has from the start.
	publication = "supabase_realtime"

	// foreignKinds are the kinds of objects that a project cannot have.
	foreignKinds = []string{"publication", "subscription", "event trigger", "foreign data wrapper", "server",
		"foreign table", "user mapping", "language", "procedural language", "transform", "access method", "tablespace"}

	clusterKinds = []string{"role", "user", "group", "system"}
)

// rules decides about the statements of a dump, in their order.
type rules struct {
	single bool // all is one transaction

	skipped  map[string]bool            // schemas that are left out
	members  map[string]map[string]bool // names of extension members, by their schema in the dump
	left     leftOut
	skip     map[string]bool // names to leave out; true once the dump has one
	supabase bool            // the statement is about an object of Supabase
	changed  bool            // a statement has changed the database since the last \connect
}

func newRules(o Options) *rules {
	r := &rules{single: !o.Separately, skipped: map[string]bool{}, members: map[string]map[string]bool{},
		left: leftOut{objects: map[string]bool{}, names: map[string]bool{}}, skip: map[string]bool{}}
	for _, schema := range o.ExcludeSchemas {
		r.skipped[schema] = true
	}
	for _, name := range o.Skip {
		r.skip[name] = false
	}

	return r
}

// decide returns the verdict on a statement.
func (r *rules) decide(s statement) verdict {
	if s.command {
		return r.command(s)
	}

	limit := 0
	switch s.Words[0] {
	case "insert", "select":
		limit = maxHead
	}

	ts := tokenize(s.Text, limit)
	sub := subjectOf(ts)
	r.skipSupabase(s.header, sub)

	v := r.verdict(ts, sub, limit > 0)
	r.changed = r.changed || (v.action != leaveOut && v.action != set)

	switch {
	case (v.action == leaveOut || v.action == skipRows) && !r.hidden(sub.schema()):
		r.left.add(ts, sub)
	case v.action == run && limit == 0 && r.mayFail(ts, sub):
		v.action, v.subject = tryRun, sub
	}

	return v
}

// verdict returns the verdict of the first rule that has one. data tells that the statement has
// rows rather than names.
func (r *rules) verdict(ts tokens, sub subject, data bool) verdict {
	for _, rule := range []func(*rules, tokens, subject) (verdict, bool){
		(*rules).session, (*rules).transaction, (*rules).selected, (*rules).cluster, (*rules).extension, (*rules).owner,
		(*rules).privileges, (*rules).schemas, (*rules).rows, (*rules).policy, (*rules).table,
	} {
		if v, ok := rule(r, ts, sub); ok {
			return v
		}
	}

	if data {
		return verdict{action: run, sql: ts.text}
	}

	return r.rewritten(ts, sub)
}

// skipSupabase leaves out the schemas of Supabase's own services, by the owners of their objects.
func (r *rules) skipSupabase(h header, s subject) {
	r.supabase = strings.HasPrefix(h.owner, "supabase_") || h.owner == "pgbouncer"
	if !r.supabase {
		return
	}

	schema := h.schema
	if schema == "-" && h.kind == "SCHEMA" && s.kind == "schema" {
		schema = s.schema()
	}
	if schema != "-" && schema != "" && schema != "public" && schema != "extensions" {
		r.skipped[schema] = true
	}
}

// command decides about commands of psql. None is executed.
func (r *rules) command(s statement) verdict {
	word, rest, _ := strings.Cut(strings.TrimPrefix(s.Text, `\`), " ")
	switch word {
	case "restrict", "unrestrict", "set", "unset", "echo", "qecho", "pset", "timing":
		return leave(Commands, `\%s`, word)
	case "connect", "c":
		if r.changed {
			return refused("the dump has several databases: import the dump of one")
		}
		return leave(Databases, `\%s %s`, word, rest)
	}

	return refused(`the command \%s of psql is not supported`, word)
}

// session decides about settings of the session.
func (r *rules) session(ts tokens, s subject) (verdict, bool) {
	switch {
	case ts.has(0, "set", "session", "authorization"), ts.has(0, "reset", "session", "authorization"),
		ts.has(0, "set", "role"), ts.has(0, "reset", "role"):
		return leave(Roles, "everything belongs to the project"), true
	case ts.has(0, "set"), ts.has(0, "reset"):
		if text := encoding(ts); text != "" {
			return refused("%s", text), true
		}
		return verdict{action: set, sql: ts.text}, true
	case s.action == "select" && len(s.name) > 0 && s.name[len(s.name)-1] == "set_config":
		return verdict{action: set, sql: ts.text}, true
	}

	return verdict{}, false
}

// encoding returns the reason to refuse a setting that changes how the dump is to be read.
func encoding(ts tokens) string {
	name, i := ts.name(ts.skipAny(1, "session", "local"))
	value := strings.ToLower(strings.Trim(ts.raw(i+1), `'"`))
	switch name.String() {
	case "standard_conforming_strings":
		if value != "on" && value != "default" {
			return "dumps with standard_conforming_strings = off are not supported: dump with a newer pg_dump"
		}
	case "client_encoding": // encodings whose characters can contain a backslash or quote
		switch value {
		case "sjis", "shift_jis_2004", "big5", "gbk", "uhc", "gb18030", "johab":
			return "the encoding " + value + " is not supported: dump with --encoding UTF8"
		}
	}

	return ""
}

func (r *rules) transaction(ts tokens, _ subject) (verdict, bool) {
	if !r.single {
		return verdict{}, false
	}

	switch w := ts.word(0); w {
	case "begin", "start", "commit", "end":
		return leave(Transaction, "%s: the import is one transaction", strings.ToUpper(w)), true
	case "rollback", "abort":
		return refused("%s would undo the import, which is one transaction: use --single-transaction=false",
			strings.ToUpper(w)), true
	}

	return verdict{}, false
}

// cluster decides about objects that a project cannot have.
func (r *rules) cluster(ts tokens, s subject) (verdict, bool) {
	switch {
	case s.action == "security":
		return leave(Objects, "security label"), true
	case (s.kind == "large object" && s.action != "create") || isLargeObjectCall(s):
		return leave(LargeObject, "large objects: store their bytes as files"), true
	case s.action == "select" && strings.HasPrefix(s.name.String(), "pg_catalog.pg_restore_"):
		return leave(Statistics, "statistics: the project collects its own"), true
	case !slices.Contains([]string{"create", "alter", "drop", "comment"}, s.action):
		return verdict{}, false
	case s.kind == "publication" && s.name.String() == publication && !ts.has(s.after, "owner", "to"):
		// Its tables can be left out.
		return verdict{action: attempt, sql: ts.text, notes: leave(Objects, "%s", s.summary(ts.text)).notes}, true
	case slices.Contains(foreignKinds, s.kind) && s.name.String() != publication:
		return leave(Objects, "%s %s: a project has none", s.kind, s.name), true
	case s.action == "alter" && ts.has(1, "default", "privileges"):
		return verdict{}, false
	case s.kind == "database":
		return leave(Databases, "database %s", s.name), true
	case slices.Contains(clusterKinds, s.kind):
		return leave(Roles, "%s %s", s.kind, s.name), true
	}

	return verdict{}, false
}

func isLargeObjectCall(s subject) bool {
	if s.action != "select" || len(s.name) == 0 {
		return false
	}

	f := s.name[len(s.name)-1]
	return strings.HasPrefix(f, "lo_") || f == "lowrite"
}

// extension decides about extensions, which the platform installs.
func (r *rules) extension(ts tokens, s subject) (verdict, bool) {
	switch {
	case s.kind != "extension" || len(s.name) == 0:
		return verdict{}, false
	case s.action == "create" && s.name[0] == "plpgsql":
		return verdict{action: leaveOut}, true
	case s.action == "create":
		v := verdict{action: extension, extension: s.name[0]}
		if at := ts.find(s.after, "schema"); at > 0 {
			v.schema = ts.identifier(at + 1)
		}
		return v, true
	}

	return leave(Extensions, "%s on extension %s", s.action, s.name), true
}

// owner leaves out owners.
func (r *rules) owner(ts tokens, s subject) (verdict, bool) {
	if s.action != "alter" {
		return verdict{}, false
	}

	to := ts.find(s.after, "owner")
	if to < 0 || ts.word(to+1) != "to" || to+3 != len(ts.all) || ts.find(s.after, "rename") >= 0 {
		return verdict{}, false
	}

	return leave(Owners, "owner %s", ts.identifier(to+2)), true
}

func leave(t Topic, format string, args ...any) verdict {
	return verdict{action: leaveOut, notes: []note{{t, fmt.Sprintf(format, args...)}}}
}

func refused(format string, args ...any) verdict {
	return verdict{action: refuse, notes: []note{{text: fmt.Sprintf(format, args...)}}}
}
