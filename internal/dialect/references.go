package dialect

import (
	"regexp"
	"slices"
	"strings"
)

// referredSchemas are the platform's schemas to whose tables no foreign key can refer, except to
// the users. The tables differ from Supabase's, whose schemas refer to some of them.
var referredSchemas = []string{"auth", "cron", "net", "realtime", "storage", "vault"}

// platformReference matches the statements with a foreign key to such a table, and others.
var platformReference = regexp.MustCompile(`(?i)\breferences\s+"?(auth|cron|net|realtime|storage|vault)"?\s*\.`)

// references leaves out the foreign keys of a table that refer to the platform's tables. The
// columns stay.
func references(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "table" || !platformReference.MatchString(ts.Text) {
		return Verdict{}, false
	}

	var edits []edit
	var notes []string
	removed, next := 0, s.After // tokens; the first one behind those
	for i := s.After; i < len(ts.All); i++ {
		table, after := ts.Name(i + 1)
		if ts.Word(i) != "references" || !slices.Contains(referredSchemas, table.Schema()) ||
			slices.Equal(table, Name{"auth", "users"}) {
			continue
		}

		start, end := ts.foreignKey(next, i, after)
		edits = append(edits, edit{ts.All[start].Start, ts.All[end-1].End, ""})
		notes = append(notes, note("foreign key to %s is left out: of the platform's tables, only auth.users can have one", table))
		removed += end - start
		i, next = end-1, end
	}

	switch {
	case edits == nil:
		return Verdict{}, false
	case removed == len(ts.All)-s.After:
		return Verdict{Action: LeaveOut, Notes: notes}, true
	}

	return Verdict{SQL: edited(ts.Text, edits), Notes: notes}, true
}

// foreignKey returns the tokens from start to before end of the foreign key whose REFERENCES is at
// i and whose table ends before after. Those of a table's constraint include ADD and a comma that
// is not before from.
func (ts Tokens) foreignKey(from, i, after int) (start, end int) {
	start, end = i, ts.skipGroup(after)
	for next := ts.foreignKeyOption(end); next > end; next = ts.foreignKeyOption(end) {
		end = next
	}
	end = min(end, len(ts.All))

	columns := ts.groupBefore(i)
	ofTable := columns-2 >= from && ts.Has(columns-2, "foreign", "key")
	if ofTable {
		start = columns - 2
	}
	if start-2 >= from && ts.Word(start-2) == "constraint" {
		start -= 2
	}
	if !ofTable {
		return start, end
	}

	if start > from && ts.Word(start-1) == "add" {
		start--
	}
	switch {
	case start > from && ts.Raw(start-1) == ",":
		start--
	case ts.Raw(end) == ",":
		end++
	}

	return start, end
}

// foreignKeyOption returns the index after an option of a foreign key that begins at i, or i.
func (ts Tokens) foreignKeyOption(i int) int {
	switch {
	case ts.Has(i, "on", "delete"), ts.Has(i, "on", "update"):
		if ts.Word(i+2) == "no" || ts.Word(i+2) == "set" {
			return ts.skipGroup(i + 4)
		}
		return i + 3
	case ts.Word(i) == "match", ts.Word(i) == "initially", ts.Has(i, "not", "deferrable"), ts.Has(i, "not", "valid"):
		return i + 2
	case ts.Word(i) == "deferrable":
		return i + 1
	}

	return i
}

// groupBefore returns the index of the parenthesis that opens the group which ends before i, or -1.
func (ts Tokens) groupBefore(i int) int {
	depth := 0
	for at := i - 1; at >= 0; at-- {
		depth += strings.Count(")", ts.Raw(at)) - strings.Count("(", ts.Raw(at))
		if depth == 0 {
			return at
		}
	}

	return -1
}
