package repository

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFunctions finds functions by their folders and the configuration, with their import maps.
func TestFunctions(t *testing.T) {
	t.Parallel()

	r, err := open(t, "[functions.hello]\nverify_jwt = false\nstatic_files = [\"./functions/hello/*.html\", \"./none/*\"]\n"+
		"[functions.off]\nenabled = false\n[functions.named]\nentrypoint = \"../src/fn.ts\"\nimport_map = \"./map.json\"\n"+
		"speed = 9\n[functions.gone]\n",
		map[string]string{
			"supabase/functions/hello/index.ts": "", "supabase/functions/hello/a.html": "",
			"supabase/functions/hello/b.css": "", "supabase/functions/hello/deno.json": "{}",
			"supabase/functions/off/index.ts": "", "supabase/map.json": "{}", "src/fn.ts": "",
			"supabase/functions/plain/index.js": "", "supabase/functions/import_map.json": "{}",
			"supabase/functions/_shared/index.ts": "", "supabase/functions/notes/readme.md": "",
			"supabase/functions/no name/index.ts": "",
		})
	if err != nil {
		t.Fatal(err)
	}

	closed := false
	want := []Function{
		{Name: "hello", Entry: "supabase/functions/hello/index.ts", Config: "supabase/functions/hello/deno.json",
			StaticFiles: []string{"supabase/functions/hello/a.html"}, VerifyJWT: &closed},
		{Name: "named", Entry: "src/fn.ts", ImportMap: "supabase/map.json"},
		{Name: "plain", Entry: "supabase/functions/plain/index.js", ImportMap: "supabase/functions/import_map.json"},
	}
	if diff := cmp.Diff(r.Functions, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}

	notes := []string{
		"supabase/config.toml:3: functions.hello.static_files names no file in the repository: ./none/*",
		"supabase/config.toml:9: functions.named.speed is not known, and not used",
		"supabase/config.toml:10: functions.gone has no supabase/functions/gone/index.ts, and is left out",
		"supabase/functions/no name: is left out: the name of a function has letters, digits, underscores and hyphens only, " +
			"and at most 63 characters",
		"supabase/functions/notes: has no index.ts, and is left out",
	}
	if diff := cmp.Diff(texts(r.Notes), notes); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// TestMissingFunction: the table of a function whose folder is gone stops nothing.
func TestMissingFunction(t *testing.T) {
	t.Parallel()

	root := write(t, map[string]string{ConfigFile: "[functions.a]\nentrypoint = \"./functions/a/index.ts\"\n" +
		"import_map = \"./functions/a/deno.json\"\n[functions.b]\n", "supabase/functions/b/index.ts": ""})
	all, notes, err := ReadFunctions(root, environment(nil))
	want := "supabase/config.toml:2: functions.a.entrypoint names no file in the repository, and the function is left out: " +
		"./functions/a/index.ts"
	if err != nil || len(all) != 1 || all[0].Name != "b" || len(notes) != 1 || notes[0].String() != want {
		t.Errorf("got %v, %v, %v", all, notes, err)
	}
}

// TestFunctionMistakes refuses files that are not there, or are links out of the repository.
func TestFunctionMistakes(t *testing.T) {
	t.Parallel()

	root := write(t, map[string]string{
		ConfigFile: "[functions.a]\nentrypoint = \"./functions/b.ts\"\n[functions.c]\nimport_map = \"../../map.json\"\n" +
			"[functions.d]\nverify_jwt = \"maybe\"\n",
		"supabase/functions/c/index.ts": "", "supabase/functions/d/index.ts": "", "supabase/functions/link/x": ""})
	outside := filepath.Join(t.TempDir(), "outside.ts")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "supabase/functions/link/index.ts")); err != nil {
		t.Fatal(err)
	}

	_, _, err := ReadFunctions(root, environment(nil))
	want := "supabase/config.toml:4: functions.c.import_map names no file in the repository: ../../map.json\n" +
		"supabase/config.toml:6: functions.d.verify_jwt must be true or false"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	if err := os.Remove(filepath.Join(root, ConfigFile)); err != nil {
		t.Fatal(err)
	}
	functions, notes, err := ReadFunctions(root, environment(nil))
	if err != nil || len(functions) != 2 || len(notes) != 1 || notes[0].File != "supabase/functions/link" {
		t.Errorf("got %v, %v, %v", functions, notes, err)
	}
}

// TestLinks: nothing outside the repository is read through its links, and no pipe.
func TestLinks(t *testing.T) {
	t.Parallel()

	secret := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(secret, []byte("AWS_SECRET_ACCESS_KEY = s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{ConfigFile, FunctionVariablesFile, ".env"} {
		root := write(t, map[string]string{"supabase/functions/a/index.ts": ""})
		if err := os.Symlink(secret, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}

		_, _, err := ReadFunctions(root, environment(nil))
		if name == FunctionVariablesFile {
			_, err = FunctionVariables(root)
		}
		if want := name + ": is no file in the repository that can be read"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if Contains(root, filepath.Join(root, name)) || !Contains(root, filepath.Join(root, "supabase")) {
			t.Errorf("%s: Contains follows no link", name)
		}
	}

	root := write(t, map[string]string{FunctionVariablesFile: "A=b", ".env": "VERIFY=false",
		ConfigFile: "[functions.a]\nverify_jwt = \"env(VERIFY)\"\n", "supabase/functions/a/index.ts": ""})
	got, err := FunctionVariables(root)
	if err != nil || got["A"] != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if all, _, err := ReadFunctions(root, environment(nil)); err != nil || len(all) != 1 || *all[0].VerifyJWT {
		t.Errorf("a variable of .env: got %v, %v", all, err)
	}
}

// TestVariableForms: a value in quotes may have several lines.
func TestVariableForms(t *testing.T) {
	t.Parallel()

	got := ParseVariables("\ufeffFIRST=a b\t# of an editor on Windows\r\nKEY=\"-----BEGIN\nabc=\n-----END\"\nB= 'x\ny'\n" +
		"C=\"a\\nb\\\"c\"\nEMPTY= # to be set\nCOLOR=#ff0000\n")
	want := map[string]string{"FIRST": "a b", "KEY": "-----BEGIN\nabc=\n-----END", "B": "x\ny", "C": "a\nb\"c",
		"EMPTY": "", "COLOR": "#ff0000"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestRenderFunctions keeps what a configuration says of functions, but for what the project knows.
func TestRenderFunctions(t *testing.T) {
	t.Parallel()

	files, notes := Render(Snapshot{Name: "a", Functions: map[string]bool{"closed": true, "open": false, "named": true},
		FunctionTables: map[string]map[string]any{"named": {"verify_jwt": false, "entrypoint": "../src/fn.ts",
			"static_files": []any{"./a.html"}}, "local": {"enabled": false}}})
	got, err := FunctionTables(write(t, files))
	want := map[string]map[string]any{"open": {"verify_jwt": false}, "local": {"enabled": false},
		"named": {"verify_jwt": true, "entrypoint": "../src/fn.ts", "static_files": []any{"./a.html"}}}
	if diff := cmp.Diff(got, want); diff != "" || err != nil || len(notes) > 0 {
		t.Errorf("%v, notes %v, (-got +want):\n%s", err, notes, diff)
	}
}
