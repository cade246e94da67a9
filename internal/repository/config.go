package repository

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Config holds the settings that a repository's configuration names. Others stay as they are.
type Config struct {
	Name       string // ""
	Auth       []Setting
	Secrets    []Secret
	Rest       []Setting
	Buckets    []Bucket
	OpenTables *bool // whether new tables are open to applications, as far as policies allow; nil: not said

	SkipMigrations bool
}

// Setting is a member's value in an operation that updates settings.
type Setting struct {
	Member []string // path in the operation's body, such as sms and sign_in
	Value  any      // JSON; nil removes the member
	File   string
	Line   int
}

// VaultPrefix begins the names of secrets in the vault, which SQL reads.
const VaultPrefix = "vault."

// Secret is a secret in the end-user settings or in the vault. It is never shown.
type Secret struct {
	Name    string // as the operation calls it, such as providers.github, or [VaultPrefix] and its name
	Value   string
	Missing string // variable with the value that the environment lacks; "": the value is there
	Key     string
	File    string
	Line    int
}

// Bucket is a file container. Nil fields are not said.
type Bucket struct {
	Name    string
	Public  *bool
	MaxSize *int64 // bytes per file
	Types   *[]string
	Line    int
}

// settingsReader reads a configuration.
type settingsReader struct {
	d    *document
	root *os.Root // the repository
	Config
}

func readSettings(d *document, root *os.Root) Config {
	r := &settingsReader{d: d, root: root}
	r.Name, _ = d.section().text("project_id")
	r.readAPI()
	r.readStorage()
	r.readAuth()
	r.readVault()

	if enabled, ok := d.section("db", "migrations").flag("enabled"); ok {
		r.SkipMigrations = !enabled
	}

	return r.Config
}

// set adds an end-user setting.
func (r *settingsReader) set(key string, value any, member ...string) {
	r.Auth = append(r.Auth, Setting{member, value, r.d.file, r.d.lines[key]})
}

// setText, setFlag, setNumber and setSeconds add an end-user setting if its key is there.
func (r *settingsReader) setText(s section, name string, member ...string) {
	if v, ok := s.text(name); ok {
		r.set(s.key(name), v, member...)
	}
}

func (r *settingsReader) setFlag(s section, name string, member ...string) {
	if v, ok := s.flag(name); ok {
		r.set(s.key(name), v, member...)
	}
}

func (r *settingsReader) setNumber(s section, name string, least, most int64, member ...string) {
	if v, ok := s.number(name, least, most); ok {
		r.set(s.key(name), v, member...)
	}
}

func (r *settingsReader) setSeconds(s section, name string, least, most int64, member ...string) {
	if v, ok := s.seconds(name, least, most); ok {
		r.set(s.key(name), v, member...)
	}
}

// setSecret adds a secret if its key is there and not empty. A project may have one that the
// environment lacks.
func (r *settingsReader) setSecret(s section, key, name string) {
	text, _ := s.values[key].(string)
	secret := Secret{Name: name, Key: s.key(key), File: r.d.file, Line: r.d.lines[s.key(key)]}
	if m := environmentValue.FindStringSubmatch(text); m != nil {
		if _, ok := r.d.lookup(m[1]); !ok {
			r.d.read[secret.Key], secret.Missing = true, m[1]
			r.Secrets = append(r.Secrets, secret)

			return
		}
	}

	if v, ok := s.text(key); ok && v != "" {
		secret.Value = v
		r.Secrets = append(r.Secrets, secret)
	}
}

// readVault reads the secrets of the vault.
func (r *settingsReader) readVault() {
	vault := r.d.section("db", "vault")
	for _, name := range slices.Sorted(maps.Keys(vault.values)) {
		if text, _ := vault.values[name].(string); strings.HasPrefix(text, "encrypted:") {
			r.d.read[vault.key(name)] = true
			r.d.note(vault.key(name), "is encrypted: socle vault-secrets create --name %s takes the secret itself", name)
			continue
		}

		r.setSecret(vault, name, VaultPrefix+name)
	}
}

// closedSchemas are schemas that the rows API never shows, with the reason; "": Supabase's tool
// writes it into every configuration.
var closedSchemas = map[string]string{
	"graphql_public": "", "auth": "the platform's", "storage": "the platform's", "realtime": "the platform's",
	"graphql": "not available", "vault": "not available", "cron": "not available",
}

// readAPI reads the rows API settings.
func (r *settingsReader) readAPI() {
	api := r.d.section("api")
	if names, ok := api.texts("schemas"); ok {
		var schemas []string
		for _, name := range names {
			reason, closed := closedSchemas[name]
			switch {
			case !closed && !slices.Contains(schemas, name):
				schemas = append(schemas, name)
			case reason != "":
				r.d.note(api.key("schemas"), "names %s, which is %s: the rows API does not show it", name, reason)
			}
		}

		if len(schemas) > 0 {
			r.Rest = append(r.Rest, Setting{[]string{"schemas"}, schemas, r.d.file, r.d.lines[api.key("schemas")]})
		}
	}

	if n, ok := api.number("max_rows", 0, 1_000_000); ok {
		r.Rest = append(r.Rest, Setting{[]string{"max_rows"}, n, r.d.file, r.d.lines[api.key("max_rows")]})
	}

	if open, ok := api.flag("auto_expose_new_tables"); ok {
		r.OpenTables = &open
	}
}

// bucketName matches the container names that the platform API creates.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{3,63}$`)

// readStorage reads the buckets.
func (r *settingsReader) readStorage() {
	storage := r.d.section("storage")
	limit, hasLimit := storage.bytes("file_size_limit")
	buckets := storage.sub("buckets")

	for _, name := range buckets.names() {
		s := buckets.sub(name)
		b := Bucket{Name: name, Line: r.d.lines[s.path]}
		if public, ok := s.flag("public"); ok {
			b.Public = &public
		}
		if size, ok := s.bytes("file_size_limit"); ok {
			b.MaxSize = &size
		} else if hasLimit {
			b.MaxSize = &limit
		}
		if types, ok := s.texts("allowed_mime_types"); ok {
			b.Types = &types
		}

		if !bucketName.MatchString(name) {
			r.d.note(s.path, "is not created: the name of a new bucket has 3 to 63 letters, digits, _ or -")
			continue
		}
		if from, ok := s.text("objects_path"); ok && from != "" {
			r.d.note(s.key("objects_path"), "names files: upload them by socle files create %s", name)
		}

		r.Buckets = append(r.Buckets, b)
	}
}

// openRegular opens a file. It opens no pipe, which would wait for a writer.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fs.ErrInvalid
	}

	f, err := root.Open(name)
	return f, info, err
}

// readRegular returns a file's content.
func readRegular(root *os.Root, name string) ([]byte, error) {
	f, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	return io.ReadAll(f)
}

// read returns the content of a file that the configuration names: from the repository's folder, or
// from Supabase's. Files outside the repository are not read, since it may be a stranger's.
func (r *settingsReader) read(name string) ([]byte, error) {
	name = path.Clean(filepath.ToSlash(name))
	text, err := readRegular(r.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = readRegular(r.root, path.Join(Folder, name))
	}

	return text, err
}
