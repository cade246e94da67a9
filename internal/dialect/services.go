package dialect

import (
	"slices"
	"strings"
)

// userTables are the tables in schema auth whose rows the project's owner writes.
var userTables = []string{"users", "identities"}

// callEnds are the words that may follow a call or a table in a statement that does nothing else.
var callEnds = []string{"as", "from", "limit", "order", "where"}

// catalogs are the schemas of Supabase's tools that install extensions from text.
var catalogs = []string{"dbdev", "pgtle"}

// timeFunctions are functions of timescaledb that change how a table is stored, not its rows.
var timeFunctions = []string{"add_compression_policy", "add_dimension", "add_retention_policy", "create_hypertable",
	"set_chunk_time_interval"}

// timeCall leaves out a statement that only changes how timescaledb stores a table.
func timeCall(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "function" || len(s.Name) == 0 || !slices.Contains(timeFunctions, s.Name[len(s.Name)-1]) ||
		!ts.isOnlyCall(s) {
		return Verdict{}, false
	}

	return leaveOut("%s is left out: projects can't have timescaledb, and the table stays as it is", s.Name), true
}

// isOnlyCall reports whether a statement does nothing but call its subject.
func (ts Tokens) isOnlyCall(s Subject) bool {
	next := ts.skipGroup(s.After)
	return next == len(ts.All) || slices.Contains(callEnds, ts.Word(next))
}

// catalogCall leaves out a statement that only installs an extension from text, which would run as
// a superuser.
func catalogCall(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "function" || !slices.Contains(catalogs, s.Name.Schema()) || !ts.isOnlyCall(s) {
		return Verdict{}, false
	}

	return leaveOut("%s is left out: projects install extensions by CREATE EXTENSION", s.Name), true
}

// sessionRows leaves out changes to tables in schema auth that belong to the platform alone. Seeds
// write them along with users.
func sessionRows(_ Tokens, s Subject) (Verdict, bool) {
	if len(s.Name) != 2 || s.Name[0] != "auth" || slices.Contains(userTables, s.Name[1]) {
		return Verdict{}, false
	}

	return leaveOut("%s %s is left out: sessions, tokens and factors belong to the platform", s.Action, s.Name), true
}

// fileRows leaves out rows of files that are not there: a dump of Supabase's storage has them.
func fileRows(_ Tokens, s Subject) (Verdict, bool) {
	if len(s.Name) != 2 || s.Name[0] != "storage" || s.Name[1] == "buckets" {
		return Verdict{}, false
	}

	return leaveOut("insert %s is left out: a row brings no file, upload it by the Storage API", s.Name), true
}

// queueFunctions are the functions in schema pgmq_public that Supabase's dashboard creates.
var queueFunctions = []string{"archive", "delete", "pop", "read", "send", "send_batch"}

// queues leaves out pgmq's schemas and the functions of pgmq_public, which every project has.
func queues(_ Tokens, s Subject) (Verdict, bool) {
	name := s.Name.String()
	function, ok := strings.CutPrefix(name, "pgmq_public.")
	isFunction := ok && s.Kind == "function" && slices.Contains(queueFunctions, function)
	if isFunction || (s.Kind == "schema" && (name == "pgmq" || name == "pgmq_public")) {
		return leaveOut("%s %s is left out: every project has it", s.Kind, name), true
	}

	return Verdict{}, false
}

// skipGroup returns the index after a group in parentheses that begins at i, or i if none does.
func (ts Tokens) skipGroup(i int) int {
	depth := 0
	for at := i; at < len(ts.All); at++ {
		switch ts.Raw(at) {
		case "(":
			depth++
		case ")":
			depth--
			if depth == 0 {
				return at + 1
			}
		}
		if depth == 0 {
			break
		}
	}

	return i
}
