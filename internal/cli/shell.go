package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/sqllex"
)

// shell reads SQL from a terminal and runs it over the API. Commands that begin with a backslash
// are those of psql.
type shell struct {
	*remote
	cmd     *cobra.Command
	client  *client.Client
	line    *liner.State
	project string // name
	tables  []string
	cards   bool
	timing  bool
}

const shellHelp = `  \d            list tables
  \d TABLE      describe a table
  \l            list projects
  \c PROJECT    change to another project
  \i FILE       run the SQL of a file
  \x            print rows as cards, or as tables again
  \timing       print how long statements take, or no longer
  \readonly on  refuse changes, or not: \readonly off
  \r            forget the unfinished statement, as Ctrl-C does
  \q            quit
`

// interact runs the shell until the end of the input.
func (r *remote) interact(cmd *cobra.Command) error {
	c, err := r.e.client(cmd)
	if err != nil {
		return err
	}

	s := &shell{remote: r, cmd: cmd, client: c}
	if err := s.enter(c.Project); err != nil {
		return err
	}

	s.line = liner.NewLiner()
	defer s.line.Close()

	s.line.SetCtrlCAborts(true)
	s.line.SetWordCompleter(s.completeWord)

	history, err := r.e.historyFile()
	if err != nil {
		return err
	}
	defer s.keepHistory(history)

	if f, err := os.Open(history); err == nil {
		_, _ = s.line.ReadHistory(f) // an unreadable history is no reason not to work
		_ = f.Close()
	}

	fmt.Fprintf(cmd.OutOrStdout(), "%s on %s. A statement ends with a semicolon. Help: \\?\n", sanitize(s.project), c.URL)
	return s.loop()
}

// enter selects a project.
func (s *shell) enter(name string) error {
	s.client.Project = name
	if err := (finder{s.document, s.client}).selectProject(s.cmd.Context()); err != nil {
		return err
	}

	reply, err := s.get("/projects/" + url.PathEscape(s.client.Project))
	if err != nil {
		return err
	}

	project, _ := reply.content.(record)
	s.project, s.tables = fmt.Sprint(project.value("name")), nil

	return nil
}

func (s *shell) get(path string) (*reply, error) {
	r, err := s.client.Do(s.cmd.Context(), client.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}

	return newReply(r)
}

func (s *shell) keepHistory(name string) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = s.line.WriteHistory(f)
		err = errors.Join(err, f.Close())
	}

	if err != nil {
		fmt.Fprintln(s.cmd.ErrOrStderr(), "socle: keep the history:", err)
	}
}

// loop reads and runs statements and commands. A command leaves an unfinished statement as it is.
func (s *shell) loop() error {
	var text string
	for {
		input, err := s.line.Prompt(s.prompt(text != ""))
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			text = ""
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(s.cmd.OutOrStdout())
			return nil
		case err != nil:
			return err
		}

		statement := text + input + "\n"
		command := isShellCommand(text, input)
		switch {
		case command:
			statement = strings.TrimSpace(input)
		case strings.TrimSpace(statement) == "":
			text = ""
			continue
		case !sqllex.Complete(statement):
			text = statement
			continue
		}

		s.line.AppendHistory(strings.ReplaceAll(strings.TrimSpace(statement), "\n", " "))

		quit, err := s.execute(strings.TrimSpace(statement))
		if quit || s.cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			fail(s.cmd.ErrOrStderr(), err)
		}

		if !command || statement == `\r` {
			text = ""
		}
	}
}

