package projects

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pg"
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
	Notes: "Each entry has the actor, the time, the client, the operation and the target of a change, newest first. A " +
		"project has two logs: `data` covers its own database and is part of backups; `platform` covers entities outside " +
		"of it, such as keys and backups. Each log is a chain of keyed hashes, which `socle audit verify` checks.",
}

type listAuditInput struct {
	operation.NewestFirstQuery
	Sort    string    `query:"sort" enum:"seq" default:"seq"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Log     string    `query:"log" enum:"data,platform" default:"data"`
	AuditFilter
}

// AuditFilter is embedded in the input when an operation lists audit entries.
type AuditFilter struct {
	Actor  string    `query:"actor" maxLength:"320" doc:"UUID, user name or e-mail address of a user."`
	Action string    `query:"action" maxLength:"63" doc:"ID of an operation."`
	From   time.Time `query:"from" format:"date-time"`
	To     time.Time `query:"to" format:"date-time" doc:"End of the range, exclusive."`
}

func (s *Server) listAudit(
	ctx context.Context, p *projectdb.Project, in *listAuditInput,
) (operation.Answer[[]account.AuditEntry, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	if in.Log == "data" {
		return s.auditEntries(ctx, auditLog{list: p.Audit, querier: p.Trusted()}, in.AuditFilter, page)
	}

	log := auditLog{list: s.Lifecycle.Audit, querier: s.Platform.DB().Querier(), project: p.UUID.String()}
	return s.auditEntries(ctx, log, in.AuditFilter, page)
}

// auditLog is a database's log, or the part that concerns a project.
type auditLog struct {
	list    func(context.Context, audit.Filter, pg.Page) ([]audit.Recorded, int64, error)
	querier pg.Querier
	project string // "": all entries
}

// auditEntries returns a page from a log. It refuses an actor and an action that it can't resolve.
func (s *Server) auditEntries(
	ctx context.Context, log auditLog, in AuditFilter, page pg.Page,
) (operation.Answer[[]account.AuditEntry, operation.PageMetadata], error) {
	none := operation.Answer[[]account.AuditEntry, operation.PageMetadata]{}
	filter := audit.Filter{Action: in.Action, Project: log.project, From: in.From, To: in.To}

	if in.Actor != "" {
		actors, err := audit.Actors(ctx, log.querier, log.project)
		if err != nil {
			return none, err
		}

		if filter.Actor, err = s.Accounts.FindActor(ctx, in.Actor, actors); err != nil {
			return none, err
		}
	}

	if in.Action != "" && !s.pipeline.HasOperation(in.Action) && !slices.Contains(audit.OtherActions, in.Action) {
		actions, err := audit.Actions(ctx, log.querier, log.project)
		if err != nil {
			return none, err
		}
		if len(actions) > 0 && !slices.Contains(actions, in.Action) {
			return none, fault.OnField(fault.Invalid, "action", "unknown",
				"must be an action of this log or the ID of an operation; did you mean %s?",
				config.Nearest(in.Action, actions))
		}
	}

	entries, total, err := log.list(ctx, filter, page)
	if err != nil {
		return none, err
	}

	entriesWithNames, err := s.Accounts.NameEntries(ctx, entries)
	return operation.ListOf(entriesWithNames, page, total), err
}

var listInstanceAudit = operation.Operation{
	ID: "listInstanceAudit", Method: "GET",
	Path: "/admin/audit", Summary: "List the instance's audit log",
	Access: operation.Administrator, Errors: []int{400, 401, 403, 500},
	Notes: "Covers users, organizations, projects, keys, backups and settings: each entry has the actor, the time, " +
		"the client, the operation and the target of a change, newest first. Changes inside a project's database are " +
		"in the project's audit log.",
}

type listInstanceAuditInput struct {
	operation.NewestFirstQuery
	Sort string `query:"sort" enum:"seq" default:"seq"`
	AuditFilter
}

func (s *Server) listInstanceAudit(
	ctx context.Context, in *listInstanceAuditInput,
) (operation.Answer[[]account.AuditEntry, operation.PageMetadata], error) {
	log := auditLog{list: s.Lifecycle.Audit, querier: s.Platform.DB().Querier()}
	return s.auditEntries(ctx, log, in.AuditFilter, in.By(in.Sort))
}
