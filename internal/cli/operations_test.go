package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

const guides = "../../docs/guides"

// guideCommands matches the commands of a guide.
var guideCommands = regexp.MustCompile("(?ms)^```sh$\n(.*?)^```$")

// scriptCommands are the additional commands of the scripts.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// call ARGS... runs socle in the process of the test. "exec socle" starts a process, which
	// costs half a second of CPU under the race detector.
	"call": func(ts *testscript.TestScript, neg bool, args []string) {
		if status := Run(context.Background(), args, environ(ts), ts.Stdout(), ts.Stderr()); status == 0 == neg {
			ts.Fatalf("socle %v: status %d", args, status)
		}
	},
	// await PATTERN ARGS... repeats a command until its output matches the pattern.
	"await": func(ts *testscript.TestScript, _ bool, args []string) {
		await(ts, args[0], func() []byte {
			var out bytes.Buffer
			if Run(context.Background(), args[1:], environ(ts), &out, ts.Stderr()) != 0 {
				return nil
			}
			return out.Bytes()
		})
	},
	// awaitfile PATTERN FILE waits until a file matches the pattern.
	"awaitfile": func(ts *testscript.TestScript, _ bool, args []string) {
		await(ts, args[0], func() []byte {
			text, _ := os.ReadFile(ts.MkAbs(args[1])) // none of a file that does not exist yet
			return text
		})
	},
	// guide NAME writes the commands of a guide to guide.sh.
	"guide": func(ts *testscript.TestScript, _ bool, args []string) {
		text, err := os.ReadFile(filepath.Join(guides, args[0]))
		ts.Check(err)

		var script strings.Builder
		for _, m := range guideCommands.FindAllSubmatch(text, -1) {
			script.Write(m[1])
		}
		ts.Check(os.WriteFile(ts.MkAbs("guide.sh"), []byte(script.String()), 0o600))
	},
	// uuid NAME sets a variable to the first UUID in the output of the last command.
	"uuid": func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv(args[0], regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).
			FindString(ts.ReadFile("stdout")))
	},
}

// await waits until the text that a function returns matches a pattern.
func await(ts *testscript.TestScript, pattern string, text func() []byte) {
	p, deadline := regexp.MustCompile("(?m)"+pattern), time.Now().Add(3*time.Minute)
	for {
		out := text()
		if p.Match(out) {
			return
		}

		if time.Now().After(deadline) {
			ts.Fatalf("still not: %s", out)
		}

		<-time.After(50 * time.Millisecond)
	}
}

// environ returns the environment of a command in a script.
func environ(ts *testscript.TestScript) []string {
	var all []string
	for _, name := range []string{
		"HOME", "XDG_CONFIG_HOME", "SOCLE_URL", "SOCLE_TOKEN", "SOCLE_PROJECT", "SOCLE_PASSPHRASE", "PATH", "DENO_DIR",
		denoBin,
	} {
		if v := ts.Getenv(name); v != "" {
			all = append(all, name+"="+v)
		}
	}

	return all
}

// TestScripts runs the scripts of testdata against a server.
func TestScripts(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	testscript.Run(t,
		testscript.Params{Dir: "testdata/scripts", Cmds: scriptCommands, Setup: func(env *testscript.Env) error {
			env.Setenv("SOCLE_URL", a.URL)
			env.Setenv("TOKEN", a.Token)
			env.Setenv("EMAIL", a.Email)
			env.Setenv("PASSWORD", apitest.Password)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			env.Setenv("SOCLE_PROJECT", a.CreateProject("script"))
			env.Setenv(denoBin, os.Getenv(denoBin))
			env.Setenv("DENO_DIR", filepath.Join(os.Getenv(denoBin), "cache"))
			env.Setenv("ELSEWHERE", pgtest.URL(t)) // a database that is no project

			return nil
		}})
}