// isShellCommand reports whether a line is a command of the shell. Within a statement it is, as in
// psql, unless the statement has an open quote or comment.
func isShellCommand(statement, line string) bool {
	if !strings.HasPrefix(strings.TrimSpace(line), `\`) {
		return false
	}

	open := false
	for l := sqllex.New(statement); ; {
		token, ok := l.Next()
		if !ok {
			return !open
		}

		open = token.Open
	}
}

func (s *shell) prompt(more bool) string {
	mode := " (read-only)"
	if s.flags["read_only"].String() == "false" {
		mode = ""
	}
	if more {
		return s.project + mode + "-> "
	}

	return s.project + mode + "=> "
}

// execute runs a statement or a command.
func (s *shell) execute(text string) (quit bool, err error) {
	if !strings.HasPrefix(text, `\`) {
		return false, s.runText(text)
	}

	name, argument, _ := strings.Cut(strings.TrimSuffix(text, ";"), " ")
	argument = strings.TrimSpace(argument)
	switch name {
	case `\q`:
		return true, nil
	case `\r`: // the loop forgets the statement
	case `\?`, `\h`:
		_, err = fmt.Fprint(s.cmd.OutOrStdout(), shellHelp)
	case `\x`:
		s.cards = !s.cards
	case `\timing`:
		s.timing = !s.timing
	case `\readonly`:
		err = s.flags["read_only"].Set(map[string]string{"on": "true", "off": "false"}[argument])
	case `\c`:
		err = s.enter(argument)
	case `\l`:
		err = s.list("/projects?limit=100", "projects")
	case `\i`:
		var file []byte
		if file, err = os.ReadFile(argument); err == nil {
			err = s.runText(string(file))
		}
	case `\d`, `\dt`:
		if argument == "" {
			return false, s.list("/tables?limit=100", "tables")
		}
		err = s.describe(argument)
	default:
		err = fmt.Errorf("there is no command %s; help: \\?", name)
	}

	return false, err
}

func (s *shell) runText(text string) error {
	s.flags["query"].texts = []string{text}
	reply, err := s.query(s.cmd, s.client)
	if err != nil {
		return err
	}

	s.tables = nil // perhaps there are others now
	return printResults(s.cmd.OutOrStdout(), s.cmd.ErrOrStderr(), reply, s.cards, s.timing)
}

// list prints the things of a list.
func (s *shell) list(path, subject string) error {
	p, err := s.get(path)
	if err != nil {
		return err
	}

	return p.print(s.cmd.OutOrStdout(), s.cmd.ErrOrStderr(), subject)
}

// describe prints a table's columns, indexes, constraints, policies, privileges and triggers.
func (s *shell) describe(table string) error {
	path := "/tables/" + url.PathEscape(table) + "/"
	for _, part := range []string{"columns", "indexes", "constraints", "policies", "grants", "triggers"} {
		p, err := s.get(path + part)
		if err != nil {
			return err
		}

		items, _ := p.content.([]any)
		if len(items) == 0 {
			continue
		}

		if part == "columns" {
			showIdentity(items)
		} else {
			fmt.Fprintf(s.cmd.OutOrStdout(), "\n%s:\n", heading(part))
		}

		if err := printTable(s.cmd.OutOrStdout(), definitions(items)); err != nil {
			return err
		}
	}

	return nil
}

// showIdentity writes in the place of identity columns' defaults how they are generated.
func showIdentity(columns []any) {
	for _, c := range columns {
		o, _ := c.(record)
		how, _ := o.value("identity").(string)
		for i := range o {
			switch {
			case o[i].name == "identity":
				o[i].value = nil
			case o[i].name == "defaultValue" && how != "":
				o[i].value = "generated " + how + " as identity"
			}
		}
	}
}

// definitions reduces things that have a definition to it and their names.
func definitions(items []any) []any {
	short := make([]any, len(items))
	for i, item := range items {
		o, _ := item.(record)
		if o.value("definition") == nil {
			return items
		}

		short[i] = record{{"name", o.value("name")}, {"definition", o.value("definition")}}
	}

	return short
}

// completeWord completes the name of a table.
func (s *shell) completeWord(line string, at int) (head string, words []string, tail string) {
	letters := []rune(line)
	start := at
	for start > 0 && !strings.ContainsRune(" \t,(", letters[start-1]) {
		start--
	}

	if s.tables == nil {
		o, _ := s.document.lister("/tables")
		items, _ := (finder{s.document, s.client}).list(s.cmd.Context(), o, "/tables", "") // nothing to complete
		for _, item := range items {
			s.tables = append(s.tables, namesOf(item)...)
		}
	}

	for _, t := range s.tables {
		if strings.HasPrefix(t, string(letters[start:at])) {
			words = append(words, t)
		}
	}

	return string(letters[:start]), words, string(letters[at:])
}
