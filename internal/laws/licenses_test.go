package laws

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licensesFile has the licenses of everything in the binary, for socle licenses.
const licensesFile = "internal/cli/licenses.txt.gz"

// TestLicensesAreCurrent compares the licenses that the binary prints with those of its modules. A
// license that allowedLicenses does not know is an error.
func TestLicensesAreCurrent(t *testing.T) {
	t.Parallel()

	goldenGzip(t, licensesFile, licenses(t))
}

// linkedPackage is a package of the binary, as go list describes it.
type linkedPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedPackages returns the packages of the binary on all systems, apart from ours.
func linkedPackages(t *testing.T) (all []linkedPackage) {
	t.Helper()

	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/socle")
		cmd.Dir, cmd.Env = root(t), append(os.Environ(), "GOOS="+system, "GOARCH=amd64", noRace, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}

		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p linkedPackage
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}

			if p.Standard || !p.Module.Main {
				all = append(all, p)
			}
		}
	}

	return all
}

// licenseName matches files with a license, noticeName those that belong to one.
var (
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// licenseFiles returns the license files in dir and its parents up to top.
func licenseFiles(t *testing.T, dir, top string) (files []string) {
	t.Helper()

	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}

		for _, e := range entries {
			matches := licenseName.MatchString(e.Name()) || noticeName.MatchString(e.Name())
			if e.Type().IsRegular() && matches && filepath.Ext(e.Name()) != ".go" {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}

		if dir == top {
			return files
		}
		dir = filepath.Dir(dir)
	}
}

// licenseList collects license texts with the software that they are for.
type licenseList struct {
	texts map[string]map[string]bool // software by text
	kinds map[string]map[string]bool // kinds of licenses by software
}

// add adds a text and returns the kinds of licenses in it.
func (l *licenseList) add(software, text string) []string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	kinds := licenseKinds(text)

	if l.texts[text] == nil {
		l.texts[text] = map[string]bool{}
	}
	l.texts[text][software] = true

	if l.kinds[software] == nil {
		l.kinds[software] = map[string]bool{}
	}
	for _, kind := range kinds {
		l.kinds[software][kind] = true
	}

	return kinds
}

// print returns the software with its kinds of licenses, then each text once.
func (l *licenseList) print() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "Socle contains the software and data listed here, under the licenses below.\n"+
		"go mod download MODULE@VERSION fetches the source code of a module.\n\n")

	for _, software := range slices.Sorted(maps.Keys(l.kinds)) {
		fmt.Fprintf(&b, "%s: %s\n", software, strings.Join(slices.Sorted(maps.Keys(l.kinds[software])), ", "))
	}

	users := func(text string) string { return strings.Join(slices.Sorted(maps.Keys(l.texts[text])), "\n") }
	for _, text := range slices.SortedFunc(maps.Keys(l.texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(users(a), users(b)), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), users(text), text)
	}

	return b.Bytes()
}

// licenses returns the licenses of all that others made in the binary.
func licenses(t *testing.T) []byte {
	t.Helper()

	l := licenseList{texts: map[string]map[string]bool{}, kinds: map[string]map[string]bool{}}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}

	const goLibrary = "Go, its runtime and standard library"
	goroot := strings.TrimSpace(string(out))
	seen := map[string]bool{}
	for _, p := range linkedPackages(t) {
		software, dir, top := goLibrary, goroot, goroot
		if !p.Standard {
			software, dir, top = p.Module.Path+" "+p.Module.Version, p.Dir, p.Module.Dir
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true

		for _, file := range licenseFiles(t, dir, top) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			kinds := l.add(software, string(text))
			if len(kinds) == 0 && licenseName.MatchString(filepath.Base(file)) {
				t.Errorf("%s has a license that is not allowed, or not known: read it, see allowedLicenses", file)
			}
		}
		if len(l.kinds[software]) == 0 {
			t.Errorf("%s has no license that is known", software)
		}
	}

	for _, file := range []string{"LICENSES.md", "console/dist/licenses.txt"} {
		copied, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}

		for _, section := range strings.Split(string(copied), "\n## ")[1:] {
			name, text, _ := strings.Cut(section, "\n")
			if len(l.add(name, text)) == 0 {
				t.Errorf("%s: %s has a license that is not allowed, or not known", file, name)
			}
		}
	}

	return l.print()
}

// allowedLicenses are the licenses that software in the binary may have, by a phrase of each in
// normalized text.
var allowedLicenses = []struct {
	kind   string
	phrase *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`apache license version 2\.0, january 2004`)},
	{"MPL-2.0", regexp.MustCompile(`^mozilla public license,? version 2\.0`)},
	{"MIT", regexp.MustCompile(`permission is hereby granted, free of charge, to any person obtaining a copy of this software`)},
	{"BSD", regexp.MustCompile(`redistribution and use in source and binary forms, with or without modification, are permitted`)},
	{"CC0-1.0", regexp.MustCompile(`cc0 1\.0 universal`)},
	{"Unlicense", regexp.MustCompile(`this is free and unencumbered software released into the public domain`)},
	{"ISC", regexp.MustCompile(`permission to use, copy, modify, and(/or)? distribute this software for any purpose with or without`)},
}

var copyleft = regexp.MustCompile(`gnu (lesser |affero )?general public license`)

// licenseKinds returns the kinds of the licenses in a text, none if it is not allowed or unknown.
func licenseKinds(text string) (kinds []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " ")) // with literals alone regexp takes the fast path
	for _, l := range allowedLicenses {
		if l.phrase.MatchString(text) {
			kinds = append(kinds, l.kind)
		}
	}

	if copyleft.MatchString(text) && !slices.Contains(kinds, "MPL-2.0") { // whose text names it
		return nil
	}

	return kinds
}

func TestLicenseKinds(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"The MIT License\n\nPermission is hereby granted, free of\ncharge, to any person obtaining a copy of this software": "MIT",
		"Mozilla Public License Version 2.0\n\"Secondary License\" means the GNU General Public License":                    "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE": "",
		"Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n" +
			"or under the GNU Affero General Public License": "",
		"Creative Commons Legal Code\n\nCC0 1.0 Universal": "CC0-1.0",
		"All rights reserved.":                             "",
	} {
		if got := strings.Join(licenseKinds(text), ", "); got != want {
			t.Errorf("licenseKinds(%q) = %q, want %q", text, got, want)
		}
	}
}
