-- +goose Up
-- Requests that lead to the first confirmation of an address or a number: an account keeps only what
-- came with the request that its owner confirms.

create table auth.sign_ups (
	id uuid constraint sign_ups_pkey primary key,
	user_id uuid not null constraint sign_ups_user_id_fkey references auth.users on delete cascade,
	relates_to text not null,
	verification_type text not null,
	created_user boolean not null,
	encrypted_password text,
	raw_user_meta_data jsonb not null,
	flow_state_id uuid,
	attempts integer not null default 0,
	created_at timestamp with time zone not null default now()
);
comment on table auth.sign_ups is 'like one_time_tokens, but several of a user, until the first confirmation';
comment on column auth.sign_ups.created_user is 'the row of the user has what came with the request';
create index sign_ups_user_id on auth.sign_ups (user_id);
create index sign_ups_relates_to on auth.sign_ups (relates_to);
alter table auth.sign_ups disable row level security;
