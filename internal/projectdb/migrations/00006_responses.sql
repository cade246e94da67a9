-- +goose Up
-- The life of a form, the definitions that it has had, and what people answered.

alter table forms.forms
	add column state text not null default 'draft' constraint forms_state check (state in ('draft', 'open', 'closed')),
	add column opens_at timestamptz,
	add column closes_at timestamptz,
	add column max_responses bigint constraint forms_max_responses check (max_responses >= 1),
	add column success_message text,
	add column honeypot text,
	add column container_uuid uuid constraint forms_container references storage.containers on delete set null,
	add column link text collate "C",
	add column version integer not null default 1,
	add column total_responses bigint not null default 0,
	add column blocked_responses bigint not null default 0,
	add constraint forms_times check (opens_at < closes_at);
comment on column forms.forms.honeypot is 'name of an input that people do not see: whoever fills it in is a machine';
comment on column forms.forms.container_uuid is 'where the files of answers go';
comment on column forms.forms.link is 'what opens the form to whoever knows it; null while the public link is off';
comment on column forms.forms.version is 'of the fields: each change of them makes a new one';
comment on column forms.forms.total_responses is 'complete ones; counted under the row''s lock, so that a maximum holds';
comment on column forms.forms.blocked_responses is 'submissions of which nothing was kept since the honeypot was filled in';
create index forms_container on forms.forms (container_uuid);
create index forms_created_at on forms.forms (created_at, uuid);

create table forms.definitions (
	form_uuid uuid not null constraint definitions_form references forms.forms on delete cascade,
	version integer not null,
	fields jsonb not null constraint definitions_fields check (jsonb_typeof(fields) = 'array'),
	created_at timestamptz not null default now(),
	constraint definitions_pkey primary key (form_uuid, version)
);
comment on table forms.definitions is 'the fields of a form as they were when someone answered; never changed';

create table forms.responses (
	uuid uuid primary key,
	form_uuid uuid not null,
	version integer not null,
	state text not null constraint responses_state check (state in ('partial', 'complete')),
	answers jsonb not null constraint responses_answers check (jsonb_typeof(answers) = 'object'),
	token_hash bytea,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	submitted_at timestamptz,
	expires_at timestamptz,
	constraint responses_definition foreign key (form_uuid, version) references forms.definitions,
	constraint responses_complete check ((state = 'complete') = (submitted_at is not null)
		and (state = 'partial') = (token_hash is not null and expires_at is not null))
);
comment on column forms.responses.answers is 'by the field''s UUID; of a partial response as they were sent, of a complete one as the field keeps them';
comment on column forms.responses.token_hash is 'SHA-256 of the secret with which a partial response goes on';
create index responses_created_at on forms.responses (form_uuid, created_at, uuid);
create index responses_version on forms.responses (form_uuid, version);
create index responses_expires on forms.responses (expires_at) where state = 'partial';
