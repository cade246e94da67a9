CREATE SCHEMA auth;

CREATE SCHEMA forms;

CREATE SCHEMA realtime;

CREATE SCHEMA socle;

CREATE SCHEMA storage;

CREATE FUNCTION socle.append_audit(new_seq bigint, new_entry text, new_hash bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	insert into socle.audit (seq, entry, hash) values (new_seq, new_entry, new_hash);
	update socle.audit_head set seq = new_seq, hash = new_hash where seq = new_seq - 1;
	if not found then
		raise exception 'entry % does not follow the last one', new_seq;
	end if;
end $$;

CREATE FUNCTION socle.close_new_tables() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare made record;
begin
	for made in
		select c.oid, n.nspname, c.relname
		from pg_event_trigger_ddl_commands() d
		join pg_class c on c.oid = d.objid and d.classid = 'pg_class'::regclass
		join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and c.relpersistence <> 't' and not c.relrowsecurity
	loop
		execute format('alter table %I.%I enable row level security', made.nspname, made.relname);
	end loop;
end $$;

CREATE FUNCTION socle.lock_audit(OUT log text, OUT seq bigint, OUT hash bytea) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	select h.log, h.seq, h.hash into strict log, seq, hash from socle.audit_head h for update;
end $$;

CREATE FUNCTION socle.refuse_extensions() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if not pg_has_role(current_user, 'pg_database_owner', 'usage') then
		raise insufficient_privilege using message = 'extensions are installed by the platform';
	end if;
end $$;

CREATE FUNCTION socle.tell_of_change() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform pg_notify('pgrst', 'reload schema');
end $$;

CREATE TABLE forms.definitions (
    form_uuid uuid NOT NULL,
    version integer NOT NULL,
    fields jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT definitions_fields CHECK ((jsonb_typeof(fields) = 'array'::text))
);

COMMENT ON TABLE forms.definitions IS 'the fields of a form as they were when someone answered; never changed';

CREATE TABLE forms.fields (
    uuid uuid NOT NULL,
    form_uuid uuid NOT NULL,
    "position" integer NOT NULL,
    label text NOT NULL,
    type text NOT NULL,
    description text,
    is_required boolean DEFAULT false NOT NULL,
    default_value text,
    options json,
    pattern text,
    min_length bigint,
    max_length bigint,
    min_value bigint,
    max_value bigint,
    date_format text,
    start_date text,
    end_date text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT fields_options CHECK ((json_typeof(options) = 'array'::text))
);

COMMENT ON COLUMN forms.fields."position" IS 'order in the form, from 1, with gaps';

COMMENT ON COLUMN forms.fields.options IS 'choices, an array of strings';

COMMENT ON COLUMN forms.fields.start_date IS 'earliest date, time or date and time, in ISO 8601 whatever date_format is';

COMMENT ON COLUMN forms.fields.end_date IS 'latest, written like start_date';

CREATE TABLE forms.forms (
    uuid uuid NOT NULL,
    name text NOT NULL,
    description text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    state text DEFAULT 'draft'::text NOT NULL,
    opens_at timestamp with time zone,
    closes_at timestamp with time zone,
    max_responses bigint,
    success_message text,
    honeypot text,
    container_uuid uuid,
    link text COLLATE pg_catalog."C",
    version integer DEFAULT 1 NOT NULL,
    total_responses bigint DEFAULT 0 NOT NULL,
    blocked_responses bigint DEFAULT 0 NOT NULL,
    CONSTRAINT forms_max_responses CHECK ((max_responses >= 1)),
    CONSTRAINT forms_state CHECK ((state = ANY (ARRAY['draft'::text, 'open'::text, 'closed'::text]))),
    CONSTRAINT forms_times CHECK ((opens_at < closes_at))
);

COMMENT ON TABLE forms.forms IS 'the platform database knows in which project a form lives';

COMMENT ON COLUMN forms.forms.created_by IS 'a user of the platform database';

COMMENT ON COLUMN forms.forms.honeypot IS 'name of an input that people do not see: whoever fills it in is a machine';

COMMENT ON COLUMN forms.forms.container_uuid IS 'where the files of answers go';

COMMENT ON COLUMN forms.forms.link IS 'what opens the form to whoever knows it; null while the public link is off';

COMMENT ON COLUMN forms.forms.version IS 'of the fields: each change of them makes a new one';

COMMENT ON COLUMN forms.forms.total_responses IS 'complete ones; counted under the row''s lock, so that a maximum holds';

COMMENT ON COLUMN forms.forms.blocked_responses IS 'submissions of which nothing was kept since the honeypot was filled in';

CREATE TABLE forms.responses (
    uuid uuid NOT NULL,
    form_uuid uuid NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    answers jsonb NOT NULL,
    token_hash bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    submitted_at timestamp with time zone,
    expires_at timestamp with time zone,
    CONSTRAINT responses_answers CHECK ((jsonb_typeof(answers) = 'object'::text)),
    CONSTRAINT responses_complete CHECK ((((state = 'complete'::text) = (submitted_at IS NOT NULL)) AND ((state = 'partial'::text) = ((token_hash IS NOT NULL) AND (expires_at IS NOT NULL))))),
    CONSTRAINT responses_state CHECK ((state = ANY (ARRAY['partial'::text, 'complete'::text])))
);

COMMENT ON COLUMN forms.responses.answers IS 'by the field''s UUID; of a partial response as they were sent, of a complete one as the field keeps them';

COMMENT ON COLUMN forms.responses.token_hash IS 'SHA-256 of the secret with which a partial response goes on';

CREATE TABLE socle.audit (
    seq bigint NOT NULL,
    entry text NOT NULL,
    hash bytea NOT NULL
);

COMMENT ON COLUMN socle.audit.entry IS 'a JSON object, as text: the hash is of its bytes';

CREATE TABLE socle.audit_head (
    log text NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_head_log CHECK ((log = 'project'::text))
);

COMMENT ON TABLE socle.audit_head IS 'the last entry; its lock puts those that write at one time in order';

CREATE TABLE socle.migrations (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE socle.migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME socle.migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.queries (
    uuid uuid NOT NULL,
    query text NOT NULL,
    read_only boolean NOT NULL,
    run_by uuid NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    duration_ms double precision,
    rows bigint,
    error_code text COLLATE pg_catalog."C"
);

COMMENT ON COLUMN socle.queries.run_by IS 'a user of the platform database';

COMMENT ON COLUMN socle.queries.duration_ms IS 'null while it runs, and for ever if the server died meanwhile';

CREATE TABLE storage.containers (
    uuid uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    description text DEFAULT ''::text NOT NULL,
    is_public boolean DEFAULT false NOT NULL,
    max_file_size bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    allowed_mime_types text[] DEFAULT '{}'::text[] NOT NULL,
    deleting boolean DEFAULT false NOT NULL,
    CONSTRAINT containers_max_file_size CHECK ((max_file_size >= 1))
);

COMMENT ON COLUMN storage.containers.max_file_size IS 'bytes; files that were there before it was lowered stay';

COMMENT ON COLUMN storage.containers.created_by IS 'a user of the platform database';

COMMENT ON COLUMN storage.containers.allowed_mime_types IS 'such as image/png or image/*; none means all';

COMMENT ON COLUMN storage.containers.deleting IS 'gone for users; its files are being removed';

CREATE TABLE storage.discarded (
    blob_uuid uuid NOT NULL,
    discarded_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE storage.discarded IS 'blobs whose files were deleted: noted by the transaction that deletes the file, struck off when the bytes are gone';

CREATE TABLE storage.files (
    uuid uuid NOT NULL,
    container_uuid uuid NOT NULL,
    full_file_name text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    blob_uuid uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    CONSTRAINT files_sha256 CHECK ((length(sha256) = 32)),
    CONSTRAINT files_size CHECK ((size >= 0))
);

COMMENT ON COLUMN storage.files.blob_uuid IS 'the blob of this project that holds the bytes; never shown';

CREATE TABLE storage.uploads (
    blob_uuid uuid NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE storage.uploads IS 'blobs that may hold bytes of no file: noted before the first byte, struck off by the transaction that makes the file';

ALTER TABLE ONLY forms.definitions
    ADD CONSTRAINT definitions_pkey PRIMARY KEY (form_uuid, version);

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_position_key UNIQUE (form_uuid, "position");

ALTER TABLE ONLY forms.forms
    ADD CONSTRAINT forms_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY forms.responses
    ADD CONSTRAINT responses_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY socle.audit_head
    ADD CONSTRAINT audit_head_pkey PRIMARY KEY (log);

ALTER TABLE ONLY socle.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY socle.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.queries
    ADD CONSTRAINT queries_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.containers
    ADD CONSTRAINT containers_name_key UNIQUE (name);

ALTER TABLE ONLY storage.containers
    ADD CONSTRAINT containers_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.discarded
    ADD CONSTRAINT discarded_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_blob_key UNIQUE (blob_uuid);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_full_file_name_key UNIQUE (container_uuid, full_file_name);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (blob_uuid);

CREATE INDEX forms_container ON forms.forms USING btree (container_uuid);

CREATE INDEX forms_created_at ON forms.forms USING btree (created_at, uuid);

CREATE INDEX responses_created_at ON forms.responses USING btree (form_uuid, created_at, uuid);

CREATE INDEX responses_expires ON forms.responses USING btree (expires_at) WHERE (state = 'partial'::text);

CREATE INDEX responses_version ON forms.responses USING btree (form_uuid, version);

CREATE INDEX audit_at ON socle.audit USING btree ((((entry)::jsonb ->> 'at'::text)));

CREATE UNIQUE INDEX audit_key ON socle.audit USING btree ((((entry)::jsonb ->> 'key'::text))) WHERE (((entry)::jsonb ->> 'key'::text) IS NOT NULL);

COMMENT ON INDEX socle.audit_key IS 'what was asked for under an Idempotency-Key happens once';

CREATE INDEX containers_deleting ON storage.containers USING btree (uuid) WHERE deleting;

CREATE INDEX files_created_at ON storage.files USING btree (container_uuid, created_at, uuid);

CREATE INDEX uploads_started_at ON storage.uploads USING btree (started_at);

ALTER TABLE ONLY forms.definitions
    ADD CONSTRAINT definitions_form FOREIGN KEY (form_uuid) REFERENCES forms.forms(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_form FOREIGN KEY (form_uuid) REFERENCES forms.forms(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY forms.forms
    ADD CONSTRAINT forms_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE SET NULL;

ALTER TABLE ONLY forms.responses
    ADD CONSTRAINT responses_definition FOREIGN KEY (form_uuid, version) REFERENCES forms.definitions(form_uuid, version);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE forms.definitions ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.fields ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.forms ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.responses ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.audit_head ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.queries ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.containers ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.discarded ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.files ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.uploads ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA socle TO PUBLIC;
