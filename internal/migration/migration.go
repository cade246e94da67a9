// Package migration applies migrations for a project's user schema, and writes the next one.
//
// A migration is a developer's SQL file. It runs on the project owner's login, see package
// statement, and is recorded in the project's database by the transaction that it is.
//
// [Service.Diff] compares the project with a scratch copy to which the files are applied. Both are
// dumped by pg_dump, and the difference between the two tables of contents becomes SQL, which runs
// in the scratch copy until nothing differs.
package migration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/migration/file"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/sqllex"
	"github.com/socle-dev/socle/internal/statement"
)

// ApplyTimeout and DiffTimeout limit the work per request.
const (
	ApplyTimeout = 10 * time.Minute
	DiffTimeout  = 90 * time.Second
)

// maxDiffs is this server's maximum number of concurrent scratch copies.
const maxDiffs = 2

// Migration is a migration that a project has applied.
type Migration struct {
	Version    string    `json:"version" example:"20261123101500" doc:"Digits: the time of the migration's creation, or a number."`
	Name       string    `json:"name" example:"create_books"`
	Checksum   string    `json:"checksum" doc:"SHA-256 of the SQL, hexadecimal."`
	AppliedAt  time.Time `json:"appliedAt"`
	AppliedBy  uuid.UUID `json:"appliedBy" doc:"User who applied it."`
	DurationMs *float64  `json:"durationMs" nullable:"true" doc:"Null if a migration without a transaction runs, or stopped halfway: it runs again from its start."`
}

// Source is a migration's file.
type Source struct {
	Version  string `json:"version" maxLength:"100" example:"20261123101500" doc:"Digits at the start of the file's name: a time, such as YYYYMMDDHHMMSS, or a number. They order the migrations as a folder orders VERSION_NAME.sql."`
	Name     string `json:"name" maxLength:"250" example:"create_books" doc:"Text of one line, at most 250 bytes; may be empty."`
	SQL      string `json:"sql" maxLength:"8388608" doc:"Statements, at most 4 MiB. The first line '-- socle: no-transaction' makes each a transaction of its own. Of a file of dbmate or goose, the section up."`
	Checksum string `json:"checksum,omitempty" doc:"SHA-256 of sql, hexadecimal. If given, it must match."`
}

// Service applies and compares migrations.
type Service struct {
	lifecycle *lifecycle.Service
	tools     *pgtool.Tools
	log       *slog.Logger
	requests  *fair.Pool
	scratches *fair.Pool
}

// New returns a service. It runs pg_dump among the binaries.
func New(l *lifecycle.Service, binaries pgserver.Binaries, log *slog.Logger) *Service {
	return &Service{
		lifecycle: l,
		tools:     &pgtool.Tools{Binaries: binaries, Log: log},
		log:       log,
		requests:  newRequestPool(),
		scratches: newScratchPool(),
	}
}

// Pools returns the pools that accounts share, for metrics.
func (s *Service) Pools() []*fair.Pool { return []*fair.Pool{s.requests, s.scratches} }

const migrationColumns = `version, name, checksum, applied_at, applied_by, duration_ms`

// List returns a page of the applied migrations, sorted by version or appliedAt, and the total
// number.
func List(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Migration, int64, error) {
	return pg.List[Migration](ctx, p.Trusted(), pg.Listing{
		Columns: migrationColumns,
		From:    `socle.applied_migrations`,
		Sorts:   map[string]string{"version": "version || '_'", "appliedAt": "applied_at"}, // [file.Compare]
		Tie:     "version",
	}, page, nil)
}

// script is a parsed file.
type script struct {
	Source
	field    string // the SQL's field in the request
	steps    []statement.Step
	separate bool // each statement is a separate transaction
}

