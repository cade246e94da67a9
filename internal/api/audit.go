package api

import (
	"context"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"socle/internal/account"
	"socle/internal/audit"
	"socle/internal/httpx"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerAudit() {
	within(s, listAudit, s.listAudit, nil)
	open(s, listInstanceAudit, s.listInstanceAudit)
}

var listAudit = Operation{
	ID: "listAudit", Method: "GET",
	Path: "/projects/{projectUUID}/audit", Summary: "List a project's audit log",
	Access: projectInPath(platform.Admin), Errors: restrictedErrors,
	Notes: "Each entry has the actor, the time, the client, the operation and the target of a change. A project " +
		"has two logs: `data` covers its own database and is part of backups; `platform` covers entities outside " +
		"of it, such as keys and backups. Each log is a chain of keyed hashes, which `socle audit verify` checks.",
}

type listAuditInput struct {
	PageQuery
	Sort    string    `query:"sort" enum:"seq" default:"seq"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Log     string    `query:"log" enum:"data,platform" default:"data"`
	AuditFilter
}

// AuditFilter is embedded in the input of a list of audit entries.
type AuditFilter struct {
	Actor  string    `query:"actor" maxLength:"36" doc:"UUID of a user."`
	Action string    `query:"action" maxLength:"63" doc:"ID of an operation."`
	From   time.Time `query:"from" format:"date-time"`
	To     time.Time `query:"to" format:"date-time" doc:"End of the range, exclusive."`
}

func (f AuditFilter) filter() audit.Filter {
	return audit.Filter{Actor: f.Actor, Action: f.Action, From: f.From, To: f.To}
}

func (s *Server) listAudit(
	ctx context.Context, p *tenant.Project, in *listAuditInput,
) (Answer[[]audit.Recorded, PageMetadata], error) {
	page, filter := in.page(in.Sort), in.filter()
	if in.Log == "data" {
		entries, total, err := audit.List(ctx, p.Trusted(), filter, page)
		return listOf(entries, page, total), err
	}

	filter.Project = p.UUID.String()
	entries, total, err := s.platform.Audit(ctx, filter, page)
	return listOf(entries, page, total), err
}

var listInstanceAudit = Operation{
	ID: "listInstanceAudit", Method: "GET",
	Path: "/admin/audit", Summary: "List the instance's audit log",
	Access: administrator, Errors: []int{400, 401, 403, 500},
	Notes: "Covers users, organizations, projects, keys, backups and settings: each entry has the actor, the time, " +
		"the client, the operation and the target of a change. Changes inside a project's database are in the " +
		"project's audit log.",
}

type listInstanceAuditInput struct {
	PageQuery
	Sort string `query:"sort" enum:"seq" default:"seq"`
	AuditFilter
}

func (s *Server) listInstanceAudit(
	ctx context.Context, in *listInstanceAuditInput,
) (Answer[[]audit.Recorded, PageMetadata], error) {
	page := in.page(in.Sort)
	entries, total, err := s.platform.Audit(ctx, in.filter(), page)
	return listOf(entries, page, total), err
}

// withAudit returns a context in which each change of the request is written to the audit log.
func (rt *route) withAudit(ctx context.Context, r *http.Request, body any) context.Context {
	if rt.op.Method == http.MethodGet {
		return ctx
	}

	c, known := caller(ctx), httpx.From(ctx)
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
	if c.User != (account.Caller{}).User {
		e.Actor, e.Via = c.User.String(), c.Session.String()
	}
	if key := r.Header.Get(idempotencyHeader); key != "" && rt.repeatable() {
		e.Key = hex.EncodeToString(rt.requestKey(ctx, key))
	}

	return audit.Begin(ctx, rt.auditKey, e)
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
