package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/sqllex"
)

// maxSeedQuery is the maximum size in bytes of a file with rows that is sent as one query. The
// server takes 1 MiB of JSON.
const maxSeedQuery = 256 << 10

// copyStatement matches the beginning of a line that may begin COPY, whose rows a query can't have.
var copyStatement = regexp.MustCompile(`(?mi)^\s*copy\s`)

// seed runs the file with rows of the folder.
func (s *migrationState) seed(cmd *cobra.Command) error {
	path := filepath.Join(s.dir, seedFile)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) { // Supabase's place of it
		path = filepath.Join(filepath.Dir(filepath.Clean(s.dir)), seedFile)
		_, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s in %s or next to it", seedFile, s.dir)
	}
	if err != nil {
		return err
	}

	return s.runSeed(cmd, path, "")
}

// runSeed runs a file with rows in one transaction, and a statement after it that records it; "":
// none. It streams a large file, and one with COPY, over PostgreSQL's protocol.
func (s *migrationState) runSeed(cmd *cobra.Command, path, record string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}

	var text []byte
	if info.Size() <= maxSeedQuery {
		if text, err = os.ReadFile(path); err != nil {
			return err
		}
	}

	if info.Size() > maxSeedQuery || copyStatement.Match(text) {
		i := dbImport{e: s.e, tunnel: s.tunnel(cmd), name: path, last: record}
		return i.run(cmd, pgdump.Options{Install: i.install})
	}

	query := strings.TrimPrefix(string(text), "\ufeff")
	statement := withRecord(query, record)

	body := map[string]any{"query": statement, "read_only": false, "timeout_ms": 30_000, "max_rows": 1}
	reply, err := s.client.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: "/sql", Body: body})
	if err != nil {
		return inFile(err, path, query)
	}

	var a answer
	if err := reply.Into(&a); err != nil {
		return err
	}

	printSQLNotes(cmd.ErrOrStderr(), a.Notes, func(sqlNote) string { return path })
	if !asJSON(cmd) {
		fmt.Fprintf(cmd.OutOrStdout(), "Ran %s.\n", sanitize(path))
	}

	return nil
}

// withRecord adds the statement that records a seed to its text: at the end, or before a COMMIT
// there, after which nothing of the same transaction can stand.
func withRecord(text, record string) string {
	if record == "" {
		return text
	}

	for at := 0; at < len(text); {
		s, rest, _ := sqllex.Cut(text[at:])
		next, _, _ := sqllex.Cut(rest)
		if len(next.Words) == 0 && dialect.IsCommit(s) {
			return text[:at] + "\n" + record + ";" + text[at:]
		}
		at = len(text) - len(rest)
	}

	return text + "\n;\n" + record
}

// tunnel returns a tunnel to the project.
func (s *migrationState) tunnel(cmd *cobra.Command) *tunnel {
	return &tunnel{Project: s.client.Project, Server: s.client.URL,
		client: func() (*client.Client, error) { return s.e.client(cmd) }}
}
