package job

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/platform"
)

// SendInvitation enqueues the mail of an invitation within the transaction. Its link adds the
// recipient to the organization.
func (q *Queue) SendInvitation(ctx context.Context, tx *platform.Store, inviter uuid.UUID, i platform.Invited) error {
	user, err := tx.GetUser(ctx, inviter)
	if err != nil {
		return err
	}

	organization, err := tx.GetOrganization(ctx, i.OrganizationUUID, inviter)
	if err != nil {
		return err
	}

	link, err := tx.CreateLink(ctx, platform.NewLink{Purpose: platform.Invitation,
		Subject: uuid.NullUUID{UUID: i.UUID, Valid: true},
		Email:   i.Email, Life: platform.InvitationLife})
	if err != nil {
		return err
	}

	return q.SendMail(ctx, tx, Mail{Template: "invitation",
		To: i.Email, Link: uuid.NullUUID{UUID: link.UUID, Valid: true},
		Data: map[string]string{"organization": organization.Name, "inviter": user.Username, "role": i.RoleID.String(),
			"expires": i.ExpiresAt.UTC().Format("2 January 2006 15:04 " + time.UTC.String())}})
}
