-- +goose Up
-- The secrets of a project's end user settings, such as those of identity providers.

alter table platform.auth_settings add column secrets bytea;
comment on column platform.auth_settings.secrets is
	'JSON object of secrets by name, sealed under a key derived from the secret of the install; null: none';
