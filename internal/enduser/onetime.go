package enduser

import (
	"context"
	"crypto/hmac"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// One-time token kinds. A user has one of each at a time.
const (
	confirmationToken    = "confirmation_token"
	recoveryToken        = "recovery_token"
	reauthenticationCode = "reauthentication_token"
	emailChangeCurrent   = "email_change_token_current"
	emailChangeNew       = "email_change_token_new"
	phoneChangeToken     = "phone_change_token"
)

// maxCodeAttempts is the number of wrong codes after which a code is void, whoever sent them. Its
// link stays valid. A single network is stopped long before, see [rules.CodeLimit].
const maxCodeAttempts = 100

// oneTime is an auth.one_time_tokens row.
type oneTime struct {
	ID               uuid.UUID
	UserID           uuid.UUID
	TokenType        string
	RelatesTo        string // address or number that the code goes to
	CreatedAt        time.Time
	Attempts         int
	FlowStateID      uuid.NullUUID
	VerificationType string // the link's type parameter
	IsSignUp         bool   // stored in auth.sign_ups
}

const oneTimeColumns = ` t.id, t.user_id, t.token_type, t.relates_to, t.created_at, t.attempts, t.flow_state_id,
	t.verification_type, false as is_sign_up `

// signUpColumns are a [oneTime]'s columns.
const signUpColumns = ` t.id, t.user_id, 'confirmation_token' as token_type, t.relates_to, t.created_at, t.attempts,
	t.flow_state_id, t.verification_type, true as is_sign_up `

// tokenKinds maps a verification type to the token kinds that it accepts.
var tokenKinds = map[string][]string{
	"signup":           {confirmationToken},
	"invite":           {confirmationToken},
	"magiclink":        {recoveryToken, confirmationToken},
	"recovery":         {recoveryToken},
	"email":            {recoveryToken, confirmationToken},
	"email_change":     {emailChangeCurrent, emailChangeNew},
	"reauthentication": {reauthenticationCode},
}

// phoneTokenKinds maps a verification type to the token kinds that it accepts.
var phoneTokenKinds = map[string][]string{"sms": {confirmationToken}, "phone_change": {phoneChangeToken}}

// createToken replaces the user's token with the same kind.
func createToken(ctx context.Context, tx pgx.Tx, t oneTime) (oneTime, error) {
	t.ID = newID()
	if _, err := pg.Exec(ctx, tx, `delete from auth.one_time_tokens where user_id = @user and token_type = @type`,
		pgx.StrictNamedArgs{"user": t.UserID, "type": t.TokenType}); err != nil {
		return t, err
	}

	_, err := pg.Exec(ctx, tx, `
		insert into auth.one_time_tokens (id, user_id, token_type, relates_to, flow_state_id, verification_type)
		values (@id, @user, @type, @address, @flow, @verification)
		on conflict (user_id, token_type) do update set id = excluded.id, relates_to = excluded.relates_to, created_at = now(),
			attempts = 0, flow_state_id = excluded.flow_state_id, verification_type = excluded.verification_type`,
		pgx.StrictNamedArgs{"id": t.ID, "user": t.UserID, "type": t.TokenType, "address": t.RelatesTo,
			"flow": t.FlowStateID, "verification": t.VerificationType})
	return t, err
}

// Confirming one token drops the user's others, so a token is locked after its user: two
// confirmations at once would wait for each other.

// findLink locks a link's user and token. It fails with Forbidden for an unknown or expired one.
func (d *Directory) findLink(ctx context.Context, tx pgx.Tx, kinds []string, text string) (oneTime, error) {
	id, ok := token.ParseLink(d.keys.linkKey, linkPurpose, text)
	if !ok {
		return oneTime{}, errCode()
	}

	t, err := pg.One[oneTime](ctx, tx, `
		select`+oneTimeColumns+`from auth.one_time_tokens t join auth.users u on u.id = t.user_id
		where t.id = @id and t.token_type = any(@kinds) for no key update of u, t`,
		pgx.StrictNamedArgs{"id": id, "kinds": kinds})
	if fault.Is(err, fault.NotFound) && slices.Contains(kinds, confirmationToken) {
		t, err = pg.One[oneTime](ctx, tx, `
			select`+signUpColumns+`from auth.sign_ups t join auth.users u on u.id = t.user_id
			where t.id = @id for no key update of u, t`, pgx.StrictNamedArgs{"id": id})
	}
	if fault.Is(err, fault.NotFound) || (err == nil && d.isExpired(t)) {
		return t, errCode()
	}

	return t, err
}

// findCode locks the token whose code was sent to an address or a number, and its user. A wrong
// code counts as an attempt at the tokens; ok is then false, and the caller commits.
func (d *Directory) findCode(
	ctx context.Context, tx pgx.Tx, kinds []string, to, code string,
) (found oneTime, ok bool, err error) {
	all, err := tokensOf(ctx, tx, kinds, to)
	if err != nil {
		return oneTime{}, false, err
	}

	var wrong []uuid.UUID
	for _, t := range all {
		if d.isExpired(t) || t.Attempts >= maxCodeAttempts {
			continue
		}
		if d.isCode(t.RelatesTo, t.ID, code) {
			return t, true, nil
		}

		wrong = append(wrong, t.ID)
	}

	if len(all) == 0 { // the same work as for a known address
		d.keys.isCode(uuid.Nil, code)
	}

	for _, sql := range []string{
		`update auth.one_time_tokens set attempts = attempts + 1 where id = any(@ids)`,
		`update auth.sign_ups set attempts = attempts + 1 where id = any(@ids)`,
	} {
		if _, err := pg.Exec(ctx, tx, sql, pgx.StrictNamedArgs{"ids": wrong}); err != nil {
			return oneTime{}, false, err
		}
	}

	return oneTime{}, false, nil
}

// tokensOf locks the tokens with some kinds that were sent to an address or a number, and their
// users.
func tokensOf(ctx context.Context, tx pgx.Tx, kinds []string, to string) ([]oneTime, error) {
	forms := address.Forms(to)
	all, err := pg.All[oneTime](ctx, tx, `
		select`+oneTimeColumns+`from auth.one_time_tokens t join auth.users u on u.id = t.user_id
		where t.token_type = any(@kinds) and t.user_id in (
			select u.id from auth.users u where u.email = any(@forms) and not u.is_sso_user
			union select u.id from auth.users u where u.phone = any(@forms) and not u.is_sso_user
			union select n.user_id from auth.one_time_tokens n
				where n.token_type in ('email_change_token_new', 'phone_change_token') and n.token_type = any(@kinds)
					and n.relates_to = any(@forms))
			and t.relates_to = any(@forms)
		order by u.id, t.id for no key update of u, t`, pgx.StrictNamedArgs{"kinds": kinds, "forms": forms})
	if err != nil || !slices.Contains(kinds, confirmationToken) {
		return all, err
	}

	requests, err := pg.All[oneTime](ctx, tx, `
		select`+signUpColumns+`from auth.sign_ups t join auth.users u on u.id = t.user_id
		where t.relates_to = any(@forms)
		order by u.id, t.id for no key update of u, t`, pgx.StrictNamedArgs{"forms": forms})
	return append(all, requests...), err
}

// isCode compares a code with a token's or a challenge's, or with a test number's fixed one, in
// constant time.
func (d *Directory) isCode(to string, id uuid.UUID, code string) bool {
	if fixed, ok := d.SMS.TestNumbers[to]; ok {
		return hmac.Equal([]byte(fixed), []byte(code))
	}

	return d.keys.isCode(id, code)
}

func (d *Directory) isExpired(t oneTime) bool {
	return time.Since(t.CreatedAt) > time.Duration(d.CodeSeconds)*time.Second
}

// spend deletes a token.
func spend(ctx context.Context, tx pgx.Tx, t oneTime) error {
	sql := `delete from auth.one_time_tokens where id = @id`
	if t.IsSignUp {
		sql = `delete from auth.sign_ups where id = @id`
	}

	_, err := pg.Exec(ctx, tx, sql, pgx.StrictNamedArgs{"id": t.ID})
	return err
}

// dropTokens deletes all of a user's one-time tokens, also those mailed to a former address.
func dropTokens(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	if _, err := pg.Exec(ctx, tx, `delete from auth.one_time_tokens where user_id = @id`,
		pgx.StrictNamedArgs{"id": id}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, tx, `delete from auth.sign_ups where user_id = @id`, pgx.StrictNamedArgs{"id": id})
	return err
}
