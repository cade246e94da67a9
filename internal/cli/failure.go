package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/repository"
	"github.com/socle-dev/socle/internal/sqllex"
)

// failure is a failure response, with the context of the command.
type failure struct {
	cause *client.Error
	label func(field string) string // name of a field on the command line; nil: as in the API
	query string                    // SQL of the request; "": none
	file  string                    // path of the SQL; "": not from a file of its own
	hints []string                  // what to do next
	json  bool                      // print the response as it is
}

// explain adds the next step to a failure response. Other errors are returned as they are.
func explain(err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		return newFailure(e)
	}

	return err
}

func newFailure(e *client.Error) *failure {
	f := &failure{cause: e}
	switch {
	case e.Status == http.StatusUnauthorized && (e.Code == "invalid_token" || e.Code == "token_expired"):
		f.hints = append(f.hints, "Log in: socle login")
	case e.Code == "internal":
		f.hints = append(f.hints, "Request id: "+e.RequestID)
	case e.Retry > 0:
		f.hints = append(f.hints, "Try again in "+strconv.Itoa(int(e.Retry.Seconds()))+" seconds.")
	}

	return f
}

// Error returns the failure in a few lines.
func (f *failure) Error() string { return f.cause.Error() }

// Unwrap returns the failure response.
func (f *failure) Unwrap() error { return f.cause }

// explain adds to a failure response what the command calls the fields, and flags that help.
func (r *remote) explain(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}

	f, isFailure := errors.AsType[*failure](err)
	if !isFailure {
		f = newFailure(e)
	}
	if f.label == nil {
		f.label = r.label
	}

	f.json = asJSON(cmd)
	if v := r.flags[fieldWithSQL(e)]; f.query == "" && v != nil && v.kind == "string" {
		f.query = v.String()
	}

	for flag, hint := range map[string]string{
		"cascade": "Delete the dependents too: --cascade",
		"force":   "Delete it with all it contains: --force",
	} {
		if cmd.Flags().Lookup(flag) != nil && (e.Code == "in_use" || e.Code == "not_empty") {
			f.hints = append(f.hints, hint)
		}
	}

	return f
}

// fieldWithSQL returns the field of the SQL that PostgreSQL reports on, or "".
func fieldWithSQL(e *client.Error) string {
	m, _ := decode(e.Metadata)
	metadata, _ := m.(record)
	if len(e.Fields) != 1 || metadata.value("postgres") == nil {
		return ""
	}

	return e.Fields[0].Name
}

// label returns the flag or argument of a field of the request.
func (r *remote) label(field string) string {
	name, inner, _ := strings.Cut(field, ".")
	switch {
	case name == "X-Project", name == "projectUUID" && r.project:
		return "--project"
	case name == "X-Passphrase", name == "passphrase":
		return "the passphrase (--passphrase-file or SOCLE_PASSPHRASE)"
	case name == "password":
		return "the password"
	case slices.Contains(r.args, name):
		return argument(name)
	case name == r.list && !r.flags[name].given(): // the flags are those of the only item
		if _, of, _ := strings.Cut(inner, "."); of != "" {
			return r.label(of)
		}
	}

	v := r.flags[name]
	switch {
	case v == nil:
		return field
	case inner != "":
		return "--" + r.flagName(name) + " (" + inner + ")"
	}

	return "--" + r.flagName(name)
}

// fail prints an error.
func fail(w io.Writer, err error) {
	f, ok := errors.AsType[*failure](explain(err))
	unreachable, lost := errors.AsType[*url.Error](err)
	unreadable, local := errors.AsType[*fs.PathError](err) // the file to send
	failedImport, isImport := errors.AsType[*importError](err)
	problems, broken := errors.AsType[repository.Problems](err)
	switch {
	case broken:
		fmt.Fprintf(w, "socle: the repository has %s; nothing has changed\n", count(int64(len(problems)), "mistake"))
		for _, problem := range problems {
			fmt.Fprintf(w, "  %s\n", sanitize(problem.String()))
		}
	case isImport:
		failedImport.print(w)
	case lost && local:
		fmt.Fprintln(w, "socle:", sanitize(oneLine(unreadable.Error())))
	case lost:
		address, _ := url.Parse(unreachable.URL)
		fmt.Fprintf(w, "socle: cannot reach %s://%s: %s\nThe address comes from --url, SOCLE_URL or socle login.\n",
			address.Scheme, address.Host, sanitize(oneLine(unreachable.Err.Error())))
	case !ok:
		fmt.Fprintln(w, "socle:", sanitize(oneLine(strings.TrimPrefix(err.Error(), errUsage.Error()+": "))))
	case f.json && f.cause.Body != nil:
		_ = printIndented(w, f.cause.Body) // nowhere to report to
	default:
		f.print(w)
	}
}

