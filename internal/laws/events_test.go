package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/event"
)

var (
	documentedType = regexp.MustCompile("(?m)^\\| `(socle\\.[a-z_.]+\\.v[0-9]+)` \\| ([^|]+) \\|")
	emittedType    = regexp.MustCompile(`\('(socle\.[a-z_.]+\.v[0-9]+)'::text,`)
)

// TestEventTypes compares the types of events in package event with their documents, and with the
// triggers that write facts.
func TestEventTypes(t *testing.T) {
	t.Parallel()

	known := map[string]string{}
	var facts []string
	for _, types := range [][]event.Type{event.RowTypes, event.Facts, event.WebhookTypes} {
		for _, e := range types {
			known[e.Name] = e.Doc
		}
	}
	for _, e := range event.Facts {
		facts = append(facts, e.Name)
	}

	documented := map[string]string{}
	for _, match := range documentedType.FindAllStringSubmatch(readText(t, "docs/events.md"), -1) {
		documented[match[1]] = match[2]
	}
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("docs/events.md differs from package event (-event +docs):\n%s", diff)
	}

	var emitted []string
	for _, match := range emittedType.FindAllStringSubmatch(readText(t, "internal/projectdb/schema.sql"), -1) {
		emitted = append(emitted, match[1])
	}
	slices.Sort(facts)
	slices.Sort(emitted)
	if diff := cmp.Diff(facts, slices.Compact(emitted)); diff != "" {
		t.Errorf("the triggers of facts differ from package event (-event +schema):\n%s", diff)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
