-- +goose Up
-- Passkeys of end users, and authenticators as second factors.

create table auth.webauthn_credentials (
	id uuid primary key,
	user_id uuid not null constraint webauthn_credentials_user_id_fkey references auth.users on delete cascade,
	factor_id uuid constraint webauthn_credentials_factor_id_fkey references auth.mfa_factors on delete cascade,
	credential_id bytea not null constraint webauthn_credentials_credential_id_key unique,
	public_key bytea not null,
	aaguid uuid,
	sign_count bigint not null default 0,
	transports text[] not null default '{}',
	backup_eligible boolean not null default false,
	backed_up boolean not null default false,
	friendly_name text not null default '',
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	last_used_at timestamptz
);
comment on column auth.webauthn_credentials.factor_id is 'second factor that the credential belongs to; null of a passkey';
comment on column auth.webauthn_credentials.public_key is 'in COSE';
create index webauthn_credentials_user_id_idx on auth.webauthn_credentials (user_id);
create index webauthn_credentials_factor_id_idx on auth.webauthn_credentials (factor_id);

create table auth.webauthn_challenges (
	id uuid primary key,
	user_id uuid constraint webauthn_challenges_user_id_fkey references auth.users on delete cascade,
	challenge_type text not null constraint webauthn_challenges_type check (challenge_type in ('registration', 'authentication')),
	created_at timestamptz not null default now()
);
comment on table auth.webauthn_challenges is 'challenges of passkeys; the challenge itself is a MAC of the id, and stored nowhere';
create index webauthn_challenges_user_id_idx on auth.webauthn_challenges (user_id);
create index webauthn_challenges_created_at on auth.webauthn_challenges (created_at);

alter table auth.webauthn_credentials disable row level security;
alter table auth.webauthn_challenges disable row level security;
