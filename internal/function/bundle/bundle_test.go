package bundle

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/repository"
)

const denoFolder = "../../../bin/deno"

// newBundler returns a bundler of a repository with certain files. Packages stay in the cache
// beside Deno for further runs.
func newBundler(t *testing.T, files map[string]string) *Bundler {
	t.Helper()

	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	folder, err := filepath.Abs(denoFolder)
	if err != nil {
		t.Fatal(err)
	}
	program := runtime.Find(folder)
	if program == "" {
		t.Fatal("Deno is not installed: make deno")
	}

	return &Bundler{Program: program, Root: root, Environ: append(os.Environ(),
		"DENO_DIR="+filepath.Join(folder, "cache"))}
}

// copyCache copies Deno's cache for a test that changes it, or needs one elsewhere.
func copyCache(t *testing.T) string {
	t.Helper()

	cache := t.TempDir()
	for _, name := range []string{"npm", "dl"} { // packages, and the bundler
		from := os.DirFS(filepath.Join(denoFolder, "cache", name))
		if err := os.CopyFS(filepath.Join(cache, name), from); err != nil {
			t.Fatal(err)
		}
	}

	return cache
}

// functions reads the functions of a bundler's repository.
func functions(t *testing.T, b *Bundler) map[string]repository.Function {
	t.Helper()

	all, _, err := repository.ReadFunctions(b.Root, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}

	byName := map[string]repository.Function{}
	for _, f := range all {
		byName[f.Name] = f
	}

	return byName
}

// bundleOf bundles a function.
func bundleOf(t *testing.T, b *Bundler, name string) Bundle {
	t.Helper()

	made, err := b.Bundle(t.Context(), functions(t, b)[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return made
}

// output runs code as the server would and returns what it prints.
func output(t *testing.T, b *Bundler, code []byte) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "function", "index.js")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(file), "main.js")
	if err := errors.Join(os.WriteFile(file, code, 0o600),
		os.WriteFile(program, []byte(`await import("./index.js");`), 0o600)); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), b.Program, "run", "--quiet", "--no-config", "--no-remote",
		"--no-npm", "-A", program)
	cmd.Env = append(b.Environ, "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}

	return strings.ReplaceAll(string(out), "file://"+filepath.Dir(file)+"/", "")
}

