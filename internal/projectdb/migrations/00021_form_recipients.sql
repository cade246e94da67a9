-- +goose Up
-- Addresses that agreed to mails about responses.

create table forms.recipients (
	email text primary key constraint recipients_folded check (email = lower(email)),
	confirmed_at timestamptz not null default now()
);
comment on table forms.recipients is 'addresses that were confirmed by a mailed link, or belong to a member';
