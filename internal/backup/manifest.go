package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
)

// Format is the current version of the backup format. A release reads its own format and older
// ones.
const Format = 3

// A backup uses the oldest format that can express it, so that older releases can read it.
const (
	firstFormat      = 1 // no extensions, no imported backups
	extensionsFormat = 2 // the database name derives from the project's UUID
)

// Manifest describes the parts of a backup.
type Manifest struct {
	Format     int       `json:"format"`
	Socle      string    `json:"socle"` // version of the release
	Project    uuid.UUID `json:"project"`
	Backup     uuid.UUID `json:"backup"`
	Source     uuid.UUID `json:"source,omitzero"`    // original project of an imported backup
	Database   string    `json:"database,omitempty"` // of the dumped database; "": projectdb.Names
	Schema     int64     `json:"schema"`             // latest migration of the project's database
	PostgreSQL int       `json:"postgresql"`         // server_version_num, such as 150018
	At         time.Time `json:"at"`                 // time of the snapshot
	TimeZone   string    `json:"timeZone,omitempty"` // of times in the dump; "" if unknown
	Dump       Digest    `json:"dump"`
	Files      *Contents `json:"files"`
	Tables     []Table   `json:"tables"` // the platform's and the user's

	Extensions []projectdb.Extension `json:"extensions,omitempty"` // in the order of their creation
	// changes to extensions and multirange types; nil if there are none or they are unknown
	Extended *projectdb.ExtensionChanges `json:"extended,omitempty"`
}

// source returns the project whose logins are named in the dump.
func (m Manifest) source() uuid.UUID {
	if m.Source != uuid.Nil {
		return m.Source
	}
	return m.Project
}

// database returns the name of the dumped database.
func (m Manifest) database() string {
	if m.Database != "" {
		return m.Database
	}
	return projectdb.Names{}.Database(m.source())
}

// imported reports whether the backup was imported, so that its content is untrusted.
func (m Manifest) imported() bool { return m.Source != uuid.Nil }

// Table is the row count of a table.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
}

// The manifest of a million files has some hundred megabytes.
const (
	maxManifestSize = 4 << 30  // bytes
	maxManifestRest = 64 << 20 // bytes, not counting the contents of files
)

// parseManifest reads a manifest. most limits its size in bytes, not counting the contents of
// files. It fails with Unprocessable if the format is newer than this release.
func parseManifest(r io.Reader, most int64) (Manifest, error) {
	tooLarge := fmt.Errorf("%w: the manifest has more than %d bytes", errDamaged, most)
	rest := &limitedReader{r: r, left: most, err: tooLarge}
	found := Manifest{Files: &Contents{budget: rest}}
	err := json.UnmarshalRead(rest, &found)
	if found.Files == nil { // null in the text
		found.Files = &Contents{}
	}

	found.Files.budget = nil

	switch {
	case found.Format > Format:
		err = errNewer
	case err != nil && rest.readErr != nil:
		err = rest.readErr
	case err != nil:
		err = errors.Join(errDamaged, err)
	}

	if err != nil {
		found.Files.Close()
	}

	return found, err
}

// databaseName matches names of projects' databases, see [projectdb.Names].
var databaseName = regexp.MustCompile(`^socle_[0-9a-f]{32}$`)

// validate fails unless a release could have written the manifest, which may be untrusted.
func (m Manifest) validate() error {
	for f, err := range m.Files.followedBy(m.Dump) {
		if err != nil {
			return err
		}

		if f.Size < 0 || len(f.SHA256) != 2*sha256.Size || strings.Trim(f.SHA256, "0123456789abcdef") != "" {
			return errArchive.WithCause(fmt.Errorf("invalid content in the manifest: %v", f))
		}
	}

	if m.Format < firstFormat || m.Schema < 1 || m.PostgreSQL < 1 || m.Project == uuid.Nil ||
		m.At.After(time.Now().AddDate(1, 0, 0)) {
		return errArchive.WithCause(errors.New("invalid manifest"))
	}
	if m.Database != "" && !databaseName.MatchString(m.Database) {
		return errArchive.WithCause(fmt.Errorf("invalid database name in the manifest: %q", m.Database))
	}

	return nil
}