// TestBundle bundles shared code, packages, an import map, a deno.json and static files.
func TestBundle(t *testing.T) {
	t.Parallel()

	b := newBundler(t, map[string]string{
		"supabase/config.toml": `
			[functions.files]
			static_files = ["./functions/files/*.html", "./functions/_shared/texts"]
			[functions.mapped]
			import_map = "./functions/map.json"
			[functions.elsewhere]
			entrypoint = "../src/fn.ts"`,
		"supabase/functions/_shared/greet.ts":     "export const greet = (name: string): string => `hello ${name}`;",
		"supabase/functions/_shared/texts/de.txt": "hallo",
		"supabase/functions/shared/index.ts":      `import { greet } from "../_shared/greet.ts"; console.log(greet("shared"));`,
		"supabase/functions/npm/index.ts":         `import { nanoid } from "npm:nanoid@5.0.9"; console.log(nanoid().length);`,
		"supabase/functions/mapped/index.ts":      `import { greet } from "greeting"; console.log(greet("map"));`,
		"supabase/functions/map.json":             `{"imports": {"greeting": "./_shared/greet.ts"}}`,
		"supabase/functions/config/index.ts":      `import { nanoid } from "id"; console.log(typeof nanoid);`,
		"supabase/functions/config/deno.json":     `{"imports": {"id": "npm:nanoid@5.0.9"}}`,
		"supabase/functions/files/index.ts": `console.log(Deno.readTextFileSync(new URL("./a.html", import.meta.url)),
			Deno.readTextFileSync(new URL("../_shared/texts/de.txt", import.meta.url)));`,
		"supabase/functions/files/a.html":  "<p>ä</p>",
		"src/fn.ts":                        `console.log("elsewhere");`,
		"supabase/functions/main/index.ts": `if (import.meta.main) console.log("main");`,
		"package.json":                     `{"dependencies": {"nothing-of-this-name-exists": "1.0.0"}}`,
	})

	for name, want := range map[string]string{"shared": "hello shared\n", "npm": "21\n", "mapped": "hello map\n",
		"config": "function\n", "files": "<p>ä</p> hallo\n", "elsewhere": "elsewhere\n", "main": "main\n"} {
		if got := output(t, b, bundleOf(t, b, name).Code); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestStacks: errors name the lines of the sources, also below static files.
func TestStacks(t *testing.T) {
	t.Parallel()

	b := newBundler(t, map[string]string{
		"supabase/config.toml":                "[functions.fails]\nstatic_files = [\"./functions/fails/a.html\"]\n",
		"supabase/functions/fails/a.html":     "a",
		"supabase/functions/fails/index.ts":   "interface A { a: string }\n\nimport { fail } from \"../_shared/fail.ts\";\nfail();",
		"supabase/functions/_shared/fail.ts":  "// a comment\n\nexport function fail(): never {\n  throw new Error(\"no\");\n}",
		"supabase/functions/_shared/other.ts": "",
	})

	got := output(t, b, bundleOf(t, b, "fails").Code)
	for _, want := range []string{"supabase/functions/_shared/fail.ts:4:9", "supabase/functions/fails/index.ts:4:1"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s in it", got, want)
		}
	}
}

// TestPortable: the same files make the same bundle on another machine, without paths of either.
func TestPortable(t *testing.T) {
	t.Parallel()

	files := map[string]string{"supabase/functions/a/index.ts": `
		import ms from "npm:ms@2.1.3"; // CommonJS
		import { nanoid } from "npm:nanoid@5.0.9";
		console.log(ms("1s"), nanoid().length);`}
	one, two := newBundler(t, files), newBundler(t, files)
	first := bundleOf(t, one, "a")

	two.Environ = append(two.Environ, "DENO_DIR="+copyCache(t))
	second := bundleOf(t, two, "a")

	if first.Version() != second.Version() {
		t.Errorf("the bundles differ (-one +other):\n%s", cmp.Diff(string(first.Code), string(second.Code)))
	}
	for _, path := range []string{one.Root, filepath.Base(one.Root), "deno/cache"} {
		if strings.Contains(string(first.Code), path) {
			t.Errorf("the bundle has %s", path)
		}
	}
	if got := output(t, one, first.Code); got != "1000 21\n" {
		t.Errorf("got %q", got)
	}
}

// TestRemote: modules of other hosts are in the bundle, if their host may be imported from.
func TestRemote(t *testing.T) {
	t.Parallel()

	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/typescript")
		_, _ = w.Write([]byte("export function far(): string { return new Error().stack!; }"))
	}))
	defer host.Close()

	address := host.URL + "/far.ts"
	b := newBundler(t, map[string]string{
		"supabase/functions/a/index.ts": `import { far } from "` + address + `"; console.log(far());`})
	_, err := b.Bundle(t.Context(), functions(t, b)["a"])
	if err == nil || !strings.Contains(err.Error(), host.URL[7:]) {
		t.Errorf("closed host: got %v", err)
	}

	b.Hosts = []string{strings.TrimPrefix(host.URL, "http://")}
	b.Environ = append(b.Environ, "DENO_DIR="+copyCache(t))
	if got := output(t, b, bundleOf(t, b, "a").Code); !strings.Contains(got, "far.ts:1:") {
		t.Errorf("got %s", got)
	}
}

