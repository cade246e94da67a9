package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/repository"
)

// checkModules fails with [repository.Problems] unless all local modules of a function lie in the
// repository, links followed. It may be a stranger's, whose code must not carry off other files of
// this machine.
func (b *Bundler) checkModules(ctx context.Context, f repository.Function, options []string) error {
	text, err := b.run(ctx, f, append(append([]string{"info", "--json"}, options...), f.Entry)...)
	if err != nil {
		return err
	}

	var graph struct {
		Modules []struct {
			Specifier, Local string
			Dependencies     []dependency
		}
	}
	if err := json.Unmarshal(text, &graph); err != nil {
		return fmt.Errorf("read the modules of %s: %w", f.Entry, err)
	}

	var problems repository.Problems
	for _, m := range graph.Modules {
		if !strings.HasPrefix(m.Specifier, "file:") || m.Local == "" {
			continue
		}

		for _, d := range m.Dependencies {
			if d.Code.Error != "" {
				text, _, _ := strings.Cut(d.Code.Error, "\n")
				problems = append(problems, repository.Remark{File: b.display(m.Specifier),
					Line: d.Code.Span.Start.Line + 1, Text: text})
			}
		}

		if text := b.checkFile(m.Local); text != "" {
			problems = append(problems, repository.Remark{File: f.Entry, Text: text})
		}
	}

	if len(problems) > 0 {
		return problems
	}

	return nil
}

// header matches the line that the bundler writes before each module: its path from the
// repository's folder, or its URL.
var header = regexp.MustCompile(`(?m)^// (\S.*)$`)

// checkBundle fails with [repository.Problems] unless all local files in a bundle lie in the
// repository or in Deno's cache of packages. Of an import such as import(`./texts/${name}.json`),
// Deno lists no modules, and the bundler takes every file that matches, in all folders below.
func (b *Bundler) checkBundle(f repository.Function, code []byte) error {
	var problems repository.Problems
	for _, m := range header.FindAllSubmatch(code, -1) {
		name := string(m[1])
		if strings.Contains(name, "://") {
			continue
		}

		file := filepath.FromSlash(name)
		if !filepath.IsAbs(file) {
			file = filepath.Join(b.root, file)
		}
		if text := b.checkFile(file); text != "" && !repository.Contains(b.cache, file) {
			problems = append(problems, repository.Remark{File: f.Entry, Text: text})
		}
	}

	if len(problems) > 0 {
		return problems[:min(len(problems), maxProblems)]
	}

	return nil
}

// checkFile returns why a function can't have a local file in its bundle; "": it can.
func (b *Bundler) checkFile(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "" // the bundler names it
	}

	inside, ok := b.inside(real)
	switch {
	case !ok:
		return "imports a file that is not in the repository: " + real
	case strings.HasPrefix(filepath.Base(inside), ".env"):
		return "imports " + inside + ", which may have secrets: functions read them by Deno.env.get"
	}

	return ""
}

// dependency is an import, as Deno describes it.
type dependency struct {
	Code struct {
		Error string
		Span  struct{ Start struct{ Line int } } // from 0
	}
}

// inside returns the path of a file from the repository's folder, with slashes. It reports false
// for one elsewhere.
func (b *Bundler) inside(file string) (string, bool) {
	name, err := filepath.Rel(b.root, file)
	if err != nil || !filepath.IsLocal(name) {
		return "", false
	}

	return filepath.ToSlash(name), true
}

var (
	place    = regexp.MustCompile(`^\s+at (\S+?):(\d+):(\d+)$`)
	excerpt  = regexp.MustCompile(`^\s*\d*\s*\|`)
	cause    = regexp.MustCompile(`^\s+\d+: (.*)$`)
	unloaded = regexp.MustCompile(`^Do not know how to load path: (?:deno:)?(\S+)$`)
)

// failure returns what Deno says of a function's files as problems with file and line.
func (b *Bundler) failure(f repository.Function, text string) error {
	var problems repository.Problems
	var current *repository.Remark
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "Stack backtrace:") {
			break
		}

		switch message, isError := strings.CutPrefix(line, "error: "); {
		case message == "bundling failed":
			current = nil
		case isError:
			if m := unloaded.FindStringSubmatch(message); m != nil {
				message = "can't load " + m[1]
			}
			problems = append(problems, repository.Remark{File: f.Entry, Text: message})
			current = &problems[len(problems)-1]
		case current == nil, excerpt.MatchString(line):
		case place.MatchString(line):
			m := place.FindStringSubmatch(line)
			current.File = b.display(m[1])
			current.Line, _ = strconv.Atoi(m[2])
			current = nil
		case cause.MatchString(line):
			current.Text = strings.TrimSuffix(current.Text, ".") + ": " + cause.FindStringSubmatch(line)[1]
		}
	}

	if len(problems) == 0 {
		return fmt.Errorf("deno: %s", strings.TrimSpace(text))
	}

	return slices.CompactFunc(problems, func(a, b repository.Remark) bool { return a == b })
}

// display returns how a message names a module: from the repository's folder, if it is there.
func (b *Bundler) display(specifier string) string {
	file, ok := strings.CutPrefix(specifier, "file://")
	if !ok {
		return specifier
	}
	if inside, ok := b.inside(filepath.FromSlash(file)); ok {
		return inside
	}

	return file
}
