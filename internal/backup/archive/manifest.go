package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/backup/extension"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Format is the newest backup format, which this release writes if no older one can express the
// backup.
const Format = 3

const (
	firstFormat      = 1
	extensionsFormat = 2
)

// Manifest describes the parts of a backup.
type Manifest struct {
	Format     int       `json:"format"`
	Socle      string    `json:"socle"` // release
	Project    uuid.UUID `json:"project"`
	Backup     uuid.UUID `json:"backup"`
	Source     uuid.UUID `json:"source,omitzero"`    // an imported backup's original project
	Database   string    `json:"database,omitempty"` // see [Manifest.DatabaseName]
	Schema     int64     `json:"schema"`             // the project database's latest migration
	PostgreSQL int       `json:"postgresql"`         // server_version_num, such as 150018
	At         time.Time `json:"at"`                 // snapshot time
	TimeZone   string    `json:"timeZone,omitempty"` // time zone for times in the dump; "" if unknown
	Dump       Digest    `json:"dump"`
	Files      *Contents `json:"files"`
	Tables     []Table   `json:"tables"` // the platform's and the user's

	Extensions []projectdb.Extension `json:"extensions,omitempty"` // in creation order
	// changes to extensions and multirange types; nil if there are none or they are unknown
	Extended *extension.Changes `json:"extended,omitempty"`
}

// Origin returns the project whose logins are named in the dump.
func (m Manifest) Origin() uuid.UUID {
	if m.Source != uuid.Nil {
		return m.Source
	}
	return m.Project
}

// DatabaseName returns the dumped database's name, from which the login names derive.
func (m Manifest) DatabaseName() string {
	if m.Database != "" {
		return m.Database
	}
	return derivedName(m.Origin())
}

// derivedName returns a project's database name for a manifest without one.
func derivedName(project uuid.UUID) string { return pgcluster.Names{}.Database(project) }

// Imported reports whether the backup was imported, so that its content is untrusted.
func (m Manifest) Imported() bool { return m.Source != uuid.Nil }

// Table is a table's row count.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
}

// A manifest with a million files has some hundred megabytes.
const (
	// MaxManifestSize is a manifest's maximum size in bytes.
	MaxManifestSize = 4 << 30

	maxManifestRest = 64 << 20 // bytes of an archive's manifest, without file contents
)

// ReadManifest reads a stored manifest. The caller closes its Files. It fails with ErrDamaged, and
// with ErrNewer if the format is newer than this release.
func ReadManifest(r io.Reader) (Manifest, error) { return parseManifest(r, MaxManifestSize) }

// parseManifest is [ReadManifest] with a limit in bytes, not counting Files.
func parseManifest(r io.Reader, most int64) (Manifest, error) {
	tooLarge := fmt.Errorf("%w: the manifest has more than %d bytes", ErrDamaged, most)
	rest := &limitedReader{r: r, remaining: most, err: tooLarge}
	m := Manifest{Files: &Contents{budget: rest}}
	err := json.UnmarshalRead(rest, &m)
	if m.Files == nil { // null in the text
		m.Files = &Contents{}
	}

	m.Files.budget = nil

	switch {
	case isLocal(err): // from the Contents
	case m.Format > Format:
		err = ErrNewer
	case err != nil && rest.readErr != nil:
		err = rest.readErr
	case err != nil:
		err = errors.Join(ErrDamaged, err)
	}

	if err != nil {
		m.Files.Close()
	}

	return m, err
}

// databaseName matches project database names, see [pgcluster.Names].
var databaseName = regexp.MustCompile(`^socle_[0-9a-f]{32}$`)

// validate fails with [Invalid] unless a release could have written the manifest, which may be
// untrusted. The Files are valid already.
func (m Manifest) validate() error {
	if _, err := m.Dump.sum(); err != nil {
		return Invalid(err)
	}
	if m.Format < firstFormat || m.Schema < 1 || m.PostgreSQL < 1 || m.Project == uuid.Nil ||
		m.At.After(time.Now().AddDate(1, 0, 0)) {
		return Invalid(errors.New("invalid manifest"))
	}
	if m.Database != "" && !databaseName.MatchString(m.Database) {
		return Invalid(fmt.Errorf("invalid database name in the manifest: %q", m.Database))
	}

	return nil
}

// WithFormat returns the manifest in the oldest format that can express it, so that older releases
// can read it, without the members that this format implies.
func (m Manifest) WithFormat() Manifest {
	if m.Database == derivedName(m.Origin()) {
		m.Database = ""
	}
	if len(m.Extensions) == 0 && m.Extended != nil && len(m.Extended.Rights) == 0 {
		m.Extended = nil
	}

	switch {
	case m.Database != "":
		m.Format = Format
	case len(m.Extensions) > 0, m.Imported():
		m.Format = extensionsFormat
	default:
		m.Format = firstFormat
	}

	return m
}

// JSON returns the manifest's text. The caller closes the reader.
func (m Manifest) JSON() io.ReadCloser {
	out, in := io.Pipe()
	go func() { in.CloseWithError(json.MarshalWrite(in, m)) }()

	return out
}

// export returns the manifest for an archive.
func (m Manifest) export() Manifest {
	m.Project, m.Source = m.Origin(), uuid.Nil
	return m
}

// Import turns an archive's manifest into the manifest for a project's imported backup.
func (m Manifest) Import(project, backup uuid.UUID) Manifest {
	m.Source, m.Project, m.Backup = m.Project, project, backup
	m.Format = max(m.Format, extensionsFormat)

	return m
}

// Part is the dump or a content.
type Part struct {
	Digest
	Dump bool
}

// parts returns the dump and then the contents, in archive order.
func (m Manifest) parts() iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		if !yield(Part{m.Dump, true}, nil) {
			return
		}

		for f, err := range m.Files.All() {
			if !yield(Part{Digest: f.Digest}, err) || err != nil {
				return
			}
		}
	}
}
