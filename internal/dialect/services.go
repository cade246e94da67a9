package dialect

import (
	"slices"
	"strings"
)

// userTables are the tables in schema auth whose rows the project's owner writes.
var userTables = []string{"users", "identities"}

// sessionRows leaves out changes to tables in schema auth that belong to the platform alone. Seeds
// write them along with users.
func sessionRows(_ Tokens, s Subject) (Verdict, bool) {
	if len(s.Name) != 2 || s.Name[0] != "auth" || slices.Contains(userTables, s.Name[1]) {
		return Verdict{}, false
	}

	return leaveOut("%s %s is left out: sessions, tokens and factors belong to the platform", s.Action, s.Name), true
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
