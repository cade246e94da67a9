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
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// buckets returns the querier for buckets with the actor's rights, and the table to query.
func buckets(p *projectdb.Project, a actor.Actor) (q pg.Querier, table string) {
	if a.BypassesPolicies() {
		return p.Trusted(), "storage.containers"
	}
	return a.On(p.Questions()), "storage.buckets"
}

// objects returns the querier for objects with the actor's rights, and the table to query.
func objects(p *projectdb.Project, a actor.Actor) (q pg.Querier, table string) {
	if a.BypassesPolicies() {
		return p.Trusted(), "storage.files"
	}
	return a.On(p.Questions()), "storage.objects"
}

// seenObject is an object as the policies have seen it.
type seenObject struct {
	UUID      uuid.UUID
	Name      string
	UpdatedAt time.Time `json:"updated_at"`
}

// matches reports whether f is the same version of the same object.
func (s seenObject) matches(f File) bool { return s.UUID == f.UUID && s.UpdatedAt.Equal(f.UpdatedAt) }

// ask asks whether the policies allow a change of storage.buckets or storage.objects, and returns
// the objects that it would change. It fails with Forbidden if they do not.
//
// The change itself always fails: with storage_api_only if the policies allow it.
func ask(
	ctx context.Context, p *projectdb.Project, a actor.Actor, sql string, args pgx.StrictNamedArgs,
) ([]seenObject, error) {
	var seen []seenObject
	_, err := pg.Exec(ctx, a.On(p.Questions()), sql, args)
	failed, _ := errors.AsType[*pgconn.PgError](err)
	if failed == nil || failed.ConstraintName != "storage_api_only" {
		return nil, actor.Fault(err)
	}

	if failed.Detail != "" && failed.Code == "42501" {
		if err := json.Unmarshal([]byte(failed.Detail), &seen); err != nil {
			return nil, err
		}
	}

	return seen, nil
}

// ownership holds the columns of a file that only applications set.
type ownership struct {
	application  bool // false: uploaded by a member of the project
	owner        string
	cacheControl string
	metadata     []byte // JSON
	headers      Headers
}

// ownerUUID returns the owner, or nil if its identifier is no UUID.
func (o ownership) ownerUUID() *uuid.UUID {
	id, err := uuid.Parse(o.owner)
	if err != nil {
		return nil
	}

	return &id
}

// arguments adds the arguments of the columns to those of a statement.
func (o ownership) arguments(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["owner"], args["owner_id"], args["cache_control"] = o.ownerUUID(), optional(o.owner), optional(o.cacheControl)
	args["metadata"], args["headers"] = optional(string(o.metadata)), o.headers

	return args
}

// optional returns nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
