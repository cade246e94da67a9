package pgdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/dialect"
)

// verdict is how a statement is treated.
type verdict struct {
	action action
	sql    string // statement to execute
	notes  []note // omissions and changes

	extension, schema string // to install, and its schema in the dump

	subject dialect.Subject // set if the statement may fail
	columns []string        // columns of a staged COPY, or of secrets
}

type action int

const (
	run            action = iota
	leaveOut              // do nothing
	set                   // execute; a failure leaves it out
	copyRows              // COPY with its rows
	skipRows              // leave out a COPY with its rows
	runLast               // execute after all others
	attempt               // execute after those; a failure leaves it out, for the first note's reason
	attemptKey            // the same, for a foreign key to auth.users
	attemptTrigger        // execute after those, for a trigger on auth.users; leave it out if users are missing
	extension             // install an extension
	tryRun                // execute at its place; a failure for rights or names leaves it out
	tryRows               // execute at its place; a failure leaves it out
	stage                 // a COPY, by a temporary table
	nameSecrets           // leave out a COPY of vault.secrets, and name each one
	refuse                // fail
)

// note is the reason why a statement is left out or changed.
type note struct {
	topic Topic
	text  string
}

// Topic groups a report's notes.
type Topic string

// Topics.
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
	Maintenance Topic = "maintenance"
	Skipped     Topic = "skipped"
	Changed     Topic = "changed"
)

var (
	// knownRoles are the roles that privileges and policies in a project may name.
	knownRoles = []string{"anon", "authenticated", "service_role", "public", "current_user", "session_user",
		"current_role"}

	// publication is the one publication that a project has from the start.
	publication = "supabase_realtime"

	// foreignKinds are the object kinds that a project cannot have.
	foreignKinds = []string{"publication", "subscription", "event trigger", "foreign data wrapper", "server",
		"foreign table", "user mapping", "language", "procedural language", "transform", "access method", "tablespace"}

	clusterKinds = []string{"role", "user", "group", "system"}
)

// maxHead bounds the tokens that rules read in statements with data.
const maxHead = 64

// rules decides about a dump's statements, in order.
type rules struct {
	single bool // all is one transaction

	omittedSchemas  map[string]bool            // schemas that are left out
	excludedSchemas map[string]bool            // omitted at the caller's request
	members         map[string]map[string]bool // names of extension members, by their schema in the dump
	omissions       leftOut
	skip            map[string]bool // names to leave out; true once the dump has one
	supabase        bool            // the statement is about a Supabase object
	isModified      bool            // a statement has changed the database since the last \connect
}

