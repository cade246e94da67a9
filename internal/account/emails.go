package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const emailChangeTTL = 24 * time.Hour // link lifetime

// ChangeEmail mails a link to a user's new address, which changes the address when it is opened,
// and a notice to the current one. It fails with Unprocessable on email or password if that is
// invalid, and with TooMany beyond the limits.
func (s *Service) ChangeEmail(ctx context.Context, client Client, id uuid.UUID, address, password string) error {
	email, err := cleanEmail(address)
	if err != nil {
		return err
	}

	user, err := s.confirmPassword(ctx, client, id, password)
	if err != nil {
		return err
	}

	if err := s.Attempts.CountFrom(ctx, mailNetworkLimit, client.Network, mailAccountLimit,
		user.UUID.String()); err != nil {
		return err
	}

	data := map[string]string{"username": user.Username, "email": email}
	return s.inTx(ctx, func(tx *Service) error {
		link, err := tx.CreateLink(ctx, NewLink{
			Purpose: EmailChange, User: someUUID(user.UUID), Email: email, TTL: emailChangeTTL,
		})
		if err != nil {
			return err
		}

		if err := tx.mail(ctx, Mail{Template: "email-change", To: email, Data: data,
			Link: someUUID(link.UUID)}); err != nil {
			return err
		}

		return tx.mail(ctx, Mail{Template: "email-changing", To: user.Email, Data: data})
	})
}

// ConfirmEmail changes a user's address by the token of a mailed link and returns the new address.
// It fails with Unprocessable on token if that is invalid, and with Conflict on email if the
// address was taken meanwhile.
func (s *Service) ConfirmEmail(ctx context.Context, client Client, linkToken string) (string, error) {
	id, ok := token.ParseLink(s.LinkKey, EmailChange, linkToken)
	if !ok {
		return "", InvalidLink()
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (string, error) {
		link, err := tx.UseLink(ctx, EmailChange, id)
		if err != nil {
			return "", err
		}

		audit.SetActor(ctx, link.UserUUID.UUID)

		user, err := tx.changeUser(ctx, link.UserUUID.UUID, uuid.Nil, userChange{email: &link.Email})
		if err != nil {
			return "", err
		}

		return user.Email, tx.rememberNetwork(ctx, client, user)
	})
}
