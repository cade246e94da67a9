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

// Format is the newest format of a backup, which this release writes where an older one cannot
// express the backup.
const Format = 3

const (
	firstFormat      = 1
	extensionsFormat = 2
)

// Manifest describes the parts of a backup.
type Manifest struct {
	Format     int       `json:"format"`
	Socle      string    `json:"socle"` // version of the release
	Project    uuid.UUID `json:"project"`
	Backup     uuid.UUID `json:"backup"`
	Source     uuid.UUID `json:"source,omitzero"`    // original project of an imported backup
	Database   string    `json:"database,omitempty"` // see [Manifest.DatabaseName]
	Schema     int64     `json:"schema"`             // latest migration of the project's database
	PostgreSQL int       `json:"postgresql"`         // server_version_num, such as 150018
	At         time.Time `json:"at"`                 // time of the snapshot
	TimeZone   string    `json:"timeZone,omitempty"` // time zone for times in the dump; "" if unknown
	Dump       Digest    `json:"dump"`
	Files      *Contents `json:"files"`
	Tables     []Table   `json:"tables"` // the platform's and the user's

	Extensions []projectdb.Extension `json:"extensions,omitempty"` // in the order of their creation
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

// DatabaseName returns the name of the dumped database, from which the names of its logins derive.
func (m Manifest) DatabaseName() string {
	if m.Database != "" {
		return m.Database
	}
	return derivedName(m.Origin())
}

// derivedName returns the name of a project's database if a manifest has none.
func derivedName(project uuid.UUID) string { return pgcluster.Names{}.Database(project) }

// Imported reports whether the backup was imported, so that its content is untrusted.
func (m Manifest) Imported() bool { return m.Source != uuid.Nil }

// Table is the row count of a table.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
}

// The manifest of a million files has some hundred megabytes.
const (
	// MaxManifestSize is the maximum size of a manifest in bytes.
	MaxManifestSize = 4 << 30

	maxManifestRest = 64 << 20 // bytes of a manifest in an archive, not counting the contents of files
)

// ReadManifest reads a stored manifest. The caller closes its Files. It fails with ErrDamaged, and
// with ErrNewer if the format is newer than this release.
func ReadManifest(r io.Reader) (Manifest, error) { return parseManifest(r, MaxManifestSize) }

// parseManifest is [ReadManifest] with a limit in bytes, not counting the contents of files.
func parseManifest(r io.Reader, most int64) (Manifest, error) {
	tooLarge := fmt.Errorf("%w: the manifest has more than %d bytes", ErrDamaged, most)
	rest := &limitedReader{r: r, left: most, err: tooLarge}
	found := Manifest{Files: &Contents{budget: rest}}
	err := json.UnmarshalRead(rest, &found)
	if found.Files == nil { // null in the text
		found.Files = &Contents{}
	}

	found.Files.budget = nil

	switch {
	case isLocal(err): // a failure of the Contents
	case found.Format > Format:
		err = ErrNewer
	case err != nil && rest.readErr != nil:
		err = rest.readErr
	case err != nil:
		err = errors.Join(ErrDamaged, err)
	}

	if err != nil {
		found.Files.Close()
	}

	return found, err
}

// databaseName matches names of projects' databases, see [pgcluster.Names].
var databaseName = regexp.MustCompile(`^socle_[0-9a-f]{32}$`)

// validate fails with the error of [Invalid] unless a release could have written the manifest,
// which may be untrusted. Its Files are valid already.
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
// can read it, and without the members that this format implies.
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

// JSON returns a reader of the manifest's text. The caller closes it.
func (m Manifest) JSON() io.ReadCloser {
	out, in := io.Pipe()
	go func() { in.CloseWithError(json.MarshalWrite(in, m)) }()

	return out
}

// export returns the manifest as it is in an archive.
func (m Manifest) export() Manifest {
	m.Project, m.Source = m.Origin(), uuid.Nil
	return m
}

// Import returns the manifest of an archive as that of an imported backup of a project.
func (m Manifest) Import(project, backup uuid.UUID) Manifest {
	m.Source, m.Project, m.Backup = m.Project, project, backup
	m.Format = max(m.Format, extensionsFormat)

	return m
}

// Part is a part of a backup beside its manifest: the dump, or a content.
type Part struct {
	Digest
	Dump bool
}

// parts returns the dump and then the contents, in the order of an archive.
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
