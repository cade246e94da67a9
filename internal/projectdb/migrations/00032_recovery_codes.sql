-- +goose Up
-- Recovery codes of end users, who have lost their second factors.

create table auth.mfa_recovery_codes (
	user_id uuid not null constraint mfa_recovery_codes_user_id_fkey references auth.users on delete cascade,
	hash bytea not null,
	constraint mfa_recovery_codes_pkey primary key (user_id, hash)
);
comment on column auth.mfa_recovery_codes.hash is 'MAC of an unused code under a key of the user';
alter table auth.mfa_recovery_codes disable row level security;

-- Codes of a new address or number are found by it.
create index one_time_tokens_relates_to on auth.one_time_tokens (relates_to);
