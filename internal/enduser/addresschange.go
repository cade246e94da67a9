package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// prepareEmail counts an address change before the answer tells whether the new one is taken.
func (d *Directory) prepareEmail(ctx context.Context, u User, email string, c Client) error {
	if err := d.countChange(ctx, u, c); err != nil {
		return err
	}
	if d.ConfirmEmail {
		if err := d.countMail(ctx, email, c); err != nil {
			return err
		}
	}

	_, err := userByEmail(ctx, d.Rows(), email)
	if err == nil {
		return errEmailExists()
	}

	return fault.Ignore(err, fault.NotFound)
}

// changeEmail changes the address, or mails a link to both addresses if they must be confirmed.
func (d *Directory) changeEmail(
	ctx context.Context, tx pgx.Tx, u User, email string, challenge Challenge, redirect string,
) ([]mailArgs, error) {
	if !d.ConfirmEmail {
		if _, err := pg.Exec(ctx, tx, `
			update auth.users set email = @email, email_confirmed_at = now(), is_anonymous = false, updated_at = now(),
				raw_app_meta_data = case when is_anonymous then coalesce(raw_app_meta_data, '{}') || '{"provider": "email", "providers": ["email"]}'
					else raw_app_meta_data end
			where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
			return nil, err
		}

		return nil, saveEmailIdentity(ctx, tx, u.ID, email, true)
	}

	flow, err := createFlow(ctx, tx, challenge, "email_change")
	if err != nil {
		return nil, err
	}

	return d.changeMails(ctx, tx, u, email, flow, redirect)
}

// changeMails creates an address change's tokens, and returns the mails.
func (d *Directory) changeMails(
	ctx context.Context, tx pgx.Tx, u User, email string, flow uuid.NullUUID, redirect string,
) ([]mailArgs, error) {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email_change = @email, email_change_sent_at = now(), email_change_confirm_status = 0, updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
		return nil, err
	}

	var jobs []mailArgs
	for kind, address := range map[string]string{emailChangeNew: email, emailChangeCurrent: u.Email} {
		if address == "" {
			continue
		}

		t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: kind, RelatesTo: address, FlowStateID: flow,
			VerificationType: "email_change"})
		if err != nil {
			return nil, err
		}

		jobs = append(jobs, mailArgs{Project: d.UUID, MailKind: rules.MailEmailChange, Email: address,
			Token: someUUID(t.ID), RedirectTo: redirect})
	}

	return jobs, nil
}

// confirmChange counts a confirmed half of an address change, and changes the address when both are
// confirmed. A user without an address confirms the new one only.
func (d *Directory) confirmChange(ctx context.Context, tx pgx.Tx, u User) (complete bool, err error) {
	if u.NewEmail == "" {
		return false, errCode()
	}

	if u.Email != "" && u.NewStatus == 0 {
		_, err := pg.Exec(ctx, tx, `
			update auth.users set email_change_confirm_status = 1, updated_at = now() where id = @id`,
			pgx.StrictNamedArgs{"id": u.ID})
		return false, err
	}

	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email = email_change, email_change = '', email_change_confirm_status = 0, is_anonymous = false,
			email_confirmed_at = now(), updated_at = now(),
			raw_app_meta_data = case when is_anonymous then coalesce(raw_app_meta_data, '{}') || '{"provider": "email", "providers": ["email"]}'
				else raw_app_meta_data end
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID}); err != nil {
		return false, err
	}

	if err := dropTokens(ctx, tx, u.ID); err != nil {
		return false, err
	}

	return true, saveEmailIdentity(ctx, tx, u.ID, u.NewEmail, true)
}

// preparePhone returns an update's new number, "" for no change. It counts the message.
func (d *Directory) preparePhone(ctx context.Context, u User, number, channel string, c Client) (string, error) {
	if number == "" {
		return "", nil
	}
	if !d.SMS.SignIn {
		return "", errPhoneDisabled("Unsupported phone provider")
	}

	phone, err := cleanPhone(number)
	if err != nil || phone == u.Phone {
		return "", err
	}
	if err := d.checkChannel(channel); err != nil {
		return "", err
	}

	// Counted before the answer tells whether the number is taken.
	if err := d.countChange(ctx, u, c); err != nil {
		return "", err
	}
	if !d.SMS.AutoConfirm {
		if err := d.countSMS(ctx, phone, c); err != nil {
			return "", err
		}
	}

	_, err = userByPhone(ctx, d.Rows(), phone)
	switch {
	case err == nil:
		return "", errPhoneExists()
	case !fault.Is(err, fault.NotFound):
		return "", err
	}

	return phone, nil
}

// changePhone changes the number, or returns the message with a code if it must be confirmed.
func (d *Directory) changePhone(ctx context.Context, tx pgx.Tx, u User, phone, channel string) (smsArgs, error) {
	if d.SMS.AutoConfirm {
		return smsArgs{}, setPhone(ctx, tx, u.ID, phone)
	}

	return d.phoneChange(ctx, tx, u, phone, channel)
}

// phoneChange creates a number change's token, and returns the message.
func (d *Directory) phoneChange(ctx context.Context, tx pgx.Tx, u User, phone, channel string) (smsArgs, error) {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set phone_change = @phone, phone_change_sent_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": u.ID, "phone": phone}); err != nil {
		return smsArgs{}, err
	}

	t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: phoneChangeToken, RelatesTo: phone,
		VerificationType: "phone_change"})
	return d.tokenMessage(t, channel), err
}

// setPhone gives a user a confirmed number. Codes that were sent to a former one end with it.
func setPhone(ctx context.Context, tx pgx.Tx, id uuid.UUID, phone string) error {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set phone = @phone, phone_confirmed_at = now(), phone_change = '', is_anonymous = false, updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": id, "phone": phone}); err != nil {
		return err
	}
	if err := dropTokens(ctx, tx, id); err != nil {
		return err
	}
	if err := savePhoneIdentity(ctx, tx, id, phone, true); err != nil {
		return err
	}

	return listProviders(ctx, tx, id)
}
