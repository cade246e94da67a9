package account

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// AuditEntry is an entry of an audit log with the present names of its UUIDs. A name is null if the
// thing is gone.
type AuditEntry struct {
	audit.Recorded
	ActorName        *string `json:"actorName" nullable:"true" doc:"User name of the actor."`
	ActorEmail       *string `json:"actorEmail" nullable:"true"`
	ProjectName      *string `json:"projectName" nullable:"true"`
	OrganizationName *string `json:"organizationName" nullable:"true" doc:"Organization of the project."`
}

// NameEntries adds names to audit log entries.
func (s *Service) NameEntries(ctx context.Context, entries []audit.Recorded) ([]AuditEntry, error) {
	var actors, projects []uuid.UUID
	for _, e := range entries {
		actors, projects = appendUUID(actors, e.Actor), appendUUID(projects, e.Project)
	}

	users, err := s.auditUsers(ctx, actors)
	if err != nil {
		return nil, err
	}

	owned, err := pg.All[struct {
		UUID               uuid.UUID
		Name, Organization string
	}](ctx, s.q, `
		select p.uuid, p.name, o.name as organization
		from platform.projects p join platform.organizations o on o.uuid = p.organization_uuid
		where p.uuid = any(@projects::uuid[])`, pgx.StrictNamedArgs{"projects": projects})
	if err != nil {
		return nil, err
	}

	named := make([]AuditEntry, len(entries))
	for i, e := range entries {
		named[i].Recorded = e
		for _, u := range users {
			if u.UUID.String() == e.Actor {
				named[i].ActorName, named[i].ActorEmail = &u.Username, &u.Email
			}
		}
		for _, p := range owned {
			if p.UUID.String() == e.Project {
				named[i].ProjectName, named[i].OrganizationName = &p.Name, &p.Organization
			}
		}
	}

	return named, nil
}

func appendUUID(all []uuid.UUID, text string) []uuid.UUID {
	if id, err := uuid.Parse(text); err == nil && !slices.Contains(all, id) {
		return append(all, id)
	}
	return all
}

type auditUser struct {
	UUID            uuid.UUID
	Username, Email string
}

func (s *Service) auditUsers(ctx context.Context, ids []uuid.UUID) ([]auditUser, error) {
	return pg.All[auditUser](ctx, s.q,
		`select uuid, username, email from platform.users where uuid = any(@ids::uuid[]) order by username`,
		pgx.StrictNamedArgs{"ids": ids})
}

// FindActor returns the UUID of the user whom a text names: a UUID, or the user name or the address
// of one of the actors of a log. It fails with Invalid for any other text: an answer without
// entries would look like a user without changes.
func (s *Service) FindActor(ctx context.Context, text string, actors []string) (string, error) {
	if id, err := uuid.Parse(text); err == nil {
		return id.String(), nil
	}

	var ids []uuid.UUID
	for _, a := range actors {
		ids = appendUUID(ids, a)
	}

	users, err := s.auditUsers(ctx, ids)
	if err != nil {
		return "", err
	}

	var names []string
	for _, u := range users {
		if fold(u.Username) == fold(text) || fold(u.Email) == fold(text) {
			return u.UUID.String(), nil
		}
		names = append(names, u.Username)
	}

	hint := ""
	if len(names) > 0 {
		hint = "; did you mean " + config.Nearest(text, names) + "?"
	}

	return "", fault.OnField(fault.Invalid, "actor", "unknown",
		"must be a UUID, or the name or address of a user with an entry in this log%s", hint)
}