// parse parses a request's files. It fails with Unprocessable on a file that is not valid, or not
// newer than the one before it.
func parse(files []Source) ([]script, error) {
	scripts := make([]script, len(files))
	for i, f := range files {
		field := fmt.Sprintf("migrations.%d.", i)
		if !file.ValidVersion(f.Version) {
			return nil, fault.OnField(fault.Unprocessable, field+"version", "invalid_format",
				"must be digits, at most 100")
		}
		if !file.ValidName(f.Name) {
			return nil, fault.OnField(fault.Unprocessable, field+"name", "invalid_format",
				"must be text of one line, at most %d bytes", file.MaxName)
		}
		if i > 0 && file.Compare(f.Version, files[i-1].Version) <= 0 {
			return nil, fault.OnField(fault.Unprocessable, field+"version", "invalid_value",
				"must sort after the version before it, %s", files[i-1].Version)
		}

		sum := sha256.Sum256([]byte(f.SQL))
		checksum := hex.EncodeToString(sum[:])
		if f.Checksum != "" && f.Checksum != checksum {
			return nil, fault.OnField(fault.Unprocessable, field+"checksum", "checksum_mismatch",
				"is not that of the SQL, %s", checksum)
		}

		f.Checksum = checksum

		up, separate := file.Up(f.SQL)
		separate = separate || runsAlone(up)
		steps, err := statement.SplitScript(field+"sql", up, !separate)
		if err != nil {
			return nil, f.blame(err)
		}

		scripts[i] = script{f, field + "sql", steps, separate}
	}

	return scripts, nil
}

// runsAlone reports whether a file's only statement is one that PostgreSQL refuses in a
// transaction: an index that is built, dropped or rebuilt CONCURRENTLY.
func runsAlone(text string) bool {
	first, rest, _ := sqllex.Cut(text)
	if len(first.Words) == 0 || !slices.Contains([]string{"create", "drop", "reindex"}, first.Words[0]) {
		return false
	}

	second, _, _ := sqllex.Cut(rest)
	return slices.Contains(first.Words, "concurrently") && len(second.Words) == 0
}

// blame adds the file to its SQL's failure.
func (f Source) blame(err error) error {
	e := *fault.Of(err)
	if e.Kind == fault.Internal {
		return err
	}

	extra := map[string]any{"version": f.Version, "name": f.Name}
	for name, value := range e.Extra {
		extra[name] = value
	}

	e.Extra = extra
	return &e
}

// knownMigrations are a project's migrations by version.
type knownMigrations map[string]Migration

// readKnown returns the migrations that a project has applied or begun.
func readKnown(ctx context.Context, q pg.Querier) (knownMigrations, error) {
	all, err := pg.All[Migration](ctx, q, `
		select version, name, checksum, applied_at, applied_by, duration_ms from socle.applied_migrations`)

	byVersion := knownMigrations{}
	for _, m := range all {
		byVersion[m.Version] = m
	}

	return byVersion, err
}

// pending reports whether a file is still to be applied. It fails with Conflict if the file was
// changed after it was applied, or if a newer one was applied before it.
func (k knownMigrations) pending(f Source, outOfOrder bool) (bool, error) {
	m, ok := k[f.Version]
	switch {
	case ok && m.DurationMs == nil: // stopped halfway: it runs again, changed or not
	case ok && m.Checksum != f.Checksum:
		e := fault.New(fault.Conflict,
			"the migration %s_%s was changed after it was applied: it had the checksum %s, the file has %s",
			f.Version, m.Name, m.Checksum, f.Checksum).WithCode("migration_changed")
		e.Extra = map[string]any{"appliedChecksum": m.Checksum, "fileChecksum": f.Checksum}

		return false, f.blame(e)
	case ok:
		return false, nil
	case outOfOrder:
		return true, nil
	}

	for version, m := range k {
		if file.Compare(version, f.Version) > 0 && m.DurationMs != nil {
			return false, f.blame(fault.New(fault.Conflict,
				"the migration %s_%s is older than %s_%s, which is applied already",
				f.Version, f.Name, version, m.Name).WithCode("out_of_order"))
		}
	}

	return true, nil
}

// recordDone records a migration without running it.
func recordDone(ctx context.Context, tx pgx.Tx, user uuid.UUID, f Source) error {
	_, err := pg.Exec(ctx, tx, `
		select socle.record_migration(@version, @name, @checksum, @user, 0)`,
		pgx.StrictNamedArgs{"version": f.Version, "name": f.Name, "checksum": f.Checksum, "user": user})
	return err
}
