-- +goose Up
-- What users show beside a password: personal access tokens, and a second factor.

create table platform.tokens (
	uuid uuid primary key,
	user_uuid uuid not null constraint tokens_user references platform.users on delete cascade,
	name text not null,
	hint text not null,
	hash bytea not null constraint tokens_hash_key unique,
	role smallint not null constraint tokens_role check (role between 1 and 5),
	project_uuids uuid[],
	created_at timestamptz not null default now(),
	expires_at timestamptz not null,
	last_used_at timestamptz
);
comment on column platform.tokens.hint is 'the beginning of the token, by which people tell it from others';
comment on column platform.tokens.hash is 'SHA-256 of the token, which itself is kept nowhere';
comment on column platform.tokens.role is 'what the token may do at most, whatever its user may';
comment on column platform.tokens.project_uuids is 'the only projects that it opens; null: all of its user''s';
create unique index tokens_name_key on platform.tokens (user_uuid, lower(name));
create index tokens_expires on platform.tokens (expires_at);

create table platform.second_factors (
	user_uuid uuid primary key constraint second_factors_user references platform.users on delete cascade,
	sealed bytea not null,
	created_at timestamptz not null default now(),
	confirmed_at timestamptz,
	last_step bigint not null default 0
);
comment on column platform.second_factors.sealed is 'the shared secret, encrypted with the secret key of the instance';
comment on column platform.second_factors.confirmed_at is 'since when a log-in needs it; null: not yet';
comment on column platform.second_factors.last_step is 'the time step of the last code that was taken: no code of it or before is taken again';

create table platform.recovery_codes (
	user_uuid uuid not null constraint recovery_codes_factor references platform.second_factors on delete cascade,
	hash bytea not null,
	constraint recovery_codes_pkey primary key (user_uuid, hash)
);
comment on table platform.recovery_codes is 'instead of the second factor, once each: the row goes when the code is used';