// TestEveryOperationHasItsCommand: commands are unique per operation, and all flags are valid and
// unique.
func TestEveryOperationHasItsCommand(t *testing.T) {
	t.Parallel()

	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}

	root := &cobra.Command{Use: "socle"}
	env := environment{}
	root.AddCommand(files(env), auditLog(env), login(env), logout(env), newExplain(env), gen(env))

	if err := addRemote(root, env, ""); err != nil {
		t.Fatal(err)
	}

	seen := map[string]string{}
	for _, o := range d.operations("") {
		verb, noun := words(o.ID)
		path := strings.Fields(cmp.Or(handWritten[o.ID], noun+" "+verb))

		command := strings.Join(path, " ")
		if other, ok := seen[command]; ok {
			t.Errorf("socle %s is both %s and %s", command, other, o.ID)
		}

		seen[command] = o.ID
		if c, rest, err := root.Find(path); err != nil || len(rest) > 0 || !c.Runnable() {
			t.Errorf("%s: there is no command socle %s", o.ID, command)
		}
		if len(path) == 2 && findNoun(path[0]) == nil {
			t.Errorf("%s: the noun %s has no help", o.ID, path[0])
		}

		r := newRemote(d, o, verb, environment{})
		flags := map[string]bool{"url": true, "project": true, "json": true, "help": true, "body": true, "output": true,
			"all": true, "yes": true, "wait": true}
		for _, name := range append(slices.Clone(r.members), names(r.queries)...) {
			flag := r.flagName(name)
			if flags[flag] || strings.Trim(flag, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("%s: the flag --%s is taken or can't be typed", o.ID, flag)
			}
			flags[flag] = true
		}
	}

	for id := range renamed {
		if !slices.Contains(slices.Collect(maps.Values(seen)), id) {
			t.Errorf("%s is renamed, but there is no such operation", id)
		}
	}
}

// TestExamples: every noun's example is a command with flags that exist.
func TestExamples(t *testing.T) {
	t.Parallel()

	root := &cobra.Command{Use: "socle"}
	env := environment{}
	root.AddCommand(files(env), auditLog(env), gen(env))

	if err := addRemote(root, env, ""); err != nil {
		t.Fatal(err)
	}

	for _, n := range nouns {
		for line := range strings.Lines(n.example) {
			words := strings.Fields(line)[1:]
			c, _, err := root.Find(words)
			if err != nil || c.HasSubCommands() || words[0] != n.name {
				t.Errorf("%s: %q is no command, %v", n.name, line, err)
				continue
			}

			for _, w := range words {
				if name, ok := strings.CutPrefix(w, "--"); ok && c.Flags().Lookup(strings.Split(name, "=")[0]) == nil {
					t.Errorf("%s: socle %s has no flag %s", n.name, c.Name(), w)
				}
			}
		}
	}
}

// TestExamplesOfOperations: the example of an operation is a command line that its command takes,
// and every flag that takes JSON has its form in the help.
func TestExamplesOfOperations(t *testing.T) {
	t.Parallel()

	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}

	for _, o := range d.operations("") {
		verb, _ := words(o.ID)
		r := newRemote(d, o, verb, environment{})
		cmd := r.command()
		for name, v := range r.flags {
			if form := "--" + r.flagName(name) + " takes JSON: "; v.kind == kindJSON && v.schema.Type != nil &&
				!strings.Contains(cmd.Long, form) {
				t.Errorf("%s: the help does not say that %s", o.ID, form)
			}
		}

		args := r.exampleArgs()
		if args == nil {
			continue
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Errorf("%s: %q: %v", o.ID, args, err)
		}
		if err := r.checkArgs(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %q: %v", o.ID, args, err)
		}
		if err := r.checkRequired(cmd, nil); err != nil {
			t.Errorf("%s: %q: %v", o.ID, args, err)
		}
	}
}

func names(parameters []parameter) []string {
	found := map[string]bool{}
	for _, p := range parameters {
		found[p.Name] = true
	}

	return slices.Sorted(maps.Keys(found))
}

func TestAccountFile(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ environ, want string }{
		{"HOME=/home/ada", "/home/ada/.config/socle/login.json"},
		{"HOME=/home/ada XDG_CONFIG_HOME=/etc/ada", "/etc/ada/socle/login.json"},
		{"APPDATA=/roaming HOME=/home/ada", "/roaming/socle/login.json"},
		{"", ""},
	} {
		got, err := environment{environ: strings.Fields(test.environ)}.accountFile()
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("accountFile with %q = %q, %v, want %q", test.environ, got, err, test.want)
		}
	}
}

// TestDamagedAccount: a file that is no JSON, as after a loss of power, is named with what to do.
func TestDamagedAccount(t *testing.T) {
	t.Parallel()

	config := t.TempDir()
	e := environment{environ: []string{"XDG_CONFIG_HOME=" + config}}
	name, err := e.accountFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
		t.Fatal(err)
	}

	err = e.withAccount(func(*account) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), name+" is damaged: remove it") {
		t.Errorf("got %v", err)
	}

	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := e.withAccount(func(a *account) error { a.URL = "http://a"; return nil }); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{"createFormField": "create-form-field", "getJWTSecret": "get-jwt-secret",
		"full_file_name": "full-file-name", "projectUUID": "project-uuid", "a": "a", "maxFileSize": "max-file-size"} {
		if got := kebab(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
