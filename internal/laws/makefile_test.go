package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakeHelpIsComplete checks that each target of the Makefile that is no file is phony, and has
// the comment that make help prints in one of its groups.
func TestMakeHelpIsComplete(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}

	var phony, targets []string
	grouped := false
	for _, line := range strings.Split(string(text), "\n") {
		if names, ok := strings.CutPrefix(line, ".PHONY: "); ok {
			phony = strings.Fields(names)
		}

		grouped = grouped || strings.HasPrefix(line, "##@ ")
		if target := makeTarget.FindStringSubmatch(line); target != nil {
			targets = append(targets, target[1])

			if !strings.Contains(line, " ## ") || !grouped {
				t.Errorf("make %s has no comment for make help below a heading: ## and what it does", target[1])
			}
		}
	}

	slices.Sort(phony)
	if slices.Sort(targets); len(targets) == 0 || !slices.Equal(phony, targets) {
		t.Errorf("the Makefile has the targets %v, and declares as phony %v", targets, phony)
	}
}

var makeTarget = regexp.MustCompile(`^([a-z0-9-]+):( |$)`)
