// Package actor runs statements as a caller of a project's application: in the caller's role and
// with its claims, so that row level security decides about them.
//
// A statement takes one round trip: settings, the statement, commit, and a session reset, because
// user code in policies may have changed the session. Only this package and pg reset sessions.
// Package rest/session streams results over its own wire and takes its settings and reset from
// here.
package actor

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxStatementTime bounds a statement even if its role has no timeout.
	maxStatementTime = 30 * time.Second

	// lockTimeout bounds the project owner's lock waits on tables with policies.
	lockTimeout = "3s"
)

// ServiceRole bypasses all policies.
const ServiceRole = "service_role"

// Actor is a caller of a project's application (an end user or a key holder) or a project member.
// The project's policies decide about its statements, except for [ServiceRole].
type Actor struct {
	Role    string        // anon, authenticated or service_role
	Claims  []byte        // claims of its token, a JSON object; nil means the role only
	Subject string        // sub claim of its token, or member UUID; "" for a key
	Timeout time.Duration // statement timeout; 0 means none
	Member  bool          // project member, through the platform API
}

// Member returns a project member, or with a zero UUID the platform itself.
func Member(user uuid.UUID) Actor {
	return Actor{Role: ServiceRole, Subject: user.String(), Member: true}
}

// Service returns a secret key's holder.
func Service() Actor { return Actor{Role: ServiceRole} }

// BypassesPolicies reports whether no policy applies.
func (a Actor) BypassesPolicies() bool { return a.Role == ServiceRole }

// UserUUID returns the end user's or the member's UUID, or zero.
func (a Actor) UserUUID() uuid.UUID {
	id, _ := uuid.Parse(a.Subject)
	return id
}

// On returns a querier for the actor's statements. The pool may assume the actor's role, and leaves
// session resets to the querier.
func (a Actor) On(pool *pgxpool.Pool) Querier { return Querier{pool, a} }

// settings returns the transaction parameters.
func (a Actor) settings(readOnly bool) []Setting {
	return append([]Setting{
		{"statement_timeout", a.statementTimeout()},
		{"lock_timeout", []byte(lockTimeout)},
		{"transaction_read_only", strconv.AppendBool(nil, readOnly)},
	}, a.Identity()...)
}

// Identity returns the transaction parameters that policies see: the claims, and the role.
func (a Actor) Identity() []Setting {
	claims := a.Claims
	if claims == nil {
		claims, _ = json.Marshal(map[string]string{"role": a.Role}) // texts have no error
	}

	return []Setting{{"request.jwt.claims", claims}, {"role", []byte(a.Role)}}
}

// settingValues returns the values of [Actor.settings].
func (a Actor) settingValues(readOnly bool) [][]byte {
	var values [][]byte
	for _, s := range a.settings(readOnly) {
		values = append(values, s.Value)
	}

	return values
}

// statementTimeout returns the timeout in milliseconds.
func (a Actor) statementTimeout() []byte {
	timeout := maxStatementTime
	if a.Timeout > 0 {
		timeout = min(timeout, a.Timeout)
	}

	return strconv.AppendInt(nil, timeout.Milliseconds(), 10)
}
