package dialect

import "slices"

// services are the functions and tables of Supabase's services that a project does not have, with
// the reason.
var services = map[string]string{
	"cron.schedule":             noSchedules,
	"cron.schedule_in_database": noSchedules,
	"cron.alter_job":            noSchedules,
	"cron.unschedule":           noSchedules,
	"cron.job":                  noSchedules,
	"cron.job_run_details":      noSchedules,
	"net.http_get":              noRequests,
	"net.http_post":             noRequests,
	"net.http_delete":           noRequests,
}

const (
	noSchedules = "projects have no schedules yet"
	noRequests  = "SQL sends no HTTP requests yet"
)

// callEnds are the words that may follow a call or a table in a statement that does nothing else.
var callEnds = []string{"as", "from", "limit", "order", "where"}

// service leaves out a statement that does nothing but call such a function or use such a table.
func service(ts Tokens, s Subject) (Verdict, bool) {
	reason, ok := services[s.Name.String()]
	if ok && s.Action == "select" {
		next := ts.skipGroup(s.After)
		ok = next == len(ts.All) || slices.Contains(callEnds, ts.Word(next))
	}
	if !ok {
		return Verdict{}, false
	}

	return leaveOut("%s is left out: %s", s.Name, reason), true
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
