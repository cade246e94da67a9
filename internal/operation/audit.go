package operation

import (
	"context"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/httpx"
)

// audit adds the entry to the context that each change of the request appends to the audit log.
func (q *request) audit(ctx context.Context, next step) (any, error) {
	if q.op.Method == http.MethodGet {
		return next(ctx)
	}

	e := AuditEntry(ctx)
	e.Action, e.Target, e.Fields = q.op.ID, q.http.URL.Path, q.membersOf(q.body)

	if key := q.http.Header.Get(idempotencyHeader); key != "" && q.repeatable() {
		e.Key = hex.EncodeToString(q.requestKey(ctx, key))
	}

	ctx = audit.Begin(ctx, q.config.AuditKey, e)
	result, err := next(ctx)
	if q.project != nil && audit.Committed(ctx) {
		q.project.SetUnchained()
	}

	return result, err
}

// AuditEntry returns an audit entry with the request's caller, client and project.
func AuditEntry(ctx context.Context) audit.Entry {
	c, record := Caller(ctx), httpx.From(ctx)
	e := audit.Entry{Client: record.Client.String(), Request: record.ID}

	if c.Project.Valid {
		e.Project = c.Project.UUID.String()
	}
	if c.User != (account.Caller{}).User {
		e.Actor, e.Via = c.User.String(), c.Session.String()
	}

	return e
}

// membersOf returns the declared member names in the body, sorted.
func (rt *route) membersOf(body any) []string {
	object, ok := body.(map[string]any)
	if !ok {
		return nil
	}

	schema := rt.registry.SchemaFromRef(rt.bodySchema.Ref)
	if schema == nil {
		schema = rt.bodySchema
	}

	names := slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		return schema.Properties[name] == nil
	})
	return slices.Clip(names)
}
