package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// example is a block of commands in the README with its expected output.
type example struct{ commands, kind, prints string }

var (
	fencedBlock = regexp.MustCompile("(?ms)^```(sh|json|text)\n(.*?)^```$")
	chapter     = regexp.MustCompile(`(?ms)^## First five minutes$.*?^## `)
)

const readmeServer = "S=http://127.0.0.1:8080\n"

// TestREADME runs the README's first five minutes in one shell, and compares the output.
func TestREADME(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("curl"); err != nil { // otherwise the README's wait loop never ends
		t.Fatal("the README needs curl, and says so: install it")
	}

	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}

	examples := examplesOf(t, chapter.FindString(string(text)))
	script := scriptOf(examples)

	a := apitest.Empty(t)

	if strings.Count(script, readmeServer) != 1 {
		t.Fatalf("the README does not say %q once", readmeServer)
	}

	bash := exec.CommandContext(t.Context(), "bash", "-c",
		strings.Replace(script, readmeServer, "S="+a.URL+"\n", 1))
	bash.Dir = t.TempDir()

	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("bash: %v\n%s", err, out)
	}

	compareExamples(t, "the README", examples, string(out))
}

const boundary = "\n--- end of an example ---\n"

// scriptOf returns the commands of all examples, with a boundary after the output of each.
func scriptOf(examples []example) string {
	var script strings.Builder
	for _, e := range examples {
		script.WriteString(e.commands + "printf '" + strings.ReplaceAll(boundary, "\n", `\n`) + "'\n")
	}

	return script.String()
}

// compareExamples compares the output of a script with the expected outputs on a page.
func compareExamples(t *testing.T, page string, examples []example, out string) {
	t.Helper()

	printed := strings.Split(out, boundary)
	if len(printed) != len(examples)+1 {
		t.Fatalf("%s: got the output of %d examples, want %d:\n%s", page, len(printed)-1, len(examples), out)
	}

	for i, e := range examples {
		if diff := e.compare(t, printed[i]); diff != "" {
			t.Errorf("after\n%s\n%s differs from the output (-page +output):\n%s", e.commands, page, diff)
		}
	}
}

// examplesOf returns the examples of a text: each block of commands with the block of output after
// it, if any.
func examplesOf(t *testing.T, text string) []example {
	t.Helper()

	var all []example
	for _, m := range fencedBlock.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "sh":
			all = append(all, example{commands: m[2]})
		case len(all) == 0 || all[len(all)-1].kind != "":
			t.Fatalf("no commands print this:\n%s", m[2])
		default:
			all[len(all)-1].kind, all[len(all)-1].prints = m[1], m[2]
		}
	}

	if len(all) == 0 {
		t.Fatal("the README has no examples")
	}

	return all
}

func (e example) compare(t *testing.T, printed string) string {
	t.Helper()

	if e.kind != "json" {
		return cmp.Diff(e.prints, printed)
	}

	want := jsonValues(t, e.prints)
	return cmp.Diff(want, maskValues(want, any(jsonValues(t, printed))))
}

// jsonValues parses the JSON values of a text.
func jsonValues(t *testing.T, text string) []any {
	t.Helper()

	all := []any{}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v in\n%s", err, text)
		}

		all = append(all, v)
	}
}

// maskValues returns the printed value with … wherever the README has …
func maskValues(want, printed any) any {
	switch want := want.(type) {
	case string:
		if want == "…" && printed != nil && printed != "" {
			return want
		}
	case []any:
		if items, ok := printed.([]any); ok && len(items) == len(want) {
			for i := range items {
				items[i] = maskValues(want[i], items[i])
			}
		}
	case map[string]any:
		if members, ok := printed.(map[string]any); ok {
			for name, v := range members {
				members[name] = maskValues(want[name], v)
			}
		}
	}

	return printed
}
