package dialect

import (
	"slices"
	"strings"
)

// requests are the functions with which Supabase's databases send HTTP requests. They fail with an
// explanation when other code calls them.
var requests = []string{"net.http_get", "net.http_post", "net.http_delete"}

// userTables are the tables in schema auth whose rows the project's owner writes.
var userTables = []string{"users", "identities"}

// callEnds are the words that may follow a call or a table in a statement that does nothing else.
var callEnds = []string{"as", "from", "limit", "order", "where"}

// request leaves out a statement that only sends a request.
func request(ts Tokens, s Subject) (Verdict, bool) {
	next := ts.skipGroup(s.After)
	if !slices.Contains(requests, s.Name.String()) ||
		(next != len(ts.All) && !slices.Contains(callEnds, ts.Word(next))) {
		return Verdict{}, false
	}

	return leaveOut("%s is left out: SQL sends no HTTP requests yet", s.Name), true
}

// sessionRows leaves out changes to tables in schema auth that belong to the platform alone. Seeds
// write them along with users.
func sessionRows(_ Tokens, s Subject) (Verdict, bool) {
	if len(s.Name) != 2 || s.Name[0] != "auth" || slices.Contains(userTables, s.Name[1]) {
		return Verdict{}, false
	}

	return leaveOut("%s %s is left out: sessions, tokens and factors belong to the platform", s.Action, s.Name), true
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
