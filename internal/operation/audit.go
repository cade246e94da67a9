package operation

import (
	"context"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"

	"socle/internal/audit"
	"socle/internal/httpx"
	"socle/internal/platform"
)

// withAudit returns a context in which each change of the request is written to the audit log.
func (rt *route) withAudit(ctx context.Context, r *http.Request, body any) context.Context {
	if rt.op.Method == http.MethodGet {
		return ctx
	}

	c, known := Caller(ctx), httpx.From(ctx)
	e := audit.Entry{
		Action:  rt.op.ID,
		Client:  known.Client.String(),
		Request: known.ID,
		Target:  r.URL.Path,
		Fields:  rt.membersOf(body),
	}

	if c.Project.Valid {
		e.Project = c.Project.UUID.String()
	}
	if c.User != (platform.Caller{}).User {
		e.Actor, e.Via = c.User.String(), c.Session.String()
	}
	if key := r.Header.Get(idempotencyHeader); key != "" && rt.repeatable() {
		e.Key = hex.EncodeToString(rt.requestKey(ctx, key))
	}

	return audit.Begin(ctx, rt.config.AuditKey, e)
}

// membersOf returns the sorted names of the body's members that the operation declares.
func (rt *route) membersOf(body any) []string {
	object, ok := body.(map[string]any)
	if !ok {
		return nil
	}

	known := rt.registry.SchemaFromRef(rt.body.Ref)
	if known == nil {
		known = rt.body
	}

	names := slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		return known.Properties[name] == nil
	})
	return slices.Clip(names)
}
