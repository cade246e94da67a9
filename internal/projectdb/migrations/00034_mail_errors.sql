-- +goose Up
-- Why a message to an end user was not sent.

alter table auth.mails add column error text not null default '';
comment on table auth.mails is 'messages that were not sent: for lack of a server, or without their text, since it failed; the newest ones only';
