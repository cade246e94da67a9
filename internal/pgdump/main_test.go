package pgdump_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// target is a project to import into.
type target struct {
	t *testing.T
	*projectdb.Project
}

func newTarget(t *testing.T) target {
	t.Helper()
	return target{t, projectdbtest.New(t)}
}

// install installs an extension as the platform's operation does.
func (p target) install(ctx context.Context, name string) error {
	_, err := schema.CreateExtension(ctx, p.Trusted(), name)
	switch f := fault.Of(err); {
	case err == nil, f != nil && f.Kind == fault.Conflict:
		return nil
	case f != nil && f.Kind == fault.Unprocessable:
		reason, _, _ := strings.Cut(f.Error(), ":")
		return &pgdump.UnavailableError{Reason: reason}
	}

	return err
}

// importDump imports a dump as the project's owner.
func (p target) importDump(dump string, o pgdump.Options) (pgdump.Report, error) {
	p.t.Helper()

	conn, err := pg.Acquire(p.t.Context(), p.Owner())
	if err != nil {
		p.t.Fatal(err)
	}

	session := conn.Hijack()
	defer session.Close(context.WithoutCancel(p.t.Context()))

	o.Install = p.install
	return pgdump.Import(p.t.Context(), session.PgConn(), strings.NewReader(dump), o)
}

// value returns the first value of a query on the project's database, as the platform.
func (p target) value(query string) string {
	p.t.Helper()

	v, err := pg.Value[*string](p.t.Context(), p.Trusted(), query)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	if v == nil {
		return "null"
	}

	return *v
}

// url returns the address of the project's database for a superuser.
func (p target) url() string {
	return pgtest.Server().URL(p.Trusted().Config().ConnConfig.Database)
}

// dump runs pg_dump.
func dump(t *testing.T, url string, args ...string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), filepath.Join(pgtest.BinDir(), "pg_dump"), append(args, url)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump %q: %v\n%s", args, err, &errs)
	}

	return string(out)
}

// source returns the address of a new database with the statements of a file in testdata.
func source(t *testing.T, file string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	projectdbtest.New(t) // the first one creates the roles of projects
	url := pgtest.URL(t)

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))

	if _, err := conn.PgConn().Exec(t.Context(), string(text)).ReadAll(); err != nil {
		t.Fatal(describe(string(text), err))
	}

	return url
}

// describe adds the place of a mistake to an error.
func describe(text string, err error) string {
	e, ok := err.(*pgconn.PgError)
	if !ok || e.Position == 0 {
		return err.Error()
	}

	return err.Error() + " before " + text[min(int(e.Position)-1, len(text)):][:min(80, len(text)-int(e.Position)+1)]
}

var (
	incidental = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog.set_config.*|\\.*restrict .*)$\n?`)
	closed     = regexp.MustCompile(`(?m)^ALTER TABLE .* ENABLE ROW LEVEL SECURITY;$\n?`)
	blank      = regexp.MustCompile(`\n\n+`)
)

// normalize removes from a dump everything that may differ in a project: comments, settings, the
// schema of extensions, and row level security, which every table of a project has.
func normalize(dump string) string {
	dump = closed.ReplaceAllString(incidental.ReplaceAllString(dump, ""), "")
	return blank.ReplaceAllString(strings.ReplaceAll(dump, "extensions.", "public."), "\n\n")
}