func newRules(o Options) *rules {
	r := &rules{single: !o.Separately, omittedSchemas: map[string]bool{}, excludedSchemas: map[string]bool{},
		members:   map[string]map[string]bool{},
		omissions: leftOut{objects: map[string]bool{}, names: map[string]bool{}}, skip: map[string]bool{}}
	for _, schema := range o.ExcludeSchemas {
		r.omittedSchemas[schema], r.excludedSchemas[schema] = true, true
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

	ts := dialect.Tokenize(s.Text, limit)
	sub := dialect.SubjectOf(ts)
	r.skipSupabase(s.header, sub)

	v := r.verdict(ts, sub, limit > 0)
	r.isModified = r.isModified || (v.action != leaveOut && v.action != set)

	switch {
	case (v.action == leaveOut || v.action == skipRows) && !r.hidden(sub.Schema()) && !isQueueSchema(sub.Schema()):
		r.omissions.addStatement(ts, sub)
	case v.action == run && limit == 0 && r.mayFail(ts, sub):
		v.action, v.subject = tryRun, sub
	}

	return v
}

// verdict returns the first rule's verdict that applies. data tells that the statement has rows
// rather than names.
func (r *rules) verdict(ts dialect.Tokens, sub dialect.Subject, data bool) verdict {
	for _, rule := range []func(*rules, dialect.Tokens, dialect.Subject) (verdict, bool){
		(*rules).session, (*rules).maintenance, (*rules).transaction, (*rules).selected, (*rules).cluster,
		(*rules).extension, (*rules).owner, (*rules).privileges, (*rules).platformRows, (*rules).schemas,
		(*rules).rows, (*rules).policy, (*rules).table,
	} {
		if v, ok := rule(r, ts, sub); ok {
			return v
		}
	}

	if data {
		return verdict{action: run, sql: ts.Text}
	}

	return r.rewritten(ts, sub)
}

// skipSupabase leaves out the schemas that Supabase's services own.
func (r *rules) skipSupabase(h header, s dialect.Subject) {
	r.supabase = strings.HasPrefix(h.owner, "supabase_") || h.owner == "pgbouncer"
	if !r.supabase {
		return
	}

	schema := h.schema
	if schema == "-" && h.kind == "SCHEMA" && s.Kind == "schema" {
		schema = s.Schema()
	}
	if schema != "-" && schema != "" && schema != "public" && schema != "extensions" && !isQueueSchema(schema) {
		r.omittedSchemas[schema] = true
	}
}

// command decides about psql commands. None is executed.
func (r *rules) command(s statement) verdict {
	word, rest, _ := strings.Cut(strings.TrimPrefix(s.Text, `\`), " ")
	switch word {
	case "restrict", "unrestrict", "set", "unset", "echo", "qecho", "pset", "timing":
		return leave(Commands, `\%s`, word)
	case "connect", "c":
		if r.isModified {
			return refused("the dump has several databases: import the dump of one")
		}
		return leave(Databases, `\%s %s`, word, rest)
	}

	return refused(`the command \%s of psql is not supported`, word)
}

// session decides about session settings.
func (r *rules) session(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	switch {
	case ts.Has(0, "set", "session", "authorization"), ts.Has(0, "reset", "session", "authorization"),
		ts.Has(0, "set", "role"), ts.Has(0, "reset", "role"):
		return leave(Roles, "everything belongs to the project"), true
	case ts.Has(0, "set"), ts.Has(0, "reset"):
		if text := encoding(ts); text != "" {
			return refused("%s", text), true
		}
		return verdict{action: set, sql: ts.Text}, true
	case s.Action == "select" && len(s.Name) > 0 && s.Name[len(s.Name)-1] == "set_config":
		return verdict{action: set, sql: ts.Text}, true
	}

	return verdict{}, false
}

// encoding returns the reason to refuse a setting that changes how the dump is to be read.
func encoding(ts dialect.Tokens) string {
	name, i := ts.Name(ts.SkipAny(1, "session", "local"))
	value := strings.ToLower(strings.Trim(ts.Raw(i+1), `'"`))
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

// maintenance decides about statements that change no object and no row, and that mostly need a
// superuser or no transaction.
func (r *rules) maintenance(ts dialect.Tokens, _ dialect.Subject) (verdict, bool) {
	switch w := ts.Word(0); {
	case w == "vacuum", w == "reindex", w == "cluster", w == "checkpoint":
		return leave(Maintenance, "%s: a new database needs none", strings.ToUpper(w)), true
	case w == "load":
		return leave(Maintenance, "LOAD: a project loads no libraries"), true
	case w == "reassign", ts.Has(0, "drop", "owned"):
		return leave(Owners, "everything belongs to the project"), true
	}

	return verdict{}, false
}

func (r *rules) transaction(ts dialect.Tokens, _ dialect.Subject) (verdict, bool) {
	if !r.single {
		return verdict{}, false
	}

	switch w := ts.Word(0); w {
	case "begin", "start", "commit", "end":
		return leave(Transaction, "%s: the import is one transaction", strings.ToUpper(w)), true
	case "rollback", "abort":
		return refused("%s would undo the import, which is one transaction: use --single-transaction=false",
			strings.ToUpper(w)), true
	}

	return verdict{}, false
}

// cluster decides about objects that a project cannot have.
func (r *rules) cluster(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	switch {
	case s.Action == "security":
		return leave(Objects, "security label"), true
	case (s.Kind == "large object" && s.Action != "create") || isLargeObjectCall(s):
		return leave(LargeObject, "large objects: store their bytes as files"), true
	case s.Action == "select" && strings.HasPrefix(s.Name.String(), "pg_catalog.pg_restore_"):
		return leave(Statistics, "statistics: the project collects its own"), true
	case !slices.Contains([]string{"create", "alter", "drop", "comment"}, s.Action):
		return verdict{}, false
	case s.Kind == "publication" && s.Name.String() == publication && !ts.Has(s.After, "owner", "to"):
		// Its tables can be left out.
		return verdict{action: attempt, sql: ts.Text, notes: leave(Objects, "%s", summarize(s, ts.Text)).notes}, true
	case slices.Contains(foreignKinds, s.Kind) && s.Name.String() != publication:
		return leave(Objects, "%s %s: a project has none", s.Kind, s.Name), true
	case s.Action == "alter" && ts.Has(1, "default", "privileges"):
		return verdict{}, false
	case s.Kind == "database":
		return leave(Databases, "database %s", s.Name), true
	case slices.Contains(clusterKinds, s.Kind):
		return leave(Roles, "%s %s", s.Kind, s.Name), true
	}

	return verdict{}, false
}

func isLargeObjectCall(s dialect.Subject) bool {
	if s.Action != "select" || len(s.Name) == 0 {
		return false
	}

	f := s.Name[len(s.Name)-1]
	return strings.HasPrefix(f, "lo_") || f == "lowrite"
}

// extension decides about extensions, which the platform installs.
func (r *rules) extension(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	switch {
	case s.Kind != "extension" || len(s.Name) == 0:
		return verdict{}, false
	case s.Action == "create" && s.Name[0] == "plpgsql":
		return verdict{action: leaveOut}, true
	case s.Action == "create" && s.Name[0] == queueSchema:
		return leave(Extensions, "extension pgmq: every project has its functions"), true
	case s.Action == "create":
		v := verdict{action: extension, extension: s.Name[0]}
		if at := ts.Find(s.After, "schema"); at > 0 {
			v.schema = ts.Identifier(at + 1)
		}
		return v, true
	}

	return leave(Extensions, "%s on extension %s", s.Action, s.Name), true
}

// owner leaves out owners.
func (r *rules) owner(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	role := ts.NewOwner(s)
	if role == "" {
		return verdict{}, false
	}

	return leave(Owners, "owner %s", role), true
}

func leave(t Topic, format string, args ...any) verdict {
	return verdict{action: leaveOut, notes: []note{{t, fmt.Sprintf(format, args...)}}}
}

func refused(format string, args ...any) verdict {
	return verdict{action: refuse, notes: []note{{text: fmt.Sprintf(format, args...)}}}
}
