package laws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// levels are the packages from the lowest level up. A package imports only packages of lower
// levels.
var levels = [][]string{
	{"client", "console", "docs", "internal/address", "internal/build", "internal/cache", "internal/fair",
		"internal/fault", "internal/config", "internal/pgwire", "internal/sqllex", "internal/trace",
		"internal/webauthn", "internal/weburl", "internal/rest/query", "internal/migration/file",
		"internal/telemetry", "internal/throttle", "internal/tick", "internal/function/sandbox", "internal/namespace"},
	{"internal/token", "internal/password", "internal/pg", "internal/timetable", "internal/blob",
		"internal/picture", "internal/httpx", "internal/jwt", "internal/mail", "internal/dialect",
		"internal/pgserver", "internal/tus", "internal/repository", "internal/realtime",
		"internal/function/runtime"},
	{"internal/audit", "internal/fleet", "internal/replica", "internal/backup/extension", "internal/backup/pgtool",
		"internal/outbound", "internal/queue", "internal/ratelimit", "internal/rest/catalog", "internal/actor",
		"internal/pgdump", "internal/function/bundle"},
	{"internal/bus", "internal/hook", "internal/leaked", "internal/schema", "internal/platform",
		"internal/rest/openapi", "internal/rest/session", "internal/pgcluster", "internal/idp",
		"internal/function/local"},
	{"internal/account", "internal/appkey", "internal/certificate", "internal/projectdb", "internal/rest/plan",
		"internal/rest/typescript", "internal/enduser/rules", "internal/requestlog"},
	{"internal/backup/archive", "internal/event", "internal/form", "internal/gateway", "internal/object",
		"internal/pgproxy", "internal/vault", "internal/function",
		"internal/explain", "internal/rest", "internal/statement", "internal/transfer", "internal/lifecycle",
		"internal/enduser/message", "internal/outbox"},
	{"internal/backup", "internal/migration", "internal/realtimeapi", "internal/restapi", "internal/s3api",
		"internal/storageapi", "internal/submission", "internal/tablejob", "internal/enduser", "internal/broadcast",
		"internal/httprequest", "internal/schedule", "internal/webhook", "internal/functionapi"},
	{"internal/operation", "internal/oauth"},
	{"internal/authapi", "internal/console", "internal/web"},
	{"internal/api/accounts", "internal/api/organizations", "internal/api/projects", "internal/api/tables",
		"internal/api/keys", "internal/api/endusers", "internal/api/rows", "internal/api/sql", "internal/api/schedules",
		"internal/api/files", "internal/api/forms", "internal/api/webhooks", "internal/api/backups",
		"internal/api/instance", "internal/api/edgefunctions"},
	{"internal/api"},
	{"internal/server", "internal/standalone"},
	{"internal/cli"},
	{"cmd/socle"},
}

// testOnly are the packages imported by tests only, regardless of level.
var testOnly = []string{
	"internal/pgtest", "internal/pgtest/tmpdir", "internal/blob/blobtest", "internal/idp/idptest",
	"internal/webauthn/webauthntest", "internal/api/apitest", "internal/projectdb/projectdbtest",
	"internal/mail/mailtest", "internal/platform/platformtest", "internal/object/objecttest",
	"internal/backup/integration", "internal/laws",
}

// onlyImporter maps an import to the only package allowed to use it.
var onlyImporter = map[string]string{
	"github.com/danielgtaylor/huma/v2": "internal/operation",
	"github.com/riverqueue/river":      "internal/queue",
	"github.com/spf13/cobra":           "internal/cli",
	"github.com/peterh/liner":          "internal/cli",
	"github.com/pressly/goose/v3":      "internal/pg",
	"github.com/wneessen/go-mail":      "internal/mail",
	"github.com/caddyserver/certmagic": "internal/certificate",
	"github.com/coder/websocket":       "internal/realtimeapi",
	"github.com/nats-io/nats.go":       "internal/bus",
	"golang.org/x/image/webp":          "internal/picture",

	"github.com/aws/aws-sdk-go-v2/service/s3":  "internal/blob",
	"github.com/exaring/otelpgx":               "internal/pg",
	"github.com/go-webauthn/webauthn/protocol": "internal/webauthn",
	"go.opentelemetry.io/otel/sdk/trace":       "internal/telemetry",
	"github.com/jedib0t/go-pretty/v6/table":    "internal/cli",
	"github.com/pelletier/go-toml/v2":          "internal/repository",
}

// maxLines is the maximum number of lines of a file. A longer file has two subjects.
const maxLines = 500

type listedPackage struct {
	ImportPath, Dir, Doc string
	GoFiles, Imports     []string
	TestGoFiles          []string
	XTestGoFiles         []string
	XTestImports         []string
}

