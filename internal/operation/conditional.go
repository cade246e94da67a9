package operation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Each response to a read carries an ETag, the body's hash. A PUT or DELETE on the same path may
// send it in If-Match; the change runs only if the read would still return that body.

// etagOf returns a response body's strong ETag.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// MatchesETag reports whether a list of ETags contains tag or *. weak selects weak comparison, as
// for If-None-Match.
func MatchesETag(list []string, tag string, weak bool) bool {
	for _, candidate := range strings.Split(strings.Join(list, ","), ",") {
		candidate = strings.TrimSpace(candidate)
		if weak {
			candidate = strings.TrimPrefix(candidate, "W/")
		}

		if candidate == tag || candidate == "*" {
			return true
		}
	}

	return false
}

// Complete ends the registration. It sets reader on each PUT and DELETE route: the GET route with
// the same path, whose response defines the ETag that If-Match is compared with. It adds status 412
// to operations that declare 404; the others answer with a status that they declare.
func (p *Pipeline) Complete() {
	for _, rt := range p.routes {
		if rt.op.Method != http.MethodPut && rt.op.Method != http.MethodDelete {
			continue
		}

		i := slices.IndexFunc(p.routes, func(other *route) bool {
			return other.op.Method == http.MethodGet && other.op.Path == rt.op.Path &&
				other.op.Access.target == rt.op.Access.target && other.op.Access.public == rt.op.Access.public &&
				other.hasEnvelope()
		})
		if i < 0 {
			continue
		}

		rt.reader = p.routes[i]

		if slices.Contains(rt.op.Errors, http.StatusNotFound) {
			rt.op.Errors = append(slices.Clone(rt.op.Errors), http.StatusPreconditionFailed)
		}
	}
}

// hasEnvelope reports whether the operation responds with an envelope.
func (rt *route) hasEnvelope() bool { return !rt.output.Implements(reflect.TypeFor[http.Handler]()) }

// maxConditionalAttempts limits how often a conditional request runs again because concurrent
// changes interrupt it.
const maxConditionalAttempts = 20

// ifMatch runs a change if the target's ETag matches the request's If-Match. The audit log has all
// changes in a database: an entry between the check and the change fails the attempt, and both run
// again.
func (q *request) ifMatch(ctx context.Context, next step) (any, error) {
	ifMatch := q.http.Header.Values("If-Match")
	if len(ifMatch) == 0 || q.op.Method == http.MethodGet || slices.ContainsFunc(q.params, func(p param) bool {
		return p.name == "If-Match"
	}) {
		return next(ctx)
	}
	if q.reader == nil {
		return nil, fault.OnField(fault.Invalid, "If-Match", "unknown", "is not supported by this operation")
	}

	for range maxConditionalAttempts {
		positions, err := q.auditPositions(ctx)
		if err != nil {
			return nil, err
		}

		tag, err := q.reader.etag(ctx, q.http, q.project)
		if err != nil {
			return nil, err
		}

		if !MatchesETag(ifMatch, tag, false) {
			return nil, fault.OnField(fault.Precondition, "If-Match", "changed",
				"does not match the current state")
		}

		result, err := next(audit.Expect(ctx, positions...))
		if !errors.Is(err, audit.ErrPositionChanged) {
			return result, err
		}
	}

	return nil, fault.New(fault.Conflict, "concurrent changes prevented the request; try again").WithCode("busy")
}

// auditPositions returns the positions in the audit logs that the change may write to.
func (q *request) auditPositions(ctx context.Context) ([]audit.Position, error) {
	position, err := q.config.Store.AuditPosition(ctx)
	// Only an active project has a reachable database.
	if err != nil || q.project == nil || Caller(ctx).Status != platform.Active {
		return []audit.Position{position}, err
	}

	projectPosition, err := audit.PositionOf(ctx, q.project.Trusted())
	return []audit.Position{position, projectPosition}, err
}

// etag returns the ETag that the operation would return for the request's path.
func (rt *route) etag(ctx context.Context, r *http.Request, p *projectdb.Project) (string, error) {
	input := reflect.New(rt.inputType)
	get := r.Clone(ctx)
	get.URL.RawQuery = ""
	if faults := bind(rt.params, get, input.Elem(), rt.op.IgnoreUnknownQuery); len(faults) > 0 {
		return "", invalid(fault.Invalid, faults)
	}

	result, err := rt.run(ctx, p, input.Interface())
	if err != nil {
		return "", err
	}

	return etagOf(rt.render(result).Body), nil
}
