-- +goose Up
-- The settings of projects' end users. A project without a row has the defaults.

create table platform.auth_settings (
	project_uuid uuid primary key constraint auth_settings_project references platform.projects on delete cascade,
	settings jsonb not null default '{}' constraint auth_settings_settings check (jsonb_typeof(settings) = 'object'),
	key_generation integer not null default 1 constraint auth_settings_key_generation check (key_generation >= 1),
	updated_at timestamptz not null default now(),
	updated_by uuid
);
comment on column platform.auth_settings.settings is 'members that differ from the defaults';
comment on column platform.auth_settings.key_generation is
	'of the key that signs access tokens, which is derived from the secret of the install; the key before it still verifies';
