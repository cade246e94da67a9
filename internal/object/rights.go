package object

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// maxQuestionTime bounds a statement on policies, also of a role without a timeout.
	maxQuestionTime = 30 * time.Second

	// questionLockTimeout bounds their wait for locks of the project's owner on the tables.
	questionLockTimeout = "3s"
)

// Actor is an application's caller of the Storage API: an end user, or the holder of a key. The
// project's policies on storage.buckets and storage.objects decide about its requests, except for
// the role service_role.
type Actor struct {
	Role    string        // anon, authenticated or service_role
	Claims  []byte        // of its token, a JSON object; nil means the role only
	Subject string        // sub of its token, "" for a key
	Timeout time.Duration // of a statement that evaluates policies; 0 means none
}

// serviceRole is the role to which no policy applies.
const serviceRole = "service_role"

// bypassesPolicies reports whether no policy applies.
func (a Actor) bypassesPolicies() bool { return a.Role == serviceRole }

// userUUID returns the end user, or zero.
func (a Actor) userUUID() uuid.UUID {
	id, _ := uuid.Parse(a.Subject)
	return id
}

// statementTimeout returns the timeout of a statement on policies, in milliseconds.
func (a Actor) statementTimeout() string {
	timeout := maxQuestionTime
	if a.Timeout > 0 {
		timeout = min(timeout, a.Timeout)
	}

	return strconv.FormatInt(timeout.Milliseconds(), 10)
}

// buckets returns the querier for buckets with the actor's rights, and the table to query.
func (a Actor) buckets(p *projectdb.Project) (q pg.Querier, table string) {
	if a.bypassesPolicies() {
		return p.Trusted(), "storage.containers"
	}
	return actorQuerier{p, a}, "storage.buckets"
}

// objects returns the querier for objects with the actor's rights, and the table to query.
func (a Actor) objects(p *projectdb.Project) (q pg.Querier, table string) {
	if a.bypassesPolicies() {
		return p.Trusted(), "storage.files"
	}
	return actorQuerier{p, a}, "storage.objects"
}

// policyFault assigns a kind to an error of a statement that evaluates policies, which are user
// code. Their texts stay in the log.
func policyFault(err error) error {
	state := pg.State(err)
	switch state {
	case "57014": // query_canceled
		return fault.New(fault.Unavailable, "the policies took too long").WithCode("policy_timeout").WithCause(err)
	case "42501": // insufficient_privilege
		return fault.New(fault.Forbidden, "new row violates row-level security policy").WithCause(err)
	}

	const writes = "25006" // read_only_sql_transaction
	if known := pg.Fault(err); state == "" || (state != writes && fault.Of(known).Kind != fault.Internal) {
		return known
	}

	return fault.New(fault.Unprocessable, "a policy of the project failed with SQLSTATE %s", state).
		WithCode("policy_failed").WithCause(err)
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
	ctx context.Context, p *projectdb.Project, a Actor, sql string, args pgx.StrictNamedArgs,
) ([]seenObject, error) {
	var seen []seenObject
	_, err := pg.Exec(ctx, actorQuerier{p, a}, sql, args)
	failed, _ := errors.AsType[*pgconn.PgError](err)
	if failed == nil || failed.ConstraintName != "storage_api_only" {
		return nil, policyFault(err)
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