// listTree lists the packages of the module by their path in it.
var listTree = sync.OnceValues(func() (map[string]listedPackage, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports,TestGoFiles,XTestGoFiles,XTestImports",
		"./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}

	module, err := readModulePath()
	if err != nil {
		return nil, err
	}

	packages := map[string]listedPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, err
		}

		packages[strings.TrimPrefix(p.ImportPath, module+"/")] = p
	}
})

// tree returns the packages of the module by their path in it.
func tree(t *testing.T) map[string]listedPackage {
	t.Helper()

	packages, err := listTree()
	if err != nil {
		t.Fatal(err)
	}

	return packages
}

// parsedTree has the syntax of the tree's files other than tests, by their absolute path.
type parsedTree struct {
	files *token.FileSet
	of    map[string]*ast.File
}

// parseTree parses the tree for all tests that read its syntax.
var parseTree = sync.OnceValues(func() (parsedTree, error) {
	packages, err := listTree()
	if err != nil {
		return parsedTree{}, err
	}

	parsed := parsedTree{token.NewFileSet(), map[string]*ast.File{}}
	for _, p := range packages {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			parsed.of[path], err = parser.ParseFile(parsed.files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return parsedTree{}, err
			}
		}
	}

	return parsed, nil
})

// syntax returns the parsed tree.
func syntax(t *testing.T) parsedTree {
	t.Helper()

	parsed, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

// noRace replaces the flags of the tests' build. The race detector needs cgo.
const noRace = "GOFLAGS=-buildvcs=false"

// readModulePath reads the import path of the module. Only go.mod chooses it.
var readModulePath = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("../../go.mod")
	line, _, _ := strings.Cut(string(text), "\n")

	return strings.TrimPrefix(line, "module "), err
})

// modulePath returns the import path of the module.
func modulePath(t *testing.T) string {
	t.Helper()

	path, err := readModulePath()
	if err != nil {
		t.Fatal(err)
	}

	return path
}

func root(t *testing.T) string {
	t.Helper()

	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	return dir
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()

	level := map[string]int{}
	for i, names := range levels {
		for _, name := range names {
			level[name] = i
		}
	}

	for name, p := range tree(t) {
		if slices.Contains(testOnly, name) || strings.HasPrefix(name, "bench/") {
			continue
		}

		mine, ok := level[name]
		if !ok {
			t.Errorf("%s has no level: add it here and in docs/architecture.md", name)
			continue
		}

		for _, imported := range p.Imports {
			if owner, ok := onlyImporter[imported]; ok && owner != name {
				t.Errorf("%s imports %s, reserved for %s", name, imported, owner)
			}

			other, ours := strings.CutPrefix(imported, modulePath(t)+"/")
			if !ours {
				continue
			}

			if theirs, ok := level[other]; !ok || theirs >= mine {
				t.Errorf("%s (level %d) imports %s (level %d)", name, mine, other, theirs)
			}
		}
	}
}

// TestRulesArePure keeps databases, requests and time limits out of the rules of end users and of
// repositories, so that their tests take milliseconds.
func TestRulesArePure(t *testing.T) {
	t.Parallel()

	for _, rules := range []string{"internal/enduser/rules", "internal/repository"} {
		p := tree(t)[rules]
		if len(p.Imports) == 0 {
			t.Fatalf("%s is missing", rules)
		}

		for _, impure := range []string{"context", "net/http", "github.com/jackc/pgx/v5",
			modulePath(t) + "/internal/pg", modulePath(t) + "/internal/platform",
			modulePath(t) + "/internal/projectdb"} {
			if slices.Contains(p.Imports, impure) {
				t.Errorf("%s imports %s", rules, impure)
			}
		}
	}
}

// TestWindowsHasNoServer checks that the Windows build has only the packages of the commands that
// call a server.
func TestWindowsHasNoServer(t *testing.T) {
	t.Parallel()

	cmd := exec.Command("go", "list", "-deps", "./cmd/socle")
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "GOOS=windows", noRace, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}

	var got []string
	for _, name := range strings.Fields(string(out)) {
		if ours, ok := strings.CutPrefix(name, modulePath(t)+"/"); ok {
			got = append(got, ours)
		}
	}

	want := []string{"client", "cmd/socle", "docs", "internal/build", "internal/cache", "internal/cli",
		"internal/config", "internal/dialect", "internal/fair", "internal/fault", "internal/function/bundle",
		"internal/function/local", "internal/function/runtime", "internal/function/sandbox", "internal/jwt",
		"internal/migration/file", "internal/namespace", "internal/outbound", "internal/pgdump", "internal/pgwire",
		"internal/repository", "internal/sqllex", "internal/tick"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("socle for Windows has the packages %v, want %v", got, want)
	}
}

