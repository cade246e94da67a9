-- +goose Up
-- What a backup waits for, and what it does not hold.

alter table platform.backups add column waiting_for text not null default '';
comment on column platform.backups.waiting_for is 'in words for the user; empty: nothing';

alter table platform.backups add column warnings text[] not null default '{}';
comment on column platform.backups.warnings is 'what of the project a restore does not bring back, in words for the user';
