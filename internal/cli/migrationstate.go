package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/migration/file"
)

// migrationState are the migrations of a folder and those that a project has applied.
type migrationState struct {
	e              environment
	dir            string
	client         *client.Client
	files, applied []migration // in the order of their versions
}

// open reads the folder and asks the project.
func (m *migrationsCommand) open(cmd *cobra.Command) (*migrationState, error) {
	s := &migrationState{e: m.e}
	s.dir, _ = cmd.Flags().GetString("dir")

	f, err := readMigrations(s.dir, "")
	if err != nil {
		return nil, err
	}

	s.files = f.files
	for _, path := range f.skipped {
		fmt.Fprintf(cmd.ErrOrStderr(), "Skipped %s: its name has no version, as 20261123101500_create_books.sql has.\n",
			sanitize(path))
	}

	if s.client, err = m.e.client(cmd); err != nil {
		return nil, err
	}
	if err := (finder{m.document, s.client}).selectProject(cmd.Context()); err != nil {
		return nil, err
	}

	return s, s.readApplied(cmd)
}

// readApplied reads all applied migrations of the project.
func (s *migrationState) readApplied(cmd *cobra.Command) error {
	for page := 1; ; page++ {
		query := url.Values{"limit": {strconv.Itoa(namesPerPage)}, "page": {strconv.Itoa(page)}}
		reply, err := s.client.Do(cmd.Context(),
			client.Request{Method: http.MethodGet, Path: "/migrations", Query: query})
		if err != nil {
			return explain(err)
		}

		var all []struct {
			Version, Name, Checksum string
			AppliedAt               time.Time
			DurationMs              *float64
		}
		if err := reply.Into(&all); err != nil {
			return err
		}

		for _, a := range all {
			s.applied = append(s.applied, migration{Version: a.Version, Name: a.Name, Checksum: a.Checksum,
				AppliedAt: a.AppliedAt, incomplete: a.DurationMs == nil})
		}

		if len(all) < namesPerPage {
			return nil
		}
	}
}

// find returns the applied migration with a version, or nil.
func (s *migrationState) find(version string) *migration {
	if i := slices.IndexFunc(s.applied, func(a migration) bool { return a.Version == version }); i >= 0 {
		return &s.applied[i]
	}
	return nil
}

// pending returns the files that the project has not applied. It fails if one was changed after it
// was applied, or if an older one is pending, unless that is allowed.
func (s *migrationState) pending(outOfOrder bool) ([]migration, error) {
	var pending []migration
	newest := ""
	for _, a := range s.applied {
		if !a.incomplete && (newest == "" || file.Compare(a.Version, newest) > 0) {
			newest = a.Version
		}
	}

	for _, f := range s.files {
		a := s.find(f.Version)
		switch {
		case a != nil && !a.incomplete && a.Checksum != f.Checksum:
			return nil, fmt.Errorf("%s was changed after it was applied: it had the checksum %s, the file has %s; "+
				"restore the file, and write the change as a new migration", f.path, a.Checksum, f.Checksum)
		case a != nil && !a.incomplete:
			continue
		case a == nil && newest != "" && file.Compare(f.Version, newest) < 0 && !outOfOrder:
			return nil, fmt.Errorf("%s is older than the applied version %s; "+
				"give it a newer version, or apply it with --allow-out-of-order", f.path, newest)
		}

		pending = append(pending, f)
	}

	return pending, nil
}

// Limits of a request.
const (
	maxBatch      = 1000
	maxBatchBytes = 3 << 20
)

// batch returns how many of the migrations fit into a request.
func batch(pending []migration) int {
	size := 0
	for i, f := range pending {
		size += len(f.SQL) + len(f.SQL)/8 // line breaks take two bytes in JSON
		if i > 0 && (i == maxBatch || size > maxBatchBytes) {
			return i
		}
	}

	return len(pending)
}

// apply sends migrations. A failure names the file and the line. What was applied before it is
// reported first.
func (s *migrationState) apply(cmd *cobra.Command, files []migration, options map[string]any) (*client.Reply, error) {
	reply, err := s.send(cmd, "/migrations", files, options)
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return reply, err
	}

	var done struct {
		Applied []string
		Notes   []sqlNote
	}
	_ = json.Unmarshal(e.Metadata, &done) // absent if nothing ran
	for _, f := range files {
		if slices.Contains(done.Applied, f.Version) {
			fmt.Fprintf(cmd.OutOrStdout(), "Applied %s_%s.\n", f.Version, sanitize(f.Name))
		}
	}

	s.printNotes(cmd, done.Notes)
	return nil, err
}

// send sends files to an operation.
func (s *migrationState) send(
	cmd *cobra.Command, path string, files []migration, options map[string]any,
) (*client.Reply, error) {
	if files == nil {
		files = []migration{}
	}

	body := map[string]any{"migrations": files}
	for name, value := range options {
		if value != false {
			body[name] = value
		}
	}

	reply, err := s.client.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: path, Body: body})
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return reply, err
	}

	var failed struct{ Version string }
	_ = json.Unmarshal(e.Metadata, &failed) // absent if no file is to blame
	for _, f := range files {
		if f.Version == failed.Version {
			return nil, inFile(err, f.path, f.SQL)
		}
	}

	return nil, explain(err)
}

// inFile adds the file to a failure of its SQL.
func inFile(err error, path, text string) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}

	f := newFailure(e)
	f.query = text
	f.label = func(field string) string {
		if strings.HasSuffix(field, "sql") || field == "query" {
			return path
		}
		return field
	}
	f.file = path

	return f
}

// print lists the migrations of the folder and of the project.
func (s *migrationState) print(cmd *cobra.Command) error {
	type line struct {
		Version   string `json:"version"`
		Name      string `json:"name"`
		Status    string `json:"status"`
		AppliedAt string `json:"appliedAt,omitempty"`
	}

	var lines []line
	for _, f := range s.files {
		l := line{f.Version, f.Name, "pending", ""}
		if a := s.find(f.Version); a != nil {
			l.Status, l.AppliedAt = "applied", a.AppliedAt.Format(time.RFC3339)
			switch {
			case a.incomplete:
				l.Status = "incomplete"
			case a.Checksum != f.Checksum:
				l.Status = "changed"
			}
		}

		lines = append(lines, l)
	}

	for _, a := range s.applied {
		if !slices.ContainsFunc(s.files, func(f migration) bool { return f.Version == a.Version }) {
			lines = append(lines, line{a.Version, a.Name, "file missing", a.AppliedAt.Format(time.RFC3339)})
		}
	}

	slices.SortFunc(lines, func(a, b line) int { return file.Compare(a.Version, b.Version) })

	if asJSON(cmd) {
		text, err := json.Marshal(append([]line{}, lines...))
		if err != nil {
			return err
		}
		return printIndented(cmd.OutOrStdout(), text)
	}

	if len(lines) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "No migrations; create one: socle migrations new NAME")
		return nil
	}

	g := grid{heads: []string{"VERSION", "NAME", "STATUS", "APPLIED AT"}}
	for _, l := range lines {
		g.rows = append(g.rows, []string{l.Version, l.Name, l.Status, l.AppliedAt})
	}

	return g.print(cmd.OutOrStdout())
}
