package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/socle-dev/socle/internal/repository"
)

// portable returns code without paths of this machine, which the bundler writes into comments and
// the keys of CommonJS modules. Lines stay lines.
func (b *Bundler) portable(code []byte) []byte {
	cache, err := filepath.Rel(b.root, b.cache)
	if err != nil {
		cache = b.cache // on another drive
	}

	code = bytes.ReplaceAll(code, []byte(filepath.ToSlash(cache)+"/"), []byte(npmPrefix))
	return bytes.TrimRight(code, "\n")
}

// npmPrefix begins the paths of npm's packages in bundles: the name of the registry follows.
const npmPrefix = "npm/"

// sourceMap returns the source map that the bundler wrote as a comment, without the sources' text:
// the stacks of errors need positions only. folder is that of the bundle, lines are those before
// it.
func (b *Bundler) sourceMap(text []byte, folder string, lines int) ([]byte, error) {
	var m struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Names    []string `json:"names"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the source map: %w", err)
	}

	for i, source := range m.Sources {
		m.Sources[i] = b.sourceName(source, folder)
	}
	m.Mappings = strings.Repeat(";", lines) + m.Mappings

	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}

	return []byte("\n//# sourceMappingURL=data:application/json;base64," + base64.StdEncoding.EncodeToString(text) + "\n"),
		nil
}

// sourceName returns the name of a source that the map of a bundle in a folder has.
func (b *Bundler) sourceName(source, folder string) string {
	if specifier := strings.TrimPrefix(source, "deno:"); strings.Contains(specifier, "://") {
		return specifier
	}

	file := filepath.FromSlash(source)
	if !filepath.IsAbs(file) {
		file = filepath.Join(folder, file)
	}
	if inside, ok := b.inside(file); ok {
		return inside
	}
	if name, err := filepath.Rel(b.cache, file); err == nil && filepath.IsLocal(name) {
		return npmPrefix + filepath.ToSlash(name)
	}

	return filepath.Base(file)
}

// prelude returns the lines of code that stand before those of a function, mostly none.
func (b *Bundler) prelude(f repository.Function) ([]byte, error) {
	root, err := os.OpenRoot(b.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	var lines []byte
	entry, err := root.ReadFile(filepath.FromSlash(f.Entry))
	if err != nil {
		return nil, err
	}
	if bytes.Contains(entry, []byte("import.meta.main")) { // the server imports the module
		lines = append(lines, "import.meta.main = true;\n"...)
	}
	if len(f.StaticFiles) == 0 {
		return lines, nil
	}

	files, err := staticFiles(root, f)
	return append(lines, files...), err
}

// staticFiles returns a line of code that writes a function's static files beside its module, where
// import.meta.url leads.
func staticFiles(root *os.Root, f repository.Function) ([]byte, error) {
	files, size := map[string][]byte{}, 0
	for _, name := range f.StaticFiles {
		to, err := filepath.Rel(filepath.FromSlash(path.Dir(f.Entry)), filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}

		to = filepath.ToSlash(to)
		if strings.HasPrefix(to, "../../") {
			return nil, repository.Problems{{File: name,
				Text: "lies outside the folder of the functions, so " + f.Entry + " can't read it"}}
		}

		if files[to], err = root.ReadFile(filepath.FromSlash(name)); err != nil {
			return nil, repository.Problems{{File: name, Text: "is no file in the repository that can be read"}}
		}
		if size += len(files[to]); size > MaxSize {
			return nil, repository.Problems{{File: f.Entry, Text: fmt.Sprintf("has static files of more than %d MiB",
				MaxSize>>20)}}
		}
	}

	text, err := json.Marshal(files) // bytes as Base64, names sorted
	if err != nil {
		return nil, err
	}

	return []byte("for (const [name, text] of Object.entries(" + string(text) + ")) { " +
		"const file = new URL(name, import.meta.url); " +
		`Deno.mkdirSync(new URL(".", file), { recursive: true }); ` +
		"Deno.writeFileSync(file, Uint8Array.from(atob(text), (c) => c.charCodeAt(0))); }\n"), nil
}
