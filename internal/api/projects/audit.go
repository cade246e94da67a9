package projects

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerAudit(p *operation.Pipeline) {
	operation.HandleInProject(p, listAudit, s.listAudit, nil)
	operation.Handle(p, listInstanceAudit, s.listInstanceAudit, nil)
}

var listAudit = operation.Operation{
	ID: "listAudit", Method: "GET",
	Path: "/projects/{projectUUID}/audit", Summary: "List a project's audit log",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Each entry has the actor, the time, the client, the operation and the target of a change. A project " +
		"has two logs: `data` covers its own database and is part of backups; `platform` covers entities outside " +
		"of it, such as keys and backups. Each log is a chain of keyed hashes, which `socle audit verify` checks.",
}

type listAuditInput struct {
	operation.PageQuery
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
	ctx context.Context, p *projectdb.Project, in *listAuditInput,
) (operation.Answer[[]audit.Recorded, operation.PageMetadata], error) {
	page, filter := in.By(in.Sort), in.filter()
	if in.Log == "data" {
		entries, total, err := p.Audit(ctx, filter, page)
		return operation.ListOf(entries, page, total), err
	}

	filter.Project = p.UUID.String()
	entries, total, err := s.Lifecycle.Audit(ctx, filter, page)
	return operation.ListOf(entries, page, total), err
}

var listInstanceAudit = operation.Operation{
	ID: "listInstanceAudit", Method: "GET",
	Path: "/admin/audit", Summary: "List the instance's audit log",
	Access: operation.Administrator, Errors: []int{400, 401, 403, 500},
	Notes: "Covers users, organizations, projects, keys, backups and settings: each entry has the actor, the time, " +
		"the client, the operation and the target of a change. Changes inside a project's database are in the " +
		"project's audit log.",
}

type listInstanceAuditInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"seq" default:"seq"`
	AuditFilter
}

func (s *Server) listInstanceAudit(
	ctx context.Context, in *listInstanceAuditInput,
) (operation.Answer[[]audit.Recorded, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	entries, total, err := s.Lifecycle.Audit(ctx, in.filter(), page)
	return operation.ListOf(entries, page, total), err
}
