package object

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Policies on storage.buckets and storage.objects decide about containers and files. The two tables
// are the parents of storage.containers and storage.files, and have no rows themselves.

// visibleContainers has the storage.containers columns, with constants for those that policies do
// not know.
const visibleContainers = `(
	select uuid, id, name, '' as description, is_public, max_file_size, allowed_mime_types, 0::bigint as total_files, type,
	       owner, created_at, ` + noUser + ` as created_by, updated_at, ` + noUser + ` as updated_by, deleting
	from storage.buckets) b`

// fileSource returns the querier and the table for the files that an actor may see.
func fileSource(p *projectdb.Project, a actor.Actor) (q pg.Querier, table string) {
	if a.BypassesPolicies() {
		return p.Trusted(), "storage.files"
	}
	return a.On(p.Questions()), "storage.objects"
}

// noUser is a UUID that no user has.
const noUser = `'00000000-0000-0000-0000-000000000000'::uuid`

// version identifies the container or file version that the policies decided on.
type version struct {
	UUID      uuid.UUID
	Name      string
	UpdatedAt time.Time `json:"updated_at"`
}

// matches reports whether f is this version.
func (v version) matches(f File) bool { return v.UUID == f.UUID && v.UpdatedAt.Equal(f.UpdatedAt) }

// errFileChanged reports that the file is a different version than the policies decided on.
var errFileChanged = errors.New("the file was changed concurrently")

// ask asks whether the policies allow a change to storage.buckets or storage.objects, and returns
// the rows that it would change. It fails with Forbidden if they do not.
//
// The change itself always fails: with storage_api_only if the policies allow it.
func ask(
	ctx context.Context, p *projectdb.Project, a actor.Actor, sql string, args pgx.StrictNamedArgs,
) ([]version, error) {
	var rows []version
	_, err := pg.Exec(ctx, a.On(p.Questions()), sql, args)
	pgErr, _ := errors.AsType[*pgconn.PgError](err)
	if pgErr == nil || pgErr.ConstraintName != "storage_api_only" {
		return nil, actor.Fault(err)
	}

	if pgErr.Detail != "" && pgErr.Code == "42501" {
		if err := json.Unmarshal([]byte(pgErr.Detail), &rows); err != nil {
			return nil, err
		}
	}

	return rows, nil
}

// askForOne is [ask] for a change to one row. It fails with NotFound if the policies hide it.
func askForOne(
	ctx context.Context, p *projectdb.Project, a actor.Actor, sql string, args pgx.StrictNamedArgs,
) (version, error) {
	rows, err := ask(ctx, p, a, sql, args)
	if err == nil && len(rows) == 0 {
		err = fault.Missing()
	}
	if err != nil {
		return version{}, err
	}

	return rows[0], nil
}

// ownerUUID returns the end user who owns what the actor stores, or nil. Members own nothing.
func ownerUUID(a actor.Actor) *uuid.UUID {
	id, err := uuid.Parse(ownerID(a))
	if err != nil {
		return nil
	}

	return &id
}

// ownerID is [ownerUUID] as text, since applications may choose it.
func ownerID(a actor.Actor) string {
	if a.Member {
		return ""
	}
	return a.Subject
}

// optional returns nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
