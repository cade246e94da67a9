package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
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

// Digest are the size and checksum of a byte sequence.
type Digest struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hexadecimal
}

// digest computes the size and SHA-256 of the bytes written.
type digest struct {
	hash hash.Hash
	size int64
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

func (s *digest) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	return s.hash.Write(b)
}

func (s *digest) bytes() Digest { return Digest{s.size, hex.EncodeToString(s.hash.Sum(nil))} }

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

func manifestKey(project, backup uuid.UUID) string {
	return "projects/" + project.String() + "/backups/" + backup.String() + ".manifest"
}

func contentKey(project uuid.UUID, sum string) string {
	return "projects/" + project.String() + "/backups/content/" + sum
}

// version returns the version of this build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// newManifest returns the manifest of the transaction's snapshot without tables and dump. It reads
// no table of the user.
func (s *Service) newManifest(ctx context.Context, tx pgx.Tx, project, backup uuid.UUID) (Manifest, error) {
	type about struct {
		Schema     int64
		PostgreSQL int `db:"postgresql"`
		At         time.Time
	}

	a, err := pg.One[about](ctx, tx, `
		select (select max(version_id) from socle.migrations where is_applied) as schema,
			current_setting('server_version_num')::int as postgresql, now() as at`)
	if err != nil {
		return Manifest{}, err
	}

	files, err := contentsOf(ctx, tx)
	if err != nil {
		return Manifest{}, err
	}

	extensions, err := projectdb.Extensions(ctx, tx)
	if err != nil {
		return Manifest{}, err
	}

	extended, err := s.projects.ExtensionChanges(ctx, tx, project)
	if err != nil {
		return Manifest{}, err
	}

	format := extensionsFormat
	if len(extensions) == 0 {
		format = firstFormat
		if len(extended.Rights) == 0 {
			extended = nil
		}
	}

	database := s.projects.Database(project)
	if database == (projectdb.Names{}).Database(project) {
		database = ""
	} else {
		format = Format
	}

	return Manifest{Format: format, Socle: version(), Project: project, Backup: backup, Database: database,
		Schema: a.Schema, PostgreSQL: a.PostgreSQL,
		At: a.At.UTC(), TimeZone: dumpTimeZone, Files: files, Extensions: extensions, Extended: extended}, nil
}

// contentsOf returns the distinct contents of a database's files, each with one of its blobs.
func contentsOf(ctx context.Context, tx pgx.Tx) (*Contents, error) {
	all := &Contents{}
	err := object.EachContent(ctx, tx, func(c object.StoredContent) error {
		return all.add(content{Digest{c.Size, hex.EncodeToString(c.SHA256)}, c.BlobUUID})
	})

	return all, err
}

// countRows counts the rows of every table that is dumped whole; tables of extensions are not. It
// runs as the dump login, from which policies hide no rows and for which user code in the database
// is harmless. The caller has locked the tables, or has exclusive access to the database.
func countRows(ctx context.Context, tx pgx.Tx) ([]Table, error) {
	tables, err := pg.All[Table](ctx, tx, `
		select n.nspname as schema, c.relname as name, 0::bigint as rows
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
			and not (n.nspname = @own and c.relname = any(@bookkeeping))
			and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e')
		order by 1, 2`, pgx.StrictNamedArgs{"own": projectdb.Schema, "bookkeeping": projectdb.BookkeepingTables})
	if err != nil || len(tables) == 0 {
		return tables, err
	}

	if _, err := pg.Exec(ctx, tx, "set local lock_timeout = "+pg.Literal(indexLockTimeout)); err != nil {
		return nil, err
	}

	// A user's view may have taken the name of a table, with its schema. Servers older than the
	// setting lack it.
	if _, err := pg.Exec(ctx, tx, `
		select pg_catalog.set_config(s.name, 'view, foreign-table', true) from pg_catalog.pg_settings s where s.name = 'restrict_nonsystem_relation_kind'`); err != nil {
		return nil, err
	}

	for batch := range slices.Chunk(tables, countBatchSize) { // subslices, so that tables gets the counts
		if err := countBatch(ctx, tx, batch); err != nil {
			return nil, err
		}
	}

	return tables, nil
}

// countBatchSize is the number of tables counted before their index locks are released. The
// server's lock table has room for some thousand locks.
const countBatchSize = 500

func countBatch(ctx context.Context, tx pgx.Tx, tables []Table) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	// to the savepoint, which releases locks acquired since
	defer func() { _ = savepoint.Rollback(context.WithoutCancel(ctx)) }()

	for i, t := range tables {
		if tables[i].Rows, err = pg.Value[int64](ctx, savepoint,
			"select count(*) from only "+pg.Quote(t.Schema)+"."+pg.Quote(t.Name)); err != nil {
			return err
		}
	}

	return nil
}

// errNewer reports that a backup was made by a newer release.
var errNewer = fault.New(fault.Unprocessable,
	"the backup was made by a newer version of Socle; upgrade Socle to restore it").WithCode("newer_version")

// checkRestorable fails with Unprocessable if this install cannot restore the backup of a manifest.
func (s *Service) checkRestorable(ctx context.Context, manifest Manifest) error {
	if manifest.Schema > projectdb.Version() {
		return errNewer
	}

	server, err := s.projects.ServerVersion(ctx)
	if err != nil {
		return err
	}

	if major := manifest.PostgreSQL / 10000; major > server/10000 {
		return fault.New(fault.Unprocessable,
			"the backup requires PostgreSQL %d or newer, and this server is PostgreSQL %d", major,
			server/10000).WithCode("newer_postgresql")
	}

	return s.projects.CheckExtensions(ctx, manifest.Project, manifest.Extensions, manifest.imported())
}

// putManifest stores a manifest beside its dump.
func (s *Service) putManifest(ctx context.Context, manifest Manifest) error {
	out, in := io.Pipe()
	go func() { in.CloseWithError(json.MarshalWrite(in, manifest)) }()

	defer out.Close()

	sealed := s.key().encrypt(out)
	defer sealed.Close()

	_, err := s.blobs.Put(ctx, manifestKey(manifest.Project, manifest.Backup), sealed, 2*maxManifestSize)
	return err
}

// readManifest reads the manifest of a backup. It fails with errDamaged if it belongs to another
// backup, and with Unprocessable if its format is newer.
func (s *Service) readManifest(ctx context.Context, project, backup uuid.UUID) (Manifest, error) {
	var found Manifest
	err := s.readBlob(ctx, manifestKey(project, backup), func(r io.Reader) error {
		var err error
		if found, err = parseManifest(r, maxManifestSize); err != nil {
			return err
		}

		if found.Project != project || found.Backup != backup {
			return fmt.Errorf("%w: the manifest belongs to backup %s", errDamaged, found.Backup)
		}

		return nil
	})

	return found, err
}

// readBlob passes the decrypted blob under a key to read. A missing blob is damage.
func (s *Service) readBlob(ctx context.Context, name string, read func(io.Reader) error) error {
	stored, _, err := s.blobs.Open(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return errors.Join(errDamaged, err)
	}
	if err != nil {
		return err
	}

	defer stored.Close()

	plain, err := s.key().decrypt(stored)
	if err != nil {
		return err
	}

	return read(plain)
}
