package account

import (
	"context"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// maxMailedAdmins bounds the admins that one notice is mailed to.
const maxMailedAdmins = 50

// MailAdmins enqueues a mail to the admins and owners of a project, all or none. The template gets
// the values username and project besides data.
func (s *Service) MailAdmins(ctx context.Context, project uuid.UUID, template string, data map[string]string) error {
	admins, err := pg.All[struct{ Email, Username, Project string }](ctx, s.Queue.Pool, `
		select u.email, u.username, p.name as project
		from platform.projects p
		join platform.members m on m.organization_uuid = p.organization_uuid and m.role <= @role
		join platform.users u on u.uuid = m.user_uuid and u.status = 'active'
		where p.uuid = @project order by m.role, m.created_at, u.uuid limit @most`,
		pgx.StrictNamedArgs{"project": project, "role": Admin, "most": maxMailedAdmins})
	if err != nil {
		return err
	}

	return pg.InTx(ctx, s.Queue.Pool, func(tx pgx.Tx) error {
		for _, a := range admins {
			values := maps.Clone(data)
			values["username"], values["project"] = a.Username, a.Project
			if _, err := s.Queue.InsertTx(ctx, tx, Mail{Template: template, To: a.Email, Data: values,
				Project: someUUID(project)}); err != nil {
				return err
			}
		}

		return nil
	})
}