// TestFailures: problems have file and line.
func TestFailures(t *testing.T) {
	t.Parallel()

	b := newBundler(t, map[string]string{
		"supabase/config.toml":               "[functions.static]\nstatic_files = [\"../outside.txt\"]\n",
		"outside.txt":                        "",
		"supabase/functions/syntax/index.ts": "\nconst x: = 3;",
		"supabase/functions/gone/index.ts":   "import \"./gone.ts\";",
		"supabase/functions/bare/index.ts":   "\n\nimport \"left-pad\";",
		"supabase/functions/static/index.ts": "",
		"supabase/functions/up/index.ts":     `import t from "../../../../outside.txt" with { type: "text" }; console.log(t);`,
		"supabase/functions/link/index.ts":   `import t from "./t.txt" with { type: "text" }; console.log(t);`,
		"supabase/functions/env/index.ts":    `import t from "../.env" with { type: "text" }; console.log(t);`,
		"supabase/functions/.env":            "A=b",
		"supabase/functions/large/index.ts":  `export default "` + strings.Repeat("x", MaxSize) + `";`,
	})
	secret := filepath.Join(filepath.Dir(b.Root), "outside.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(b.Root, "supabase/functions/link/t.txt")); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"syntax": "supabase/functions/syntax/index.ts:2: SyntaxError: ",
		"gone":   "supabase/functions/gone/index.ts:1: Module not found ",
		"bare":   "supabase/functions/bare/index.ts:3: ",
		"static": "outside.txt: lies outside the folder of the functions",
		"up":     "supabase/functions/up/index.ts: imports a file that is not in the repository: ",
		"link":   "supabase/functions/link/index.ts: imports a file that is not in the repository: ",
		"env":    "supabase/functions/env/index.ts: imports supabase/functions/.env, which may have secrets",
		"large":  "supabase/functions/large/index.ts: makes a bundle of 20.0 MiB",
	} {
		_, err := b.Bundle(t.Context(), functions(t, b)[name])
		if _, ok := errors.AsType[repository.Problems](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", name, err, want)
		}
	}
}

// TestFirstBundle bundles at once with a program that fails like Deno without its bundler, if two
// install it at the same time.
func TestFirstBundle(t *testing.T) {
	t.Parallel()

	program := filepath.Join(t.TempDir(), "deno")
	const script = `#!/bin/sh
test -e "$0.done" && exit
mkdir "$0.installing" && touch "$0.done" && rmdir "$0.installing"
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}

	b := &Bundler{Program: program, Root: t.TempDir(), Environ: os.Environ()}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := b.runBundle(t.Context(), repository.Function{}, []string{"bundle"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestGlobs: an import with a variable part has files of the repository, and no others, whatever
// their type.
func TestGlobs(t *testing.T) {
	t.Parallel()

	imports := func(pattern, media string) string {
		return "const n = Deno.args[0] ?? \"a\"; console.log((await import(`" + pattern + "`, { with: { type: \"" + media +
			"\" } })).default);"
	}
	b := newBundler(t, map[string]string{
		"supabase/functions/texts/index.ts": imports("./${n}.json", "json"),
		"supabase/functions/texts/a.json":   `"hello"`,
		"supabase/functions/up/index.ts":    imports("../../../../outside/${n}.json", "json"),
		"supabase/functions/all/index.ts":   imports("../../../../outside/${n}", "text"),
		"supabase/functions/bytes/index.ts": imports("../../../../outside/${n}", "bytes"),
		"supabase/functions/call/index.ts":  `import x from "./call.cjs"; console.log(x);`,
		"supabase/functions/call/call.cjs":  "module.exports = (n) => require(`../../../../outside/${n}.json`);",
		"supabase/functions/link/index.ts":  imports("./far/${n}", "text"),
		"supabase/functions/env/index.ts":   imports("../_shared/${n}", "text"),
		"supabase/functions/_shared/.env":   "A=b",
	})
	outside := filepath.Join(filepath.Dir(b.Root), "outside")
	if err := errors.Join(os.MkdirAll(filepath.Join(outside, "deep"), 0o700),
		os.WriteFile(filepath.Join(outside, "deep", "a.json"), []byte(`"secret"`), 0o600),
		os.Symlink(outside, filepath.Join(b.Root, "supabase/functions/link/far"))); err != nil {
		t.Fatal(err)
	}

	if got := output(t, b, bundleOf(t, b, "texts").Code); got != "hello\n" {
		t.Errorf("a file of the repository: got %q", got)
	}

	all := functions(t, b)
	for _, name := range []string{"up", "all", "bytes", "call", "link", "env"} {
		made, err := b.Bundle(t.Context(), all[name])
		if _, ok := errors.AsType[repository.Problems](err); !ok && strings.Contains(string(made.Code), "secret") {
			t.Errorf("%s: got %v and a bundle, want a problem:\n%s", name, err, made.Code)
		}
	}
	for name, want := range map[string]string{"up": "imports a file that is not in the repository: ",
		"bytes": "imports a file that is not in the repository: ", "env": "imports supabase/functions/_shared/.env"} {
		if _, err := b.Bundle(t.Context(), all[name]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}
