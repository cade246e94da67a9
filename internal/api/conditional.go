package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// An answer that is read has an ETag, the hash of its bytes. A request that changes or deletes the same path may send it back in
// If-Match: then it is carried out only if what it reads there would still be answered alike.

// tagOf returns the strong ETag of an answer's body.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// matches reports whether a header that lists ETags names this one. weakly is how If-None-Match compares.
func matches(list []string, tag string, weakly bool) bool {
	for _, one := range strings.Split(strings.Join(list, ","), ",") {
		one = strings.TrimSpace(one)
		if weakly {
			one = strings.TrimPrefix(one, "W/")
		}

		if one == tag || one == "*" {
			return true
		}
	}

	return false
}

// pair lets every operation that changes or deletes what another one reads at the same path know that one. One that tells
// what is missing (404) from what is wrong tells what has changed (412), too; the others say it in the words they have.
func (s *Server) pair() {
	for _, rt := range s.routes {
		if rt.op.Method != http.MethodPut && rt.op.Method != http.MethodDelete {
			continue
		}

		i := slices.IndexFunc(s.routes, func(other *route) bool {
			return other.op.Method == http.MethodGet && other.op.Path == rt.op.Path &&
				other.op.Access.by == rt.op.Access.by && other.readable()
		})
		if i < 0 {
			continue
		}

		rt.twin = s.routes[i]

		if slices.Contains(rt.op.Errors, http.StatusNotFound) {
			rt.op.Errors = append(slices.Clone(rt.op.Errors), http.StatusPreconditionFailed)
		}
	}
}

// readable reports whether the operation answers with an envelope.
func (rt *route) readable() bool { return !rt.output.Implements(reflect.TypeFor[http.Handler]()) }

// changesAtOnce is how often a conditional request tries again because something else was changed meanwhile.
const changesAtOnce = 20

// ifMatch runs a change if what it changes is still what the request's If-Match names. Nothing comes between the look and the change: the audit
// log, which has every change of a database in order, must have none in between, or both are done again.
func (rt *route) ifMatch(
	ctx context.Context, r *http.Request, p *tenant.Project, run func(context.Context) (any, error),
) (any, error) {
	wanted := r.Header.Values("If-Match")
	if len(wanted) == 0 || rt.op.Method == http.MethodGet || slices.ContainsFunc(rt.params, func(p param) bool {
		return p.name == "If-Match"
	}) {
		return run(ctx)
	}
	if rt.twin == nil {
		return nil, fault.OnField(fault.Invalid, "If-Match", "unknown", "is not taken here")
	}

	for range changesAtOnce {
		heads, err := rt.heads(ctx, p)
		if err != nil {
			return nil, err
		}

		tag, err := rt.twin.tag(ctx, r, p)
		if err != nil {
			return nil, err
		}

		if !matches(wanted, tag, false) {
			return nil, fault.OnField(fault.Precondition, "If-Match", "changed",
				"names a state that is not the present one")
		}

		result, err := run(audit.Expect(ctx, heads...))
		if !errors.Is(err, audit.ErrMoved) {
			return result, err
		}
	}

	return nil, fault.New(fault.Conflict, "others change things at the same time; try again").WithCode("busy")
}

// heads returns the ends of the audit logs in which the change may be noted.
func (rt *route) heads(ctx context.Context, p *tenant.Project) ([]audit.Head, error) {
	head, err := rt.platform.AuditHead(ctx)
	if err != nil || p == nil || caller(ctx).Status != platform.Active { // nobody gets into the database of another
		return []audit.Head{head}, err
	}

	own, err := audit.HeadOf(ctx, p.Trusted())
	return []audit.Head{head, own}, err
}

// tag returns the ETag that the operation would answer with at the request's path.
func (rt *route) tag(ctx context.Context, r *http.Request, p *tenant.Project) (string, error) {
	input := reflect.New(rt.input)
	look := r.Clone(ctx)
	look.URL.RawQuery = ""
	if faults := bind(rt.params, look, input.Elem()); len(faults) > 0 {
		return "", &fault.Error{Kind: fault.Invalid, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
	}

	result, err := rt.run(ctx, p, input.Interface())
	if err != nil {
		return "", err
	}

	return tagOf(rt.render(result).Body), nil
}
