package dialect

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

// service leaves out a statement that does nothing but call such a function or use such a table.
func service(ts Tokens, s Subject) (Verdict, bool) {
	reason, ok := services[s.Name.String()]
	if !ok || (s.Action == "select" && ts.Raw(ts.closing(s.After)+1) == ",") {
		return Verdict{}, false
	}

	return leaveOut("%s is left out: %s", s.Name, reason), true
}

// closing returns the index of the parenthesis that closes the one at i, or i - 1 if there is none.
func (ts Tokens) closing(i int) int {
	depth := 0
	for at := i; at < len(ts.All); at++ {
		switch ts.Raw(at) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return max(at, i-1)
		}
	}

	return i - 1
}
