// Package dialect adapts SQL that was written for another platform, above all Supabase. It decides
// which statements a project runs unchanged, which it changes, and which it leaves out with a note.
// It knows only the statement's text, and runs nothing.
//
// An unknown statement runs unchanged, and PostgreSQL decides with the rights of the project's
// owner. So a verdict can never give a right; it can only do less than the text says.
//
// All statement runners share [Decide]. The dump import has rules of its own, see package pgdump,
// over the same tokens, subjects and role lists.
package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// Verdict is a project's decision on a statement.
type Verdict struct {
	Action    Action
	SQL       string   // to run
	Notes     []string // omissions and changes, with reasons
	Extension Extension
	// Extensions are to be created by the platform before a DO block that creates them. The block
	// runs on without those that a project can't have.
	Extensions []Extension
}

// Action is a statement's treatment.
type Action int

// Verdict actions.
const (
	Run             Action = iota
	LeaveOut               // run nothing
	CreateExtension        // by the platform
	DropExtension          // by the platform
	MoveExtension          // to another schema, by the platform
)

// Extension is the extension that a statement creates, drops or moves.
type Extension struct {
	Name   string
	Schema string // requested schema, or ""
	// Tolerant is set if the statement does nothing when the extension exists, or does not.
	Tolerant bool
}

// rule returns a verdict, or false without one.
type rule func(ts Tokens, s Subject) (Verdict, bool)

// rules are the rules by a statement's first word.
var rules = map[string][]rule{
	"create":  {extension, policy, storageTrigger, role, queues, schemaOwner, eventTrigger, references},
	"alter":   {extensionChange, references, eventTrigger, owner, defaultPrivileges, role, roleSettings, policy},
	"drop":    {extension, role, eventTrigger},
	"grant":   {grants},
	"revoke":  {grants},
	"comment": {extensionComment, role, eventTrigger, queues},
	"set":     {replicationRole, sessionRole},
	"reset":   {replicationRole},
	"select":  {replicationRole, catalogCall, timeCall},
	"insert":  {sessionRows, fileRows},
	"update":  {sessionRows},
	"delete":  {sessionRows},
}

// kinds are the words near the start that identify statements with a rule. Other statements with
// the same first word need no tokens.
var kinds = map[string][]string{
	"create": {"extension", "policy", "trigger", "function", "role", "user", "group", "schema"},
	"drop":   {"extension", "role", "user", "group", "trigger"},
}

// Decide returns a statement's verdict.
func Decide(s sqllex.Statement) Verdict {
	first := s.Words[0]
	if kinds, ok := kinds[first]; ok && !slices.ContainsFunc(kinds, func(k string) bool {
		return slices.Contains(s.Words, k)
	}) && !platformReference.MatchString(s.Text) {
		return Verdict{SQL: s.Text}
	}

	if first == "do" {
		return doBlock(s)
	}

	rules := rules[first]
	if len(rules) == 0 || (slices.Contains(dataWords, first) && !isForeignData(s.Text)) {
		return Verdict{SQL: s.Text}
	}

	ts := Tokenize(s.Text, 0)
	subject := SubjectOf(ts)
	for _, rule := range rules {
		if v, ok := rule(ts, subject); ok {
			return v
		}
	}

	return Verdict{SQL: s.Text}
}

// dataWords are the first words in statements that can be long and many.
var dataWords = []string{"select", "insert", "update", "delete"}

// foreignData matches a part of the few data statements that a rule may be about.
var foreignData = regexp.MustCompile(`(?i)\b(auth|dbdev|pgtle|storage)"?\s*\.|` + replicationSetting +
	`|_hypertable|_dimension|_time_interval|_(compression|retention)_policy`)

func isForeignData(text string) bool {
	const head = 4 << 10 // bytes; rules match near the start
	return foreignData.MatchString(text[:min(len(text), head)])
}

const replicationSetting = "session_replication_role"

// replicationRole leaves out a setting that only superusers have. Files set it to suspend triggers
// and foreign keys while rows are loaded.
func replicationRole(ts Tokens, s Subject) (Verdict, bool) {
	i := ts.SkipAny(1, "session", "local")
	switch ts.Word(0) {
	case "set", "reset":
		if ts.Identifier(i) != replicationSetting {
			return Verdict{}, false
		}
	default:
		if len(s.Name) == 0 || s.Name[len(s.Name)-1] != "set_config" ||
			strings.ToLower(strings.Trim(ts.Raw(s.After+1), "'")) != replicationSetting {
			return Verdict{}, false
		}
	}

	return leaveOut("%s is left out: triggers and foreign keys stay active", replicationSetting), true
}

// storageTrigger leaves out triggers on the tables of storage: those that Supabase has there, which
// a schema pulled from it contains, and those of a project.
func storageTrigger(ts Tokens, s Subject) (Verdict, bool) {
	switch {
	case s.Kind != "trigger" || s.Table.Schema() != "storage":
		return Verdict{}, false
	case executed(ts, s).Schema() == "storage":
		return leaveOut("trigger %s is left out: the platform keeps its tables", s.Describe()), true
	}

	return leaveOut("trigger %s is left out: files change by the Storage API, and a webhook tells of it", s.Describe()), true
}

// executed returns the function that a new trigger executes.
func executed(ts Tokens, s Subject) Name {
	f, _ := ts.Name(ts.SkipAny(ts.Find(s.After, "execute")+1, "function", "procedure"))
	return f
}

func leaveOut(format string, args ...any) Verdict {
	return Verdict{Action: LeaveOut, Notes: []string{note(format, args...)}}
}

// maxNote bounds a note, in bytes: a text chooses the length of its names.
const maxNote = 300

func note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if len(text) <= maxNote {
		return text
	}

	return strings.ToValidUTF8(text[:maxNote], "") + "…"
}
