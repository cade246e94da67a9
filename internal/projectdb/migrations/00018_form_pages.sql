-- +goose Up
-- Pages of forms: names of inputs, appearance, where a response leads to and who gets a mail about it.

alter table forms.fields
	add column name text collate "C",
	add constraint fields_name_key unique (form_uuid, name);
comment on column forms.fields.name is 'name of the input in HTML forms, beside the UUID';

alter table forms.forms
	add column redirect_url text,
	add column notify_emails text[] not null default '{}',
	add column embed_origins text[] not null default '{}',
	add column color text,
	add column logo_uuid uuid constraint forms_logo references storage.files on delete set null;
comment on column forms.forms.redirect_url is 'page after a response by an HTML form; null: a page of the server';
comment on column forms.forms.notify_emails is 'addresses that get a mail about new responses';
comment on column forms.forms.embed_origins is 'origins whose pages may show the form''s page in a frame';
comment on column forms.forms.color is 'accent of the page, #rrggbb';
create index forms_logo on forms.forms (logo_uuid);

create table forms.notifications (
	response_uuid uuid primary key constraint notifications_response references forms.responses on delete cascade,
	form_uuid uuid not null,
	created_at timestamptz not null default now()
);
comment on table forms.notifications is 'complete responses about which no mail was queued yet';
create index notifications_form on forms.notifications (form_uuid, created_at);
