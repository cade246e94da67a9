package dialect

import "slices"

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
