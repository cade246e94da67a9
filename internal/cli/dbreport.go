package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// Limits of a printed report; --json has no limits.
const (
	maxReportTexts = 20 // per topic
	maxReportLines = 5  // per text
)

// count returns a number with its noun.
func count(n int64, noun string) string {
	if n != 1 {
		noun = plural(noun)
	}
	return strconv.FormatInt(n, 10) + " " + noun
}

func printValue(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}

	return printIndented(w, text)
}

// printImportReport prints the omissions and changes of an import, by topic.
func printImportReport(w io.Writer, r pgdump.Report) {
	if len(r.Extensions) > 0 {
		fmt.Fprintf(w, "Installed extensions: %s\n", strings.Join(r.Extensions, ", "))
	}

	var topics []pgdump.Topic
	for _, n := range r.Notes {
		if !slices.Contains(topics, n.Topic) {
			topics = append(topics, n.Topic)
		}
	}
	slices.Sort(topics)

	for _, t := range topics {
		title := "Left out: " + string(t)
		if t == pgdump.Changed {
			title = "Changed"
		}

		fmt.Fprintf(w, "%s\n", title)
		printNotes(w, r.Notes, t)
	}

	if r.Omitted > 0 {
		fmt.Fprintf(w, "%s more\n", count(int64(r.Omitted), "note"))
	}
}

// printNotes prints the notes of a topic. Those with the same text are one line.
func printNotes(w io.Writer, notes []pgdump.Note, topic pgdump.Topic) {
	var texts []string
	lines := map[string][]int{}
	for _, n := range notes {
		if n.Topic != topic {
			continue
		}
		if lines[n.Text] == nil {
			texts = append(texts, n.Text)
		}
		lines[n.Text] = append(lines[n.Text], n.Line)
	}

	for _, text := range texts[:min(len(texts), maxReportTexts)] {
		fmt.Fprintf(w, "  %s: %s\n", lineList(lines[text]), sanitize(text))
	}
	if more := len(texts) - maxReportTexts; more > 0 {
		fmt.Fprintf(w, "  and %d more; all: --json\n", more)
	}
}

// lineList returns the lines of a note.
func lineList(lines []int) string {
	var b strings.Builder
	b.WriteString("line ")
	if len(lines) > 1 {
		b.Reset()
		b.WriteString("lines ")
	}

	for i, l := range lines[:min(len(lines), maxReportLines)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(l))
	}
	if more := len(lines) - maxReportLines; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}

	return b.String()
}

// importError is the failure of an import.
type importError struct {
	cause      error
	report     pgdump.Report
	file       string
	separately bool
}

// Error returns the failure in one line.
func (e *importError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *importError) Unwrap() error { return e.cause }

// print prints the failure with its place in the dump, and the remains of the import.
func (e *importError) print(w io.Writer) {
	d, ok := errors.AsType[*pgdump.Error](e.cause)
	switch {
	case errors.Is(e.cause, context.Canceled):
		fmt.Fprintln(w, "socle: canceled")
	case !ok:
		fmt.Fprintf(w, "socle: %s\n", sanitize(oneLine(e.cause.Error())))
	default:
		e.printPlace(w, d)
	}

	for _, topic := range []pgdump.Topic{pgdump.Extensions, pgdump.Objects, pgdump.References} {
		if slices.ContainsFunc(e.report.Notes, func(n pgdump.Note) bool { return n.Topic == topic }) {
			fmt.Fprintf(w, "Left out before: %s\n", topic)
			printNotes(w, e.report.Notes, topic)
		}
	}

	switch {
	case errors.Is(e.cause, pgdump.ErrOutcomeUnknown):
	case e.separately:
		fmt.Fprintf(w, "%s before the failure are imported.\n", count(int64(e.report.Statements), "statement"))
	default:
		fmt.Fprintln(w, "Nothing was imported.")
	}
	if len(e.report.Extensions) > 0 {
		fmt.Fprintf(w, "These extensions stay installed: %s\n", strings.Join(e.report.Extensions, ", "))
	}
}

// printPlace prints the failure of a statement in PostgreSQL's words.
func (e *importError) printPlace(w io.Writer, d *pgdump.Error) {
	name := e.file
	if name == "-" {
		name = "the dump"
	}

	message := d.Message
	if d.Postgres != nil {
		message = d.Postgres.Message + " (" + d.Postgres.Code + ")"
	}
	fmt.Fprintf(w, "socle: %s, line %d: %s\n", sanitize(name), d.Line, sanitize(message))

	if d.Position > 0 {
		fmt.Fprint(w, caret(d.Statement, d.Position, d.FirstLine, widthOf(w)))
	} else if line, _, _ := strings.Cut(d.Statement, "\n"); line != "" {
		fmt.Fprintf(w, "STATEMENT: %.200s\n", sanitize(line))
	}

	if p := d.Postgres; p != nil {
		for _, part := range []struct{ name, text string }{
			{"DETAIL", p.Detail}, {"HINT", p.Hint}, {"CONTEXT", p.Where},
		} {
			if part.text != "" {
				fmt.Fprintf(w, "%s: %s\n", part.name, sanitize(part.text))
			}
		}
	}
}
