package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// saveEmailIdentity inserts or updates the identity for a user's address.
func saveEmailIdentity(ctx context.Context, tx pgx.Tx, id uuid.UUID, email string, verified bool) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@id::text, @id::uuid, jsonb_build_object('sub', @id::text, 'email', @email::text, 'email_verified', @verified::boolean,
			'phone_verified', false), 'email', now(), now(), now())
		on conflict (provider_id, provider) do update
		set identity_data = i.identity_data || excluded.identity_data, updated_at = now()`,
		pgx.StrictNamedArgs{"id": id.String(), "email": email, "verified": verified})
	return err
}

// savePhoneIdentity inserts or updates the identity for a user's number.
func savePhoneIdentity(ctx context.Context, tx pgx.Tx, id uuid.UUID, phone string, verified bool) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@id::text, @id::uuid, jsonb_build_object('sub', @id::text, 'phone', @phone::text, 'email_verified', false,
			'phone_verified', @verified::boolean), 'phone', now(), now(), now())
		on conflict (provider_id, provider) do update
		set identity_data = i.identity_data || excluded.identity_data, updated_at = now()`,
		pgx.StrictNamedArgs{"id": id.String(), "phone": phone, "verified": verified})
	return err
}

// saveIdentity inserts a user's identity, or updates its profile.
func saveIdentity(ctx context.Context, tx pgx.Tx, user uuid.UUID, provider, subject, data string) error {
	if _, err := pg.Exec(ctx, tx, `
		insert into auth.identities (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@subject, @user, @data::jsonb, @provider, now(), now(), now())
		on conflict (provider_id, provider) do update
		set identity_data = excluded.identity_data, last_sign_in_at = now(), updated_at = now()`,
		pgx.StrictNamedArgs{"subject": subject, "user": user, "data": data, "provider": provider}); err != nil {
		return err
	}

	return listProviders(ctx, tx, user)
}

// listProviders lists the user's identity providers in the application metadata.
func listProviders(ctx context.Context, tx pgx.Tx, user uuid.UUID) error {
	_, err := pg.Exec(ctx, tx, `
		update auth.users u set updated_at = now(), raw_app_meta_data = coalesce(u.raw_app_meta_data, '{}')
			|| jsonb_build_object('provider', p.names -> 0, 'providers', p.names)
		from (select jsonb_agg(i.provider order by i.first, i.provider) as names from (
			select provider, min(created_at) as first from auth.identities where user_id = @user group by provider) i) p
		where u.id = @user`, pgx.StrictNamedArgs{"user": user})
	return err
}
