package cli

import (
	"bytes"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"socle/internal/api/apitest"
)

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
		pattern, deadline := regexp.MustCompile(args[0]), time.Now().Add(time.Minute)
		for {
			var out bytes.Buffer
			if Run(context.Background(), args[1:], environ(ts), &out, ts.Stderr()) == 0 && pattern.Match(out.Bytes()) {
				return
			}

			if time.Now().After(deadline) {
				ts.Fatalf("still not: %s", out.Bytes())
			}

			<-time.After(50 * time.Millisecond)
		}
	},
	// uuid NAME sets a variable to the first UUID in the output of the last command.
	"uuid": func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv(args[0], regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).
			FindString(ts.ReadFile("stdout")))
	},
}

// environ returns the environment of a command in a script.
func environ(ts *testscript.TestScript) []string {
	var all []string
	for _, name := range []string{
		"HOME", "XDG_CONFIG_HOME", "SOCLE_URL", "SOCLE_TOKEN", "SOCLE_PROJECT", "SOCLE_PASSPHRASE",
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

	seen := map[string]string{}
	for _, o := range d.operations() {
		verb, noun := o.words()
		if other, ok := seen[noun+" "+verb]; ok {
			t.Errorf("socle %s %s is both %s and %s", noun, verb, other, o.ID)
		}

		seen[noun+" "+verb] = o.ID
		r := newRemote(d, o, verb, environment{})
		flags := map[string]bool{"url": true, "project": true, "json": true, "help": true, "body": true, "output": true}
		for _, name := range append(slices.Clone(r.members), names(r.queries)...) {
			if flags[kebab(name)] || strings.Trim(kebab(name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("%s: the flag --%s is taken or can't be typed", o.ID, kebab(name))
			}
			flags[kebab(name)] = true
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

func TestSplit(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{"createFormField": "create-form-field", "getJWTSecret": "get-jwt-secret",
		"full_file_name": "full-file-name", "projectUUID": "project-uuid", "a": "a", "maxFileSize": "max-file-size"} {
		if got := kebab(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
