package laws

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/cli"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func TestMain(m *testing.M) { pgtest.Main(m) }

// golden compares text with a file of the tree.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()

	if *update {
		write(t, name, got)
		return
	}

	want, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}

	compare(t, name, want, got)
}

// goldenGzip is [golden] for a compressed file of the tree.
func goldenGzip(t *testing.T, name string, got []byte) {
	t.Helper()

	if *update {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := w.Write(got); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}

		write(t, name, b.Bytes())
		return
	}

	compressed, err := os.Open(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	defer compressed.Close()

	r, err := gzip.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}

	want, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}

	compare(t, name, want, got)
}

// write replaces a file of the tree.
func write(t *testing.T, name string, content []byte) {
	t.Helper()

	if err := os.WriteFile(filepath.Join(root(t), name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// compare reports the difference between the text of a generated file and its current one.
func compare(t *testing.T, name string, want, got []byte) {
	t.Helper()

	if bytes.Equal(got, want) {
		return // without the lines
	}

	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s is out of date, run `make generate` (-file +current):\n%s", name, diff)
	}
}

func TestOpenAPIIsCurrent(t *testing.T) {
	t.Parallel()

	golden(t, "docs/openapi.json", api.Document())
	goldenGzip(t, "docs/openapi.json.gz", api.Document()) // in binaries

	commands, err := cli.Commands(api.Document())
	if err != nil {
		t.Fatal(err)
	}

	goldenGzip(t, "internal/cli/commands.json.gz", commands)
}

// TestSchemasAreCurrent compares the schema dumps with the migrations, so that a schema change
// shows in the diff of its dump.
func TestSchemasAreCurrent(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	golden(t, "internal/platform/schema.sql", dump(t, string(a.Config.DatabaseURL), "platform"))
	tenants := dump(t, databaseURL(t, a), "socle", "auth", "storage", "forms", "realtime")
	golden(t, "internal/projectdb/schema.sql",
		bytes.ReplaceAll(tenants, []byte(strings.TrimPrefix(a.DatabaseName(), "socle_")), []byte("PROJECT")))
}

// databaseURL returns the address of the project's database for pg_dump.
func databaseURL(t *testing.T, a *apitest.API) string {
	t.Helper()

	c, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}

	return strings.Replace(string(a.Config.DatabaseURL), "/"+c.Database, "/"+a.DatabaseName(), 1)
}

// irrelevantLines matches the lines of a dump that are not part of the schema and depend on
// PostgreSQL's version.
var irrelevantLines = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n`)

// view matches a view of one table. PostgreSQL before 16 qualifies its columns with the table name,
// later versions do not.
var view = regexp.MustCompile(`(?s)CREATE VIEW [^;]*?\n   FROM \w+\.(\w+)\n[^;]*;`)

func unqualified(definition []byte) []byte {
	return bytes.ReplaceAll(definition, append(view.FindSubmatch(definition)[1], '.'), nil)
}

func dump(t *testing.T, url string, schemas ...string) []byte {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	args := []string{"--schema-only", "--no-owner", "--dbname=" + url}
	for _, s := range schemas {
		args = append(args, "--schema="+s)
	}

	out, err := exec.CommandContext(t.Context(), binaries.Path("pg_dump"), args...).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}

	out = view.ReplaceAllFunc(irrelevantLines.ReplaceAll(out, nil), unqualified)
	return append(bytes.TrimSpace(regexp.MustCompile(`\n{3,}`).ReplaceAll(out, []byte("\n\n"))), '\n')
}

// TestMigrationsAreNumbered checks that migrations are numbered from 1 without gaps: the number of
// the newest equals their count.
func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()

	for _, dir := range []string{"internal/platform/migrations", "internal/projectdb/migrations"} {
		files, err := filepath.Glob(filepath.Join(root(t), dir, "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", dir, files, err)
		}

		for i, file := range files {
			number, _, _ := strings.Cut(filepath.Base(file), "_")
			if n, err := strconv.Atoi(number); err != nil || n != i+1 || len(number) != 5 {
				t.Errorf("%s is migration %d of %s", filepath.Base(file), i+1, dir)
			}

			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			if bytes.Contains(text, []byte("+goose Down")) || bytes.Contains(text, []byte("NO TRANSACTION")) {
				t.Errorf("%s goes down, or runs outside of a transaction", filepath.Base(file))
			}
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()

	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	c.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
