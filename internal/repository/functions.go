package repository

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// FunctionsFolder has the edge functions of a repository, each in a folder of its name. Folders
// whose name begins with _ or . have code that functions share.
const FunctionsFolder = Folder + "/functions"

// Function is an edge function of a repository. Paths are from the repository's folder, with
// slashes.
type Function struct {
	Name        string
	Entry       string   // module that a request runs
	Config      string   // deno.json; "": none
	ImportMap   string   // it goes before that of Config; "": none
	StaticFiles []string // files that the function reads, sorted
	VerifyJWT   *bool    // whether requests need a key or a token; nil: not said
}

// functionName matches the names that the platform API takes.
var functionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// IsFunctionName reports whether a function can have a name.
func IsFunctionName(name string) bool { return functionName.MatchString(name) }

// SetImportMap makes a file the function's import map or, if it is one, its deno.json.
func (f *Function) SetImportMap(file string) {
	if isDenoConfig(file) {
		f.Config, f.ImportMap = file, ""
	} else {
		f.ImportMap = file
	}
}

// entryNames are the modules that a function without entrypoint may have, in the order in which
// they are looked for.
var entryNames = []string{"index.ts", "index.tsx", "index.js", "index.mjs", "index.jsx"}

// FunctionEntry returns the path of a new function's module.
func FunctionEntry(name string) string { return path.Join(FunctionsFolder, name, entryNames[0]) }

// ReadFunctions reads the edge functions of a repository, and no more. It fails with [Problems] if
// they are wrong.
func ReadFunctions(root string, lookup func(name string) (string, bool)) ([]Function, []Remark, error) {
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, nil, err
	}
	defer files.Close()

	d, err := readConfig(files, lookup)
	if err != nil {
		return nil, nil, err
	}

	all := readFunctions(d, files)
	if len(d.problems) > 0 {
		return nil, nil, Problems(sorted(d.problems))
	}

	return all, sorted(d.notes), nil
}

// FunctionTables returns what the configuration of a repository says of each function.
func FunctionTables(root string) (map[string]map[string]any, error) {
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer files.Close()

	d, err := readConfig(files, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}

	all := map[string]map[string]any{}
	tables := d.section("functions")
	for _, name := range tables.names() {
		all[name] = tables.sub(name).values
	}

	return all, nil
}

// readFunctions finds the functions that have a folder or a table in the configuration, by name.
func readFunctions(d *document, files *os.Root) []Function {
	tables := d.section("functions")
	names := tables.names()
	entries, err := fs.ReadDir(files.FS(), FunctionsFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.problems = append(d.problems, Remark{File: FunctionsFolder, Text: "can't be read"})
	}

	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "_") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}

	slices.Sort(names)
	var all []Function
	for _, name := range slices.Compact(names) {
		if f, ok := readFunction(d, files, tables.sub(name), name); ok {
			all = append(all, f)
		}
	}

	return all
}

// readFunction reads a function. It reports false for one that is not to be deployed, and notes why
// if the files don't ask for that.
func readFunction(d *document, files *os.Root, s section, name string) (Function, bool) {
	f := Function{Name: name}
	folder := path.Join(FunctionsFolder, name)
	enabled, said := s.flag("enabled")
	if verify, ok := s.flag("verify_jwt"); ok {
		f.VerifyJWT = &verify
	}

	entry, hasEntry := s.text("entrypoint")
	if f.Entry = underSupabase(entry); !hasEntry || entry == "" {
		hasEntry = false
		f.Entry = firstFile(files, folder, entryNames...)
	}

	isMissing := hasEntry && !isFile(files, f.Entry)
	if !isMissing {
		f.ImportMap = readImportMap(d, files, s, folder, &f)
		f.StaticFiles = readStaticFiles(d, files, s)
	}

	switch {
	case said && !enabled:
		return f, false
	case isMissing: // Supabase's tools keep the table of a function whose folder is gone
		d.note(s.key("entrypoint"), "names no file in the repository, and the function is left out: %s", entry)
		return f, false
	case f.Entry == "" && s.exists():
		d.note(s.path, "has no %s, and is left out", path.Join(folder, entryNames[0]))
		return f, false
	case f.Entry == "":
		d.notes = append(d.notes, Remark{File: folder, Text: "has no " + entryNames[0] + ", and is left out"})
		return f, false
	case !functionName.MatchString(name):
		d.notes = append(d.notes, Remark{File: folder, Text: "is left out: the name of a function has letters, digits, " +
			"underscores and hyphens only, and at most 63 characters"})
		return f, false
	}

	return f, true
}

// readImportMap sets the configuration file of a function, and returns its import map: the one that
// the configuration names, which may be a deno.json, or what lies beside its module or, for all
// functions, above it.
func readImportMap(d *document, files *os.Root, s section, folder string, f *Function) string {
	if named, ok := s.text("import_map"); ok && named != "" {
		file := underSupabase(named)
		switch {
		case !isFile(files, file):
			d.problem(s.key("import_map"), "names no file in the repository: %s", named)
		case isDenoConfig(file):
			f.Config = file
		default:
			f.Config = firstFile(files, folder, denoConfigs...)
			return file
		}

		return ""
	}

	if f.Config = firstFile(files, folder, denoConfigs...); f.Config != "" {
		return ""
	}
	if file := firstFile(files, folder, "import_map.json"); file != "" {
		return file
	}
	if f.Config = firstFile(files, FunctionsFolder, denoConfigs...); f.Config != "" {
		return ""
	}

	return firstFile(files, FunctionsFolder, "import_map.json")
}

// denoConfigs are the names of Deno's own configuration.
var denoConfigs = []string{"deno.json", "deno.jsonc"}

// isDenoConfig reports whether a file is a configuration of Deno, rather than an import map.
func isDenoConfig(file string) bool { return slices.Contains(denoConfigs, path.Base(file)) }

// readStaticFiles finds the files that match the configuration's patterns, and those in folders
// that do.
func readStaticFiles(d *document, files *os.Root, s section) []string {
	patterns, _ := s.texts("static_files")
	var all []string
	for _, pattern := range patterns {
		names, err := fs.Glob(files.FS(), underSupabase(pattern))
		if err != nil || len(names) == 0 {
			d.note(s.key("static_files"), "names no file in the repository: %s", pattern)
		}

		for _, name := range names {
			err := fs.WalkDir(files.FS(), name, func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					all = append(all, name)
				}
				return err
			})
			if err != nil {
				d.problem(s.key("static_files"), "names %s, which can't be read", name)
			}
		}
	}

	slices.Sort(all)
	return slices.Compact(all)
}

// underSupabase returns the path of a file that the configuration names, from the repository's
// folder.
func underSupabase(name string) string {
	if name == "" {
		return ""
	}

	return path.Join(Folder, strings.ReplaceAll(name, `\`, "/"))
}

// firstFile returns the path of the first file that a folder has, or "".
func firstFile(files *os.Root, folder string, names ...string) string {
	for _, name := range names {
		if file := path.Join(folder, name); isFile(files, file) {
			return file
		}
	}

	return ""
}

// isFile reports whether the repository has a regular file. One behind a link out of it is none.
func isFile(files *os.Root, name string) bool {
	info, err := files.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
