// Package repository reads the folder of an application as Supabase's tools lay it out, and plans
// what a project lacks of it: settings, buckets, migrations and rows.
//
//	supabase/config.toml    settings of a project
//	supabase/migrations/    files of the schema
//	supabase/seed.sql       rows of a new database
//	supabase/functions/     edge functions, see package function/bundle
//
// Everything is checked before the first request: [Open] reports each mistake with its file and
// line, so a broken repository changes nothing. Keys without a counterpart are noted, unless their
// value asks for nothing. The package calls no server. The cli package does, and it reads the
// migrations.
package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places in a repository, from its folder.
const (
	Folder     = "supabase"
	ConfigFile = Folder + "/config.toml"
	Migrations = Folder + "/migrations"
	roles      = Folder + "/roles.sql"
	schemas    = Folder + "/schemas"
)

// Remark is a sentence about a place in a repository.
type Remark struct {
	File string `json:"file"`           // from the repository's folder, with slashes
	Line int    `json:"line,omitempty"` // from 1; 0: the whole file
	Key  string `json:"key,omitempty"`  // in the configuration, such as auth.site_url
	Text string `json:"text"`           // continues the key, if there is one
}

// String returns the place and the sentence in one line.
func (r Remark) String() string {
	place := r.File
	if r.Line > 0 {
		place = fmt.Sprintf("%s:%d", r.File, r.Line)
	}

	return strings.TrimSuffix(place+": "+strings.TrimSpace(r.Key+" "+r.Text), ": ")
}

// Problems are the mistakes in a repository that can't be pushed.
type Problems []Remark

// Error returns a line for each mistake.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, r := range p {
		lines[i] = r.String()
	}

	return strings.Join(lines, "\n")
}

// ErrNone is the failure for a folder without a repository.
var ErrNone = errors.New("there is no folder " + Folder)

// Repository is a folder whose files are free of mistakes.
type Repository struct {
	Root   string // absolute path
	Config Config
	Seeds  []Seed   // in the order in which they run
	Notes  []Remark // what a project can't have, by file and line

	Functions []Function // by name
}

// Name returns a new project's name: the configuration's, or the folder's.
func (r *Repository) Name() string {
	if r.Config.Name != "" {
		return r.Config.Name
	}
	return filepath.Base(r.Root)
}

// Path returns the path of a file in the repository.
func (r *Repository) Path(name string) string { return filepath.Join(r.Root, filepath.FromSlash(name)) }

// Find returns the nearest folder, from a folder upwards, that has a repository. It fails with
// [ErrNone] if there is none.
func Find(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}

	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(filepath.Join(at, Folder))
		if err == nil && info.IsDir() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%w in %s or above it", ErrNone, folder)
		}
	}
}

// Open reads a repository. lookup returns an environment variable; files .env of the repository add
// to it. It fails with [Problems] if something in the repository is wrong.
func Open(root string, lookup func(name string) (string, bool)) (*Repository, error) {
	r := &Repository{Root: root}
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer files.Close()

	d, err := readConfig(files, lookup)
	if err != nil {
		return nil, err
	}

	r.Config = readSettings(d, files)
	r.readSeeds(d, files)
	r.Functions = readFunctions(d, files)
	d.noteRest()
	r.noteSchemas(d)
	if _, err := files.Stat(roles); err == nil {
		d.notes = append(d.notes, Remark{File: roles, Text: "is left out: a project has no roles of its own"})
	}

	if len(d.problems) > 0 {
		return nil, Problems(sorted(d.problems))
	}

	r.Notes = sorted(d.notes)
	return r, nil
}

// CheckSecrets fails with [Problems] for secrets that neither the environment nor the project has.
// present are the names of those of the project.
func (r *Repository) CheckSecrets(present []string) error {
	var missing Problems
	for _, s := range r.Config.Secrets {
		if s.Missing != "" && !slices.Contains(present, s.Name) {
			missing = append(missing, Remark{s.File, s.Line, s.Key, needsVariable(s.Missing)})
		}
	}

	if len(missing) > 0 {
		return missing
	}

	return nil
}

// readConfig reads the configuration. Without one, it is empty. Files .env add to lookup.
func readConfig(files *os.Root, lookup func(name string) (string, bool)) (*document, error) {
	variables, err := readVariables(files)
	if err != nil {
		return nil, err
	}

	text, err := readRegular(files, ConfigFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Problems{{File: ConfigFile, Text: "is no file in the repository that can be read"}}
	}

	d, err := parseDocument(ConfigFile, text)
	if err != nil {
		return nil, err
	}

	d.lookup = func(name string) (string, bool) {
		if text, ok := lookup(name); ok {
			return text, true
		}
		text, ok := variables[name]
		return text, ok
	}

	return d, nil
}

// Contains reports whether a folder has a file, after links. It may be a stranger's folder, whose
// links lead to files of this machine.
func Contains(folder, file string) bool {
	for _, path := range []*string{&folder, &file} {
		absolute, err := filepath.Abs(*path)
		if err == nil {
			*path, err = filepath.EvalSymlinks(absolute)
		}
		if err != nil {
			return false
		}
	}

	name, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(name)
}

// noteSchemas notes files with declared schemas, from which migrations are made.
func (r *Repository) noteSchemas(d *document) {
	files, _ := filepath.Glob(r.Path(schemas + "/*.sql")) // the pattern is valid
	applied, _ := filepath.Glob(r.Path(Migrations + "/*"))
	if len(files) > 0 && len(applied) == 0 {
		d.notes = append(d.notes, Remark{File: schemas,
			Text: "has the schema, but no migration does: write the first one from these files"})
	}
}

// sorted returns remarks by file and line.
func sorted(all []Remark) []Remark {
	slices.SortStableFunc(all, func(a, b Remark) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})

	return all
}
