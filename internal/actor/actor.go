// Package actor runs statements as a caller of a project's application: in the caller's role and
// with its claims, so that row level security decides about them.
//
// A statement takes one round trip: settings, the statement, the end of its transaction, and the
// reset of the session, which the user code of policies may have changed. Only this package and pg
// reset sessions. Package rest/session streams results on a wire of its own; its settings and its
// reset come from here.
package actor

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxStatementTime bounds a statement, also of a role without a timeout.
	maxStatementTime = 30 * time.Second

	// lockTimeout bounds the wait for locks of the project's owner on tables with policies.
	lockTimeout = "3s"
)

// ServiceRole is the role to which no policy applies.
const ServiceRole = "service_role"

// Actor is a caller of a project's application, an end user or the holder of a key, or a member of
// the project. The project's policies decide about its statements, except for [ServiceRole].
type Actor struct {
	Role    string        // anon, authenticated or service_role
	Claims  []byte        // claims of its token, a JSON object; nil means the role only
	Subject string        // sub of its token, or UUID of the member; "" for a key
	Timeout time.Duration // timeout of a statement; 0 means none
	Member  bool          // a member of the project, by the platform API
}

// Member returns a member of the project, or with a zero UUID the platform itself.
func Member(user uuid.UUID) Actor {
	return Actor{Role: ServiceRole, Subject: user.String(), Member: true}
}

// Service returns the holder of a secret key.
func Service() Actor { return Actor{Role: ServiceRole} }

// BypassesPolicies reports whether no policy applies.
func (a Actor) BypassesPolicies() bool { return a.Role == ServiceRole }

// UserUUID returns the end user or the member, or zero.
func (a Actor) UserUUID() uuid.UUID {
	id, _ := uuid.Parse(a.Subject)
	return id
}

// On returns a querier of the actor's statements. Its pool may assume the actor's role, and leaves
// the reset of its sessions to the querier.
func (a Actor) On(pool *pgxpool.Pool) Querier { return Querier{pool, a} }

// settings returns the parameters of a transaction.
func (a Actor) settings(readOnly bool) []Setting {
	claims := a.Claims
	if claims == nil {
		claims, _ = json.Marshal(map[string]string{"role": a.Role}) // texts have no error
	}

	return []Setting{
		{"request.jwt.claims", claims},
		{"statement_timeout", a.statementTimeout()},
		{"lock_timeout", []byte(lockTimeout)},
		{"transaction_read_only", strconv.AppendBool(nil, readOnly)},
		{"role", []byte(a.Role)},
	}
}

// statementTimeout returns the timeout of a statement in milliseconds.
func (a Actor) statementTimeout() []byte {
	timeout := maxStatementTime
	if a.Timeout > 0 {
		timeout = min(timeout, a.Timeout)
	}

	return strconv.AppendInt(nil, timeout.Milliseconds(), 10)
}
