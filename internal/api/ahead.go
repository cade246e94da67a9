package api

import (
	"context"
	"net/http"

	"socle/internal/tenant"
)

// foreseeing is an input that knows what its operation will ask the project's database. That can be asked while the platform's database is asked for the
// caller's right, since neither answer depends on the other; the operation takes it from the input when it runs, which is after the right was found.
type foreseeing interface {
	foresee(ctx context.Context, p *tenant.Project)
}

type aheadKey struct{}

// ahead returns a context in which [meanwhile] has the input ask. As for a stranger (see admit) there must be a connection to the project's database:
// nobody opens one without a right.
func (rt *route) ahead(ctx context.Context, r *http.Request, input any) context.Context {
	in, ok := input.(foreseeing)
	if !ok {
		return ctx
	}
	id := rt.op.Access.scope(r).Project
	if !id.Valid || !rt.projects.Connected(id.UUID) {
		return ctx
	}
	return context.WithValue(ctx, aheadKey{}, func() { in.foresee(ctx, rt.projects.Open(id.UUID)) })
}

// meanwhile has asked what an operation foresees, if it does. It does not wait.
func meanwhile(ctx context.Context) {
	if ask, ok := ctx.Value(aheadKey{}).(func()); ok {
		ask()
	}
}