// minTested is the number of lines from which a package needs tests of its own. Those of a caller
// do not replace them.
const minTested = 200

// countLines returns the number of lines of a package's files.
func countLines(t *testing.T, p listedPackage, files ...[]string) int {
	t.Helper()

	lines := 0
	for _, name := range slices.Concat(files...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}

		lines += bytes.Count(text, []byte("\n"))
	}

	return lines
}

// testedInAPI reports whether the tests of a package are in package api, as those of all operations
// are. A second binary with a whole server takes 13 s to link, and starts a server of its own.
func testedInAPI(name string) bool { return strings.HasPrefix(name, "internal/api/") }

// TestPackagesHaveTests checks that packages have tests next to their code.
func TestPackagesHaveTests(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 || slices.Contains(testOnly, name) ||
			strings.HasPrefix(name, "bench/") || testedInAPI(name) {
			continue
		}

		if lines := countLines(t, p, p.GoFiles); lines >= minTested {
			t.Errorf("%s has %d lines and no tests of its own", name, lines)
		}
	}
}

// A large package has more than largePackage lines. Its own tests have at least minTestRatio lines
// for each of them.
const (
	largePackage = 1000
	minTestRatio = 0.2
)

// underTested are the large packages whose own tests are too few: those of their callers test them.
// The list may only shrink.
var underTested = []string{"internal/backup", "internal/cli", "internal/oauth", "internal/pgproxy", "internal/s3api",
	"internal/storageapi", "internal/web"}

// TestLargePackagesAreTested checks that the rules of a large package are tested beside it, in
// seconds, and not by its callers.
func TestLargePackagesAreTested(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		lines := countLines(t, p, p.GoFiles)
		if lines <= largePackage || slices.Contains(testOnly, name) || strings.HasPrefix(name, "bench/") ||
			testedInAPI(name) {
			continue
		}

		tests := countLines(t, p, p.TestGoFiles, p.XTestGoFiles)
		ratio := float64(tests) / float64(lines)
		switch excused := slices.Contains(underTested, name); {
		case ratio < minTestRatio && !excused:
			t.Errorf("%s has %d lines and %d of own tests, want %.0f", name, lines, tests, minTestRatio*float64(lines))
		case ratio >= minTestRatio && excused:
			t.Errorf("%s has %d lines and %d of own tests: remove it from underTested", name, lines, tests)
		}
	}

	for _, name := range underTested {
		if p, ok := tree(t)[name]; !ok || countLines(t, p, p.GoFiles) <= largePackage {
			t.Errorf("%s is no large package: remove it from underTested", name)
		}
	}
}

// compiledTwice is the package with tests of both kinds, see [TestServersCompileOnce].
const compiledTwice = "internal/server"

// TestServersCompileOnce checks that a package with tests of unexported code has no other tests
// that start a server. For these go test compiles everything between the package and apitest once
// more, which takes up to 12 s. Such tests belong to package api, server or backup/integration.
func TestServersCompileOnce(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		if len(p.TestGoFiles) > 0 && slices.Contains(p.XTestImports, modulePath(t)+"/internal/api/apitest") &&
			name != compiledTwice {
			t.Errorf("%s has tests in the package and tests that start a server", name)
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", name)
		}
	}
}

func TestFilesHaveOneSubject(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}

			if n := bytes.Count(text, []byte("\n")); n > maxLines {
				t.Errorf("%s/%s has %d lines, more than %d", name, file, n, maxLines)
			}
		}
	}
}

// TestNoSkippedTests rejects calls that let a test pass without testing, and sleep, except on the
// simulated clock of synctest.
func TestNoSkippedTests(t *testing.T) {
	t.Parallel()

	err := filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		rejected := []string{".Skip" + "(", ".SkipNow" + "(", ".Skipf" + "("}
		if !bytes.Contains(text, []byte("synctest."+"Test(")) {
			rejected = append(rejected, "time."+"Sleep(")
		}

		for _, word := range rejected {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s contains %s", path, word)
			}
		}

		_, err = parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// templateUsers are the packages that execute templates, which can loop without end. They write
// them themselves: docs/decisions/templates.md.
var templateUsers = []string{"internal/enduser/rules", "internal/mail", "internal/web"}

func TestTemplatesAreOurs(t *testing.T) {
	t.Parallel()

	for path, p := range tree(t) {
		for _, imported := range p.Imports {
			isTemplate := imported == "text/template" || imported == "html/template"
			if isTemplate && !slices.Contains(templateUsers, path) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}
