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

// bypassesPolicies reports whether no policy applies.
func (a Actor) bypassesPolicies() bool { return a.Role == "service_role" }

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

// asActor runs f in a transaction in which policies apply to the actor, and rolls it back.
func asActor(ctx context.Context, p *projectdb.Project, a Actor, f func(tx pgx.Tx) error) error {
	return policyFault(runAsActor(ctx, p, a, f))
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

	if known := pg.Fault(err); state == "" || fault.Of(known).Kind != fault.Internal {
		return known
	}

	return fault.New(fault.Unprocessable, "a policy of the project failed with SQLSTATE %s", state).
		WithCode("policy_failed").WithCause(err)
}

func runAsActor(ctx context.Context, p *projectdb.Project, a Actor, f func(tx pgx.Tx) error) error {
	claims := a.Claims
	if claims == nil {
		var err error
		if claims, err = json.Marshal(map[string]string{"role": a.Role}); err != nil {
			return err
		}
	}

	// One round trip: a request to begin has no arguments.
	begin := "begin; select pg_catalog.set_config('request.jwt.claims', " + pg.Literal(string(claims)) + ", true)" +
		", pg_catalog.set_config('statement_timeout', " + pg.Literal(a.statementTimeout()) + ", true)" +
		", pg_catalog.set_config('lock_timeout', " + pg.Literal(questionLockTimeout) + ", true)" +
		", pg_catalog.set_config('role', " + pg.Literal(a.Role) + ", true)"

	tx, err := p.Questions().BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return pg.Fault(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))

	return f(tx)
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
	err := runAsActor(ctx, p, a, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args)
		return err
	})

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
	args["metadata"] = optional(string(o.metadata))

	return args
}

// optional returns nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
