package statement

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/sqllex"
)

// maxStatements is the maximum per query or script.
const maxStatements = 20_000

// Step is a statement with its verdict.
type Step struct {
	sqllex.Statement
	dialect.Verdict

	Line, Column int // place of the first token, in characters from 1
}

// place adds the place of the i-th step to a report. position counts characters of the text from 1;
// 0: unknown.
func (s Step) place(r pg.Report, i, position int) pg.Report {
	r.Position, r.Line, r.Statement = position, s.Line, i+1

	first := s.FirstChar()
	if position <= first {
		return r
	}

	line, column := pg.LineAt(string([]rune(s.Text)[first-s.Char:]), position-first)
	switch {
	case line > 1:
		r.Line, r.Column = s.Line+line-1, column
	case line == 1:
		r.Column = s.Column + column - 1
	}

	return r
}

// StepNote says what was left out or changed in a statement.
type StepNote struct {
	Statement int    `json:"statement" doc:"Number of the statement, from 1."`
	Line      int    `json:"line" doc:"Line on which the statement begins, from 1."`
	Text      string `json:"text" example:"owner postgres is left out: everything belongs to the project's owner"`
}

// notes returns the notes for the i-th step.
func (s Step) notes(i int) []StepNote {
	var all []StepNote
	for _, text := range s.Notes {
		all = append(all, StepNote{Statement: i + 1, Line: s.Line, Text: text})
	}

	return all
}

// leftOut returns the step as left out for a reason.
func (s Step) leftOut(reason string) Step {
	s.Action, s.Notes = dialect.LeaveOut, []string{reason}
	return s
}

// forbiddenFirst are the first words in statements that would end the transaction or change the
// protocol.
var forbiddenFirst = []string{"abort", "rollback", "savepoint", "release", "copy"}

// controlFirst are the first words in BEGIN and COMMIT, which are left out in one transaction.
var controlFirst = []string{"begin", "start", "commit", "end"}

// split splits a text into its steps. With single, they run in one transaction. It fails with
// Unprocessable on field. Safety does not depend on it: PostgreSQL accepts a single statement at a
// time, and the transaction state is checked after each.
func split(field, text string, single bool) ([]Step, error) {
	statements := sqllex.Split(text)
	if len(statements) > maxStatements {
		return nil, fault.OnField(fault.Unprocessable, field, "too_many", "must be at most %d statements",
			maxStatements)
	}

	steps := make([]Step, len(statements))
	lines := lineCounter{rest: text, line: 1, column: 1}
	for i, s := range statements {
		steps[i] = Step{Statement: s, Verdict: dialect.Decide(s)}
		steps[i].Line, steps[i].Column = lines.at(s.FirstChar())
		if forbidden(s) || (!single && slices.Contains(controlFirst, s.Words[0])) {
			word := strings.ToUpper(s.Words[0])
			return nil, reject(field, i, steps[i], word+" is not possible here", "A text is one transaction, or one "+
				"transaction per statement. Import and export data separately.", "")
		}
	}

	if !single {
		return steps, nil
	}

	pairs, conflict := dialect.Pairs(statements)
	if conflict != nil {
		return nil, reject(field, conflict.Statement, steps[conflict.Statement], conflict.Reason, "", "")
	}

	for n, i := range pairs {
		steps[i].Action = dialect.LeaveOut
		if n%2 == 0 {
			steps[i].Notes = []string{"BEGIN and its COMMIT are left out: all statements are one transaction"}
		}
	}

	return steps, checkDrops(field, steps)
}

// lineCounter returns the places of ascending positions in a text.
type lineCounter struct {
	rest         string
	chars        int // before rest
	line, column int // at rest
}

// at returns a character's line and column.
func (c *lineCounter) at(char int) (line, column int) {
	for ; c.chars < char && c.rest != ""; c.chars++ {
		r, size := utf8.DecodeRuneInString(c.rest)
		c.column++
		if r == '\n' {
			c.line, c.column = c.line+1, 1
		}
		c.rest = c.rest[size:]
	}

	return c.line, c.column
}

// forbidden reports whether a statement would end the transaction or change the protocol.
func forbidden(s sqllex.Statement) bool {
	first := s.Words[0]
	return slices.Contains(forbiddenFirst, first) ||
		(first == "prepare" && len(s.Words) > 1 && s.Words[1] == "transaction")
}

// reject returns the i-th step's failure, in the form of PostgreSQL's errors.
func reject(field string, i int, s Step, message, detail, hint string) error {
	f := fault.OnField(fault.Unprocessable, field, "not_allowed", "was rejected: %s", message)
	report := pg.Report{Message: message, Detail: detail, Hint: hint}
	f.Extra = map[string]any{"postgres": s.place(report, i, s.FirstChar()+1)}

	return f
}
