package pgcluster

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestNamesHideProjects(t *testing.T) {
	t.Parallel()

	id := uuid.MustParse("01912b8c-0000-7000-8000-00000000abcd")

	name := names.Database(id)
	if !strings.HasPrefix(name, "socle_") || len(name) != len("socle_")+32 {
		t.Errorf("got the name %s, want socle_ and 32 digits", name)
	}

	for _, part := range strings.Split(id.String(), "-") {
		if part != "0000" && strings.Contains(name, part) {
			t.Errorf("%s contains %s of the UUID", name, part)
		}
	}

	for _, n := range []string{name, names.OwnerLogin(id), names.DumpLogin(id), name + "_new_0011223344556677"} {
		if got, ok := names.ProjectOf(n); !ok || got != id {
			t.Errorf("%s: got project %v, %v, want %v", n, got, ok, id)
		}
	}
}

// TestProjectLogin: the watchdog sees the sessions of every project login.
func TestProjectLogin(t *testing.T) {
	t.Parallel()

	pattern, id := regexp.MustCompile(projectLogin), uuid.New()
	for _, l := range allLogins {
		if name := names.Login(id, l); !pattern.MatchString(name) {
			t.Errorf("%s does not match %s", name, pattern)
		}
	}
	if pattern.MatchString("doctor_exporter") || pattern.MatchString(names.Database(id)+"_other") {
		t.Errorf("%s matches other logins", pattern)
	}
}

func TestNamesWithoutKey(t *testing.T) {
	t.Parallel()

	names, err := NewNames(nil)
	if err != nil {
		t.Fatal(err)
	}

	id := uuid.MustParse("01912b8c-0000-7000-8000-00000000abcd")

	if got, want := names.Database(id), "socle_01912b8c00007000800000000000abcd"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, ok := names.ProjectOf(names.OwnerLogin(id)); !ok || got != id {
		t.Errorf("got project %v, %v, want %v", got, ok, id)
	}

	for _, n := range []string{"", "socle", "postgres", "socle_template_00112233", "socle_" + strings.Repeat("x", 32)} {
		if got, ok := names.ProjectOf(n); ok {
			t.Errorf("%q: got project %v, want none", n, got)
		}
	}

	if _, err := NewNames([]byte("short")); err == nil {
		t.Error("a key of 5 bytes: no error")
	}
}
