package laws

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api"
)

// media is a body in the OpenAPI document.
type media map[string]struct{ Example any }

// TestEveryOperationHasExamples checks that readers of the document see an example of each request
// and response. The linter of the clients' tests checks them against their schemas.
func TestEveryOperationHasExamples(t *testing.T) {
	t.Parallel()

	var d struct {
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			OperationID string
			Tags        []string
			Parameters  []struct {
				Name     string
				Required bool
				Example  any
			}
			RequestBody struct{ Content media }
			Responses   map[string]struct{ Content media }
		}
		Components struct {
			Responses map[string]struct{ Content media }
		}
	}
	if err := json.Unmarshal(api.Document(), &d); err != nil {
		t.Fatal(err)
	}

	check := func(what string, content media) {
		for kind, m := range content {
			if m.Example == nil {
				t.Errorf("%s: no example of %s", what, kind)
			}
		}
	}

	chapters := map[string]bool{}
	for _, tag := range d.Tags {
		chapters[tag.Name] = tag.Description != ""
	}

	for name, response := range d.Components.Responses {
		check(name, response.Content)
	}

	for _, methods := range d.Paths {
		for _, o := range methods {
			if len(o.Tags) != 1 || !chapters[o.Tags[0]] {
				t.Errorf("%s: the tags %q are not one chapter with a description", o.OperationID, o.Tags)
			}

			for _, p := range o.Parameters {
				if p.Required && p.Example == nil {
					t.Errorf("%s: no example of %s", o.OperationID, p.Name)
				}
			}

			check(o.OperationID, o.RequestBody.Content)
			for status, response := range o.Responses {
				check(o.OperationID+" "+status, response.Content)
			}
		}
	}
}

var namedOperation = regexp.MustCompile("`([A-Z]+) (/[^`]*)`")

// TestOperationsWithFewStatuses checks that the operations that api.md names as such declare no
// other failures.
func TestOperationsWithFewStatuses(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join(root(t), "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, paragraph, _ := strings.Cut(string(text), "**Operations with few statuses.**")
	paragraph, _, _ = strings.Cut(paragraph, "\n\n")

	var d struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal(api.Document(), &d); err != nil {
		t.Fatal(err)
	}

	named := namedOperation.FindAllStringSubmatch(paragraph, -1)
	if len(named) == 0 {
		t.Error("the paragraph names no operation")
	}

	few := []string{"400", "401", "422", "429", "500"}
	for _, name := range named {
		o, ok := d.Paths[name[2]][strings.ToLower(name[1])]
		if !ok {
			t.Errorf("%s does not exist", name[0])
		}

		for status := range o.Responses {
			if status >= "400" && !slices.Contains(few, status) {
				t.Errorf("%s declares %s", name[0], status)
			}
		}
	}
}

// namedByTenants are the parameters of paths that take names which tenants choose.
var namedByTenants = []string{"{tableUUID}", "{fullTableName}", "{columnName}", "{constraintName}", "{indexName}",
	"{policyName}", "{triggerName}", "{enumName}", "{enumValue}", "{schema}",
	"{functionName}", "{fullFileName}", "{folder}"}

// TestNoWordInPlaceOfName checks that no path has a word where another of the same method has a
// name that a tenant chooses: a thing of that name could not be reached.
func TestNoWordInPlaceOfName(t *testing.T) {
	t.Parallel()

	var d struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(api.Document(), &d); err != nil {
		t.Fatal(err)
	}

	for word, methods := range d.Paths {
		for name, others := range d.Paths {
			for method := range methods {
				if others[method] != nil && takesPlace(strings.Split(word, "/"), strings.Split(name, "/")) {
					t.Errorf("%s %s takes the place of a name in %s", method, word, name)
				}
			}
		}
	}
}

// takesPlace reports whether a path matches another one by a word in the place of a tenant's name.
func takesPlace(path, other []string) bool {
	if len(path) != len(other) {
		return false
	}

	found := false
	for i, part := range path {
		switch {
		case part == other[i], strings.HasPrefix(part, "{") && strings.HasPrefix(other[i], "{"):
		case strings.HasPrefix(part, "{") || !strings.HasPrefix(other[i], "{"):
			return false
		default:
			found = found || slices.Contains(namedByTenants, other[i])
		}
	}

	return found
}
