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
	writtenType    = regexp.MustCompile(`(?m)^\t([A-Z]\w+) += "(socle\.[a-z_.]+\.v[0-9]+)"$`)
	emittedType    = regexp.MustCompile(`\('(socle\.[a-z_.]+\.v[0-9]+)'::text,`)
)

// TestEventTypes compares the types of events in package event with their documents, and the facts
// with the triggers and packages that write them.
func TestEventTypes(t *testing.T) {
	t.Parallel()

	known := map[string]string{}
	var facts []string
	for _, types := range [][]event.Type{event.RowTypes, event.QueueTypes, event.Facts, event.WebhookTypes} {
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
	writers := readText(t, "internal/backup/make.go") + readText(t, "internal/backup/proofs.go") +
		readText(t, "internal/event/fact.go")
	for _, match := range writtenType.FindAllStringSubmatch(readText(t, "internal/event/types.go"), -1) {
		if slices.Contains(facts, match[2]) && regexp.MustCompile(`\b`+match[1]+`\b[,})]`).MatchString(writers) {
			emitted = append(emitted, match[2])
		}
	}
	slices.Sort(facts)
	slices.Sort(emitted)
	if diff := cmp.Diff(facts, slices.Compact(emitted)); diff != "" {
		t.Errorf("facts differ from those that are written (-event +written):\n%s", diff)
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
