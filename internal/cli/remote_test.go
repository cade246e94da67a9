package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"socle/internal/api/apitest"
)

// TestScripts runs the scripts of testdata: socle as people type it, against a server.
func TestScripts(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	testscript.Run(t, testscript.Params{Dir: "testdata/scripts", Setup: func(env *testscript.Env) error {
		env.Setenv("SOCLE_URL", a.URL)
		env.Setenv("TOKEN", a.Token)
		env.Setenv("EMAIL", a.Email)
		env.Setenv("PASSWORD", apitest.Password)
		env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
		env.Setenv("SOCLE_PROJECT", a.CreateProject("script"))
		return nil
	}})
}

// TestEveryOperationHasItsCommand: no two operations share a command, no command hides another, and every flag can be typed.
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
	for name, want := range map[string]string{"createFormField": "create-form-field", "getJWTSecret": "get-jwt-secret", "full_file_name": "full-file-name",
		"projectUUID": "project-uuid", "a": "a", "maxFileSize": "max-file-size"} {
		if got := kebab(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
