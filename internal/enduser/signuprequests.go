package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// maxSignUps bounds the requests of a user that wait for a confirmation. An address gets a mail a
// minute by default and a link is valid for an hour, so strangers do not displace a valid link.
const maxSignUps = 60

// signUpRequest is a request for a user whose address or number was never confirmed. Anybody can
// send one, so it changes nothing until it is confirmed: see [Directory.takeOver].
type signUpRequest struct {
	User             uuid.UUID
	Address          string // or number
	VerificationType string
	CreatedUser      bool
	PasswordHash     string // "" for none
	UserMetadata     json.RawMessage
	Flow             uuid.NullUUID
}

// createSignUp inserts a request, unless the address of its user has been confirmed, and removes
// the oldest ones beyond the bound. Its token is unknown then, and no mail is sent.
func createSignUp(ctx context.Context, tx pgx.Tx, r signUpRequest) (oneTime, error) {
	t := oneTime{ID: newID(), UserID: r.User, TokenType: confirmationToken, RelatesTo: r.Address, IsSignUp: true,
		FlowStateID: r.Flow, VerificationType: r.VerificationType}
	if _, err := pg.Exec(ctx, tx, `
		insert into auth.sign_ups (id, user_id, relates_to, verification_type, created_user, encrypted_password,
			raw_user_meta_data, flow_state_id)
		select @id, u.id, @address, @verification, @created,
			case when @created then u.encrypted_password else auth.store_password(nullif(@hash, '')) end, @data::jsonb, @flow
		from auth.users u
		where u.id = @user and u.email_confirmed_at is null and (not @phone or u.phone_confirmed_at is null)`,
		pgx.StrictNamedArgs{"id": t.ID, "user": r.User, "address": r.Address, "verification": r.VerificationType,
			"created": r.CreatedUser, "hash": r.PasswordHash, "data": string(r.UserMetadata), "flow": r.Flow,
			"phone": isPhone(r.Address)}); err != nil {
		return t, err
	}

	_, err := pg.Exec(ctx, tx, `
		delete from auth.sign_ups where id in (
			select id from auth.sign_ups where user_id = @user and not created_user
			order by created_at desc, id desc offset @most)`,
		pgx.StrictNamedArgs{"user": r.User, "most": maxSignUps})
	return t, err
}

// renewSignUp gives the latest request of a user with an address or a number a new token. It fails
// with NotFound if there is none.
func renewSignUp(
	ctx context.Context, tx pgx.Tx, user uuid.UUID, address string, flow uuid.NullUUID,
) (oneTime, error) {
	return pg.One[oneTime](ctx, tx, `
		update auth.sign_ups t set id = @new, created_at = now(), attempts = 0, flow_state_id = @flow
		where t.id = (
			select id from auth.sign_ups where user_id = @user and relates_to = @address
			order by created_at desc, id desc limit 1)
		returning`+signUpColumns, pgx.StrictNamedArgs{"user": user, "address": address, "new": newID(), "flow": flow})
}

// proof is the first confirmation of an address or a number.
type proof struct {
	Token    oneTime // zero: an identity provider has verified the address
	Provider string  // identity that the user keeps: email, phone or ""
}

// takeOver confirms the address or the number of a user for the first time. Until then the account
// may be that of a stranger: it keeps the password and the metadata of the confirmed request only,
// and loses all else by which the stranger would share it.
func (d *Directory) takeOver(ctx context.Context, tx pgx.Tx, u User, p proof) error {
	reference, data, err := contentOf(ctx, tx, u, p)
	if err != nil {
		return err
	}

	n, err := pg.Exec(ctx, tx, `
		update auth.users set encrypted_password = nullif(@reference, ''), raw_user_meta_data = @data::jsonb, is_anonymous = false,
			email = case when @phone then null else email end, email_change = '',
			email_confirmed_at = case when @phone then null else now() end,
			phone = case when @phone then phone end, phone_change = '', phone_confirmed_at = case when @phone then now() end,
			updated_at = now()
		where id = @id and email_confirmed_at is null and (not @phone or phone_confirmed_at is null)`,
		pgx.StrictNamedArgs{"id": u.ID, "reference": reference, "data": string(data), "phone": p.Provider == "phone"})
	if err != nil || n == 0 { // 0: another request has done it meanwhile
		return err
	}

	if _, err := pg.Exec(ctx, tx, `delete from auth.identities where user_id = @id and provider <> @provider`,
		pgx.StrictNamedArgs{"id": u.ID, "provider": p.Provider}); err != nil {
		return err
	}

	for _, sql := range []string{
		`delete from auth.sessions where user_id = @id`,
		`delete from auth.mfa_factors where user_id = @id`,
		`delete from auth.mfa_recovery_codes where user_id = @id`,
		`delete from auth.webauthn_credentials where user_id = @id`,
		`delete from auth.oauth_authorizations where user_id = @id`,
		`delete from auth.oauth_consents where user_id = @id`,
		`delete from auth.flow_state where user_id = @id`,
	} {
		if _, err := pg.Exec(ctx, tx, sql, pgx.StrictNamedArgs{"id": u.ID}); err != nil {
			return err
		}
	}

	if err := dropTokens(ctx, tx, u.ID); err != nil || p.Provider == "" {
		return err // the caller saves the identity of the provider
	}

	if p.Provider == "phone" {
		err = savePhoneIdentity(ctx, tx, u.ID, u.Phone, true)
	} else {
		err = saveEmailIdentity(ctx, tx, u.ID, u.Email, true)
	}
	if err != nil {
		return err
	}

	return listProviders(ctx, tx, u.ID)
}

// contentOf returns the reference to the password and the metadata that a user keeps. A user whom
// no request of a client has created is an administrator's, whose metadata stay.
func contentOf(
	ctx context.Context, tx pgx.Tx, u User, p proof,
) (reference string, data json.RawMessage, err error) {
	if p.Token.ID == uuid.Nil {
		return "", json.RawMessage("{}"), nil
	}

	// A link to an administrator's user, or one of the last release.
	if p.Token.TokenType == confirmationToken && !p.Token.IsSignUp {
		if p.Token.VerificationType != "invite" {
			reference = u.PasswordReference
		}
		return reference, u.UserMetadata, nil
	}

	all, err := pg.All[struct {
		ID                uuid.UUID
		CreatedUser       bool
		PasswordReference string
		UserMetadata      json.RawMessage
	}](ctx, tx, `
		select id, created_user, coalesce(encrypted_password, '') as password_reference, raw_user_meta_data as user_metadata
		from auth.sign_ups where user_id = @user`, pgx.StrictNamedArgs{"user": u.ID})
	if err != nil {
		return "", nil, err
	}

	byClient, more := false, json.RawMessage("{}")
	for _, r := range all {
		byClient = byClient || r.CreatedUser
		if r.ID != p.Token.ID {
			continue
		}
		if r.CreatedUser {
			return u.PasswordReference, u.UserMetadata, nil
		}
		reference, more = r.PasswordReference, r.UserMetadata
	}

	if byClient {
		return reference, more, nil
	}

	data, err = mergeMetadata("user_metadata", u.UserMetadata, more)
	return reference, data, err
}
