-- +goose Up
-- Forms and their fields.

create table forms.forms (
	uuid uuid primary key,
	name text not null,
	description text,
	created_at timestamptz not null default now(),
	created_by uuid not null,
	updated_at timestamptz not null default now(),
	updated_by uuid not null
);
comment on table forms.forms is 'the platform database knows in which project a form lives';
comment on column forms.forms.created_by is 'a user of the platform database';

create table forms.fields (
	uuid uuid primary key,
	form_uuid uuid not null constraint fields_form references forms.forms on delete cascade,
	position integer not null,
	label text not null,
	type text not null,
	description text,
	is_required boolean not null default false,
	default_value text,
	options json constraint fields_options check (json_typeof(options) = 'array'),
	pattern text,
	min_length bigint,
	max_length bigint,
	min_value bigint,
	max_value bigint,
	date_format text,
	start_date text,
	end_date text,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	constraint fields_position_key unique (form_uuid, position)
);
comment on column forms.fields.position is 'order in the form, from 1, with gaps';
comment on column forms.fields.options is 'choices, an array of strings';
comment on column forms.fields.start_date is 'earliest date, time or date and time, in ISO 8601 whatever date_format is';
comment on column forms.fields.end_date is 'latest, written like start_date';
