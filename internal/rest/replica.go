package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/session"
)

// PositionHeader is the header with the position of a write. A client that sends it with a read
// gets an answer that has the write.
const PositionHeader = "X-Socle-Position"

// Replicas are standbys that answer reads.
type Replicas struct {
	// Default sends reads to a standby unless a request prefers the primary. Otherwise a request
	// asks for that by Prefer: read=replica.
	Default bool
	// Find returns a standby for a read as a role, which has the write at position unless that is
	// "". It reports false if the primary must answer.
	Find func(ctx context.Context, role, position string) (Replica, bool)
	// Position returns the position of what was committed before the call, "" if it is unknown.
	Position func(ctx context.Context) string
}

// Replica is a standby for one read.
type Replica struct {
	Pool  *pgxpool.Pool
	Check session.Statement // fails if the standby must not answer
	Alive context.Context   // ends when the standby is gone
}

// usesReplicas reports whether the request's reads may go to a standby.
func (c *call) usesReplicas() bool {
	switch r := c.server.Replicas; {
	case r == nil || c.prefer.Read == "primary":
		return false
	default:
		return r.Default || c.prefer.Read == "replica"
	}
}

// readReplica answers a GET or HEAD from a standby. It reports false if the primary must answer:
// no standby is fresh enough, or it could not answer as the primary would.
func (c *call) readReplica(ctx context.Context) (answered bool, err error) {
	if !c.usesReplicas() || (c.r.Method != http.MethodGet && c.r.Method != http.MethodHead) {
		return false, nil
	}

	found, ok := c.server.Replicas.Find(ctx, c.caller.Role, c.r.Header.Get(PositionHeader))
	if !ok {
		return false, nil
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(found.Alive, cancel)()

	c.replica = &found
	planned, err := c.attempt(ctx)
	c.replica = nil

	if _, begun := errors.AsType[*abortedError](err); err == nil || begun {
		return true, err
	}
	if c.r.Context().Err() != nil {
		return true, err
	}

	return planned && found.Alive.Err() == nil && !isReplicaError(err), err
}

// replicaStates are the SQLSTATEs of a statement that can succeed on the primary: the standby is
// behind, out of connections or no longer there, a row version was removed under a read, or a
// standby cannot do it at all.
var replicaStates = []string{
	"0A000", // feature_not_supported: serializable
	"25006", // read_only_sql_transaction
	"3D000", // invalid_catalog_name: not created yet
	"40001", // serialization_failure: conflict with recovery
	"40P01", // deadlock_detected: with recovery
	"53300", // too_many_connections
	"55000", // object_not_in_prerequisite_state: in recovery
	"57P",   // operator_intervention, but for a canceled query
	"08",    // connection_exception
	"28",    // invalid_authorization_specification: not created yet
}

// isReplicaError reports whether a read that failed on a standby belongs to the primary.
func isReplicaError(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return !isQueryError(err) && !errors.Is(err, context.DeadlineExceeded)
	}
	if session.IsStaleCatalog(err) || isGuard(err) || isChangedSchema(err) || session.IsMissingObject(err) {
		return true
	}
	if pg.EndedByLimit(e) {
		return false
	}

	for _, prefix := range replicaStates {
		if strings.HasPrefix(e.Code, prefix) {
			return true
		}
	}

	return false
}

// setPosition adds the position of the request's change, if its client reads from standbys.
func (c *call) setPosition(ctx context.Context) {
	if c.usesReplicas() {
		if position := c.server.Replicas.Position(ctx); position != "" {
			c.w.Header().Set(PositionHeader, position)
		}
	}
}