// print prints everything useful that the response says.
func (f *failure) print(w io.Writer) {
	m, _ := decode(f.cause.Metadata)
	metadata, _ := m.(record)
	postgres, _ := metadata.value("postgres").(record)

	query, position := f.query, reported(postgres, "position")
	lines := f.sentences()
	sql, isGenerated := metadata.value("sql").(string)
	switch {
	case isGenerated:
		query, position = sql, placed(sql, postgres)
	case postgres == nil:
	case reported(postgres, "statement") == 0: // part of a statement, such as a condition
		lines = append(lines, describePostgres(postgres))
	case f.file != "":
		lines = []string{f.place(postgres) + ": " + describePostgres(postgres)}
	default:
		lines = []string{describePostgres(postgres)}
	}

	for i, line := range lines {
		if i == 0 {
			line = "socle: " + line
		}
		fmt.Fprintln(w, sanitize(line))
	}

	fmt.Fprint(w, caret(query, position, 1, widthOf(w)))

	report := postgres
	if metadata.value("requestId") == nil { // the rows API, whose failures are PostgreSQL's reports
		report = metadata
	}

	for _, name := range []string{"detail", "details", "hint", "context"} {
		if text, _ := report.value(name).(string); text != "" {
			fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(strings.TrimSuffix(name, "s")), sanitize(text))
		}
	}

	f.printRest(w, metadata)

	for _, hint := range f.hints {
		fmt.Fprintln(w, sanitize(hint))
	}
}

// place returns the file of the SQL, with the line that PostgreSQL reports.
func (f *failure) place(postgres record) string {
	letters := []rune(f.query)
	n := placed(f.query, postgres)
	if n < 1 || n > len(letters)+1 {
		return f.file
	}

	return f.file + ":" + strconv.Itoa(strings.Count(string(letters[:n-1]), "\n")+1)
}

// placed returns the position in a query that PostgreSQL reports, or else that of the statement
// that failed. It is 0 if both are unknown.
func placed(query string, postgres record) int {
	n, statement := reported(postgres, "position"), reported(postgres, "statement")
	if all := sqllex.Split(query); n == 0 && statement > 0 && statement <= len(all) {
		n = all[statement-1].FirstChar() + 1
	}

	return n
}

// reported returns a number of PostgreSQL's report, or 0.
func reported(postgres record, name string) int {
	number, _ := postgres.value(name).(json.Number)
	n, _ := number.Int64() // 0 of none

	return int(n)
}

// sentences returns the failure in sentences, with the fields as the command calls them.
func (f *failure) sentences() []string {
	label := f.label
	if label == nil {
		label = func(field string) string { return field }
	}

	var lines []string
	for _, field := range f.cause.Fields {
		lines = append(lines, label(field.Name)+" "+field.Message)
	}

	first := ""
	if len(f.cause.Fields) > 0 {
		first = f.cause.Fields[0].Name + " " + f.cause.Fields[0].Message
	}

	if strings.EqualFold(strings.TrimSuffix(f.cause.Detail, "."), first) { // the detail repeats the first field
		return lines
	}

	detail, _, _ := strings.Cut(f.Error(), "\n")
	return append([]string{detail}, lines...)
}

// describePostgres returns the message of PostgreSQL's report.
func describePostgres(report record) string {
	text := fmt.Sprint(report.value("message"))
	if state, _ := report.value("sqlstate").(string); state != "" {
		text += " (" + state + ")"
	}
	if n := reported(report, "statement"); n > 1 {
		text += ", in statement " + strconv.Itoa(n)
	}

	return text
}

// caret returns the line of a query that has a position, with a caret under it. first is the number
// of the query's first line. A line that is longer than the terminal is shown in part.
func caret(query string, position, first, terminal int) string {
	letters := []rune(query)
	if position < 1 || position > len(letters)+1 {
		return ""
	}

	before := string(letters[:position-1])
	start := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(query[start:], "\n")
	head := fmt.Sprintf("LINE %d: ", strings.Count(before, "\n")+first)
	lead := []rune(sanitize(before[start:]))
	shown := []rune(sanitize(line))

	if room := max(terminal-len(head)-1, 20); terminal > 0 && len(shown) > room {
		from := max(0, min(len(lead)-room/2, len(shown)-room))
		shown, lead = shown[from:min(from+room, len(shown))], lead[from:]
	}

	return fmt.Sprintf("%s%s\n%s^\n", head, string(shown),
		strings.Repeat(" ", len(head)+text.StringWidth(string(lead))))
}

// printRest prints the members of a failure that are its own: dependents, rejected lines, failing
// rows and the like.
func (f *failure) printRest(w io.Writer, metadata record) {
	for _, m := range metadata {
		switch m.name {
		case "version", "name", "applied":
			if f.file != "" {
				continue
			}
		case "code", "detail", "details", "hint", "message", "fields", "requestId", "postgres":
			continue
		}

		items, list := m.value.([]any)
		text, _ := m.value.(string)
		switch {
		case list && len(items) == 0, m.value == nil:
		case strings.Contains(text, "\n"):
			fmt.Fprintf(w, "%s:\n\n", strings.ToUpper(title(m.name)))
			for line := range strings.Lines(text) {
				fmt.Fprintln(w, sanitize(strings.TrimSuffix(line, "\n")))
			}
		case list:
			fmt.Fprintf(w, "%s:\n", heading(m.name))
			_ = printTable(w, items) // nowhere to report to
		default:
			fmt.Fprintf(w, "%s: %s\n", heading(m.name), cell(m.name, m.value))
		}
	}
}
