package server_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/config"
)

const root = "../.."

// TestManualHasTheSettings compares the manual's table of settings with the configuration.
func TestManualHasTheSettings(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}

	rows := regexp.MustCompile("(?m)^\\| `SOCLE_.*$").FindAllString(string(text), -1)
	var want []string
	for _, s := range config.Settings() {
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}

		want = append(want, fmt.Sprintf("| `%s` | `--%s` | %s | %s |", s.Name, s.Flag, value, s.Meaning))
	}

	if got, want := strings.Join(rows, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("docs/operations.md has\n%s\nwant\n%s", got, want)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)

// TestManualLinksLeadSomewhere checks that the links of all pages lead to existing files and
// headings.
func TestManualLinksLeadSomewhere(t *testing.T) {
	t.Parallel()

	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}

	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	followed := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}

			content, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}

			if m[2] != "" && !strings.Contains(headings(string(content)), m[2]+"\n") {
				t.Errorf("%s: %s has no heading %s", page, target, m[2])
			}

			followed++
		}
	}

	if followed == 0 {
		t.Error("no link was found")
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// headings returns the anchors of a page, one per line, each with its #.
func headings(page string) string {
	var b strings.Builder
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		b.WriteString("#" + strings.ReplaceAll(words, " ", "-") + "\n")
	}

	return b.String()
}
