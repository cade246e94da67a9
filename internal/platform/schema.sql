CREATE SCHEMA platform;

CREATE FUNCTION platform.account_of(organization uuid) RETURNS uuid
    LANGUAGE sql STABLE
    AS $$
	select coalesce((
		select m.user_uuid from platform.members m
		where m.organization_uuid = organization and m.role = 2 and m.accountable
		order by m.created_at, m.user_uuid
		limit 1), organization)
$$;

CREATE FUNCTION platform.find_restored_schedules() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into platform.schedule_times as t (project_uuid, next_run_at)
	select p.uuid, now() from platform.projects p where p.uuid = new.project_uuid
	on conflict (project_uuid) do update set next_run_at = now(), version = t.version + 1;
	return new;
end $$;

CREATE FUNCTION platform.keep_an_administrator() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform from platform.instance for no key update;
	if not exists (select from platform.users where is_administrator and status = 'active') then
		raise exception 'the instance would have no active administrator'
			using errcode = 'restrict_violation', schema = 'platform', table = 'users', constraint = 'users_last_administrator';
	end if;
	return null;
end $$;

CREATE FUNCTION platform.keep_an_owner() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	-- Whoever takes an owner away waits here for those who take another one, and sees what they left.
	perform from platform.organizations where uuid = old.organization_uuid for no key update;
	if found and not exists (select from platform.members where organization_uuid = old.organization_uuid and role = 2) then
		raise exception 'the organization would have no owner'
			using errcode = 'restrict_violation', schema = 'platform', table = 'members', constraint = 'members_last_owner';
	end if;
	return null;
end $$;

CREATE FUNCTION platform.tell_backup_over() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform pg_notify('socle_backup', new.project_uuid::text);
	return null;
end $$;

CREATE TABLE platform.attempts (
    key bytea NOT NULL,
    count integer NOT NULL,
    resets_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE platform.attempts IS 'rate limits shared by all servers of the instance; key is the hash of who tries what';

CREATE TABLE platform.auth_settings (
    project_uuid uuid NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    key_generation integer DEFAULT 1 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid,
    secrets bytea,
    CONSTRAINT auth_settings_key_generation CHECK ((key_generation >= 1)),
    CONSTRAINT auth_settings_settings CHECK ((jsonb_typeof(settings) = 'object'::text))
);

COMMENT ON COLUMN platform.auth_settings.settings IS 'members that differ from the defaults';

COMMENT ON COLUMN platform.auth_settings.key_generation IS 'of the key that signs access tokens, which is derived from the secret of the install; the key before it still verifies';

COMMENT ON COLUMN platform.auth_settings.secrets IS 'JSON object of secrets by name, sealed under a key derived from the secret of the install; null: none';

CREATE TABLE platform.awaited_backups (
    project_uuid uuid NOT NULL,
    request bytea NOT NULL,
    operation text NOT NULL,
    backup_uuid uuid
);

COMMENT ON TABLE platform.awaited_backups IS 'requests that wait for a backup, those that have given up and may come back included';

COMMENT ON COLUMN platform.awaited_backups.request IS 'hash of who asks for what';

COMMENT ON COLUMN platform.awaited_backups.backup_uuid IS 'begun after the request came; null: the next one that is made';

CREATE TABLE platform.backup_contents (
    backup_uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    sha256 bytea NOT NULL,
    CONSTRAINT backup_contents_sha256 CHECK ((length(sha256) = 32))
);

COMMENT ON TABLE platform.backup_contents IS 'bytes that a backup needs: noted before they are copied, and removed when no backup of the project names them';

CREATE TABLE platform.backup_schedules (
    project_uuid uuid NOT NULL,
    cron text NOT NULL,
    timezone text NOT NULL,
    keep_last integer NOT NULL,
    keep_daily integer NOT NULL,
    keep_weekly integer NOT NULL,
    keep_monthly integer NOT NULL,
    prove boolean NOT NULL,
    prove_every_days integer NOT NULL,
    next_run_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    CONSTRAINT backup_schedules_keep_daily CHECK ((keep_daily >= 0)),
    CONSTRAINT backup_schedules_keep_last CHECK ((keep_last >= 0)),
    CONSTRAINT backup_schedules_keep_monthly CHECK ((keep_monthly >= 0)),
    CONSTRAINT backup_schedules_keep_weekly CHECK ((keep_weekly >= 0)),
    CONSTRAINT backup_schedules_prove_every_days CHECK ((prove_every_days >= 0))
);

COMMENT ON COLUMN platform.backup_schedules.prove_every_days IS 'after how many days the newest backup is proven again; 0: never';

COMMENT ON COLUMN platform.backup_schedules.next_run_at IS 'when the next backup is due; moved in the transaction that notes the backup';

CREATE TABLE platform.backups (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    error text DEFAULT ''::text NOT NULL,
    size bigint,
    sha256 bytea,
    heartbeat_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    proven_at timestamp with time zone,
    proof_error text DEFAULT ''::text NOT NULL,
    scheduled boolean DEFAULT false NOT NULL,
    bytes_until timestamp with time zone,
    origin text DEFAULT 'made'::text NOT NULL,
    tried_at timestamp with time zone,
    made_before text,
    waiting_for text DEFAULT ''::text NOT NULL,
    warnings text[] DEFAULT '{}'::text[] NOT NULL,
    missing jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT backups_origin CHECK ((origin = ANY (ARRAY['made'::text, 'imported'::text]))),
    CONSTRAINT backups_status CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'completed'::text, 'failed'::text, 'deleting'::text])))
);

COMMENT ON COLUMN platform.backups.heartbeat_at IS 'when the worker that runs it last said so';

COMMENT ON COLUMN platform.backups.proven_at IS 'when it was last restored into a database of its own, and found to hold what it should';

COMMENT ON COLUMN platform.backups.scheduled IS 'made because it was due, and removed when the schedule does not keep it';

COMMENT ON COLUMN platform.backups.bytes_until IS 'of one that is being deleted: until when its bytes stay for who is reading them; null: they go at once';

COMMENT ON COLUMN platform.backups.tried_at IS 'when it was last restored into a database of its own, whatever came of it';

COMMENT ON COLUMN platform.backups.made_before IS 'the operation that waited for it; such a backup is kept for a while whatever the schedule says';

COMMENT ON COLUMN platform.backups.waiting_for IS 'in words for the user; empty: nothing';

COMMENT ON COLUMN platform.backups.warnings IS 'what of the project a restore does not bring back, in words for the user';

COMMENT ON COLUMN platform.backups.missing IS 'objects that the last proof could not create, with their statements';

CREATE TABLE platform.certificates (
    name text NOT NULL,
    sealed bytea NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE platform.certificates IS 'account key, certificate and pending challenge of an ACME service';

COMMENT ON COLUMN platform.certificates.sealed IS 'PEM, sealed under a key of the install';

CREATE TABLE platform.database_credentials (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    name text NOT NULL,
    access text NOT NULL,
    username text NOT NULL,
    verifier text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT database_credentials_access CHECK ((access = ANY (ARRAY['owner'::text, 'read_only'::text])))
);

COMMENT ON COLUMN platform.database_credentials.username IS 'random, since one listener serves all projects';

COMMENT ON COLUMN platform.database_credentials.verifier IS 'SCRAM-SHA-256 of the password, which itself is kept nowhere';

CREATE TABLE platform.database_sessions (
    uuid uuid NOT NULL,
    server uuid NOT NULL,
    entry jsonb NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON COLUMN platform.database_sessions.server IS 'holds an advisory lock while it runs';

COMMENT ON COLUMN platform.database_sessions.entry IS 'audit entry of the end of the session';

CREATE TABLE platform.forms (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL
);

COMMENT ON TABLE platform.forms IS 'where a form lives: requests name a form without naming its project';

CREATE TABLE platform.idempotency (
    key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint,
    answer bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    holder integer
);

COMMENT ON COLUMN platform.idempotency.key IS 'hash of who asks, what for, and under which Idempotency-Key';

COMMENT ON COLUMN platform.idempotency.fingerprint IS 'hash of the body';

COMMENT ON COLUMN platform.idempotency.status IS 'null while the request is under way';

COMMENT ON COLUMN platform.idempotency.holder IS 'PID of the database session of the server that works on the request; null if the server did not know it';

CREATE TABLE platform.instance (
    one boolean DEFAULT true NOT NULL,
    administrator_uuid uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    name_key bytea,
    CONSTRAINT instance_name_key CHECK ((octet_length(name_key) = 16)),
    CONSTRAINT instance_one CHECK (one)
);

COMMENT ON COLUMN platform.instance.administrator_uuid IS 'the first user; null until someone claims the instance';

COMMENT ON COLUMN platform.instance.name_key IS 'AES key that names of databases are encrypted under; null: they are the UUIDs of the projects';

CREATE TABLE platform.invitations (
    uuid uuid NOT NULL,
    organization_uuid uuid NOT NULL,
    email text NOT NULL,
    email_folded text NOT NULL,
    role smallint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    sent_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT invitations_role CHECK (((role >= 2) AND (role <= 5)))
);

COMMENT ON TABLE platform.invitations IS 'who may become a member; the row goes when they do';

CREATE TABLE platform.links (
    uuid uuid NOT NULL,
    purpose text NOT NULL,
    user_uuid uuid,
    subject_uuid uuid,
    email text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);

COMMENT ON TABLE platform.links IS 'what a link in a mail is good for; its token is computed from the instance''s secret and kept nowhere';

COMMENT ON COLUMN platform.links.subject_uuid IS 'what else it is about, such as an invitation';

COMMENT ON COLUMN platform.links.email IS 'the address that it was sent to';

CREATE TABLE platform.members (
    organization_uuid uuid NOT NULL,
    user_uuid uuid NOT NULL,
    role smallint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    accountable boolean DEFAULT true NOT NULL,
    CONSTRAINT members_role CHECK (((role >= 2) AND (role <= 5)))
);

COMMENT ON COLUMN platform.members.role IS '2 owner, 3 admin, 4 developer, 5 viewer';

COMMENT ON COLUMN platform.members.accountable IS 'agreed to the role when joining, or acted on it since: a promoted owner did not ask for the projects of others';

CREATE TABLE platform.migrations (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE platform.migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME platform.migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE platform.organizations (
    uuid uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE platform.outbox_projects (
    project_uuid uuid NOT NULL,
    found_at timestamp with time zone NOT NULL
);

COMMENT ON COLUMN platform.outbox_projects.found_at IS 'last work, exact to an hour';

CREATE TABLE platform.project_jwt_keys (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    kid text NOT NULL,
    algorithm text NOT NULL,
    jwk json NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    CONSTRAINT project_jwt_keys_algorithm CHECK ((algorithm = ANY (ARRAY['ES256'::text, 'RS256'::text])))
);

COMMENT ON COLUMN platform.project_jwt_keys.jwk IS 'JSON Web Key, its public members only';

CREATE TABLE platform.project_keys (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    hint text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    CONSTRAINT project_keys_kind CHECK ((kind = ANY (ARRAY['publishable'::text, 'secret'::text])))
);

COMMENT ON COLUMN platform.project_keys.hint IS 'the beginning of the key, by which people tell it from others';

COMMENT ON COLUMN platform.project_keys.hash IS 'SHA-256 of the key, which itself is kept nowhere';

CREATE TABLE platform.projects (
    uuid uuid NOT NULL,
    organization_uuid uuid NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    status text NOT NULL,
    schema_version bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    deleted_at timestamp with time zone,
    closed boolean DEFAULT false NOT NULL,
    rest_schemas text[] DEFAULT '{public}'::text[] NOT NULL,
    backup_before_destructive boolean DEFAULT false NOT NULL,
    max_database_bytes bigint,
    request_key text,
    rest_max_rows integer DEFAULT 0 NOT NULL,
    rest_aggregates boolean DEFAULT false NOT NULL,
    rest_plan boolean DEFAULT false NOT NULL,
    rest_tx_end text DEFAULT 'commit'::text NOT NULL,
    rest_anon_timeout_ms integer DEFAULT 0 NOT NULL,
    rest_authenticated_timeout_ms integer DEFAULT 0 NOT NULL,
    rest_service_role_timeout_ms integer DEFAULT 0 NOT NULL,
    rest_read_replica boolean DEFAULT false NOT NULL,
    CONSTRAINT projects_deleted_at CHECK (((status <> 'deleted'::text) OR (deleted_at IS NOT NULL))),
    CONSTRAINT projects_max_database_bytes CHECK ((max_database_bytes >= 0)),
    CONSTRAINT projects_rest_anon_timeout CHECK (((rest_anon_timeout_ms >= 0) AND (rest_anon_timeout_ms <= 30000))),
    CONSTRAINT projects_rest_authenticated_timeout CHECK (((rest_authenticated_timeout_ms >= 0) AND (rest_authenticated_timeout_ms <= 30000))),
    CONSTRAINT projects_rest_max_rows CHECK ((rest_max_rows >= 0)),
    CONSTRAINT projects_rest_schemas CHECK (((cardinality(rest_schemas) >= 1) AND (cardinality(rest_schemas) <= 20))),
    CONSTRAINT projects_rest_service_role_timeout CHECK (((rest_service_role_timeout_ms >= 0) AND (rest_service_role_timeout_ms <= 30000))),
    CONSTRAINT projects_rest_tx_end CHECK ((rest_tx_end = ANY (ARRAY['commit'::text, 'commit-allow-override'::text, 'rollback'::text, 'rollback-allow-override'::text]))),
    CONSTRAINT projects_status CHECK ((status = ANY (ARRAY['creating'::text, 'active'::text, 'paused'::text, 'deleted'::text, 'deleting'::text])))
);

COMMENT ON COLUMN platform.projects.schema_version IS 'the migration that the project''s database has reached';

COMMENT ON COLUMN platform.projects.closed IS 'that the database of a paused or deleted project takes no connections; until it is so, whoever comes by makes it so';

COMMENT ON COLUMN platform.projects.rest_schemas IS 'schemas that the rows API shows, the default one first';

COMMENT ON COLUMN platform.projects.backup_before_destructive IS 'whether nothing of the project is destroyed before a backup of it is completed';

COMMENT ON COLUMN platform.projects.max_database_bytes IS 'the project''s own quota; null: that of every project';

COMMENT ON COLUMN platform.projects.request_key IS 'hash of the Idempotency-Key of the request that creates the project, for the audit entry of its completion';

COMMENT ON COLUMN platform.projects.rest_max_rows IS 'maximum number of rows of a response';

COMMENT ON COLUMN platform.projects.rest_aggregates IS 'whether select may contain aggregates';

COMMENT ON COLUMN platform.projects.rest_plan IS 'whether requests may ask for the plan of their statement';

COMMENT ON COLUMN platform.projects.rest_tx_end IS 'how transactions end, and whether requests may choose';

COMMENT ON COLUMN platform.projects.rest_anon_timeout_ms IS 'statement_timeout of the role anon';

COMMENT ON COLUMN platform.projects.rest_authenticated_timeout_ms IS 'statement_timeout of the role authenticated';

COMMENT ON COLUMN platform.projects.rest_service_role_timeout_ms IS 'statement_timeout of the role service_role';

COMMENT ON COLUMN platform.projects.rest_read_replica IS 'the rows API reads from a standby unless a request prefers the primary';

CREATE TABLE platform.recovery_codes (
    user_uuid uuid NOT NULL,
    hash bytea NOT NULL
);

COMMENT ON TABLE platform.recovery_codes IS 'instead of the second factor, once each: the row goes when the code is used';

CREATE TABLE platform.requests (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    duration bigint NOT NULL,
    caller text NOT NULL,
    user_uuid uuid,
    key_uuid uuid,
    client inet,
    schema_name text,
    query text,
    error_code text,
    error_message text,
    end_user_uuid uuid,
    role text,
    row_count bigint,
    bytes bigint,
    user_agent text,
    CONSTRAINT requests_caller CHECK ((caller = ANY (ARRAY['user'::text, 'key'::text, 'token'::text, 'anonymous'::text])))
)
PARTITION BY RANGE (at);

COMMENT ON TABLE platform.requests IS 'requests to projects: no value of a query, no body and no token. Its partitions, one a day, are in a schema of their own, made when they are needed';

COMMENT ON COLUMN platform.requests.uuid IS 'the request''s id, which its answer and the log have too';

COMMENT ON COLUMN platform.requests.route IS 'pattern of the route; of the interfaces of applications with the name of the table, function or bucket';

COMMENT ON COLUMN platform.requests.duration IS 'microseconds';

COMMENT ON COLUMN platform.requests.schema_name IS 'schema of the table or function; null: the default one';

COMMENT ON COLUMN platform.requests.query IS 'query string with its values cut';

COMMENT ON COLUMN platform.requests.error_message IS 'message of the failure, without values of the client';

COMMENT ON COLUMN platform.requests.row_count IS 'rows in the response, or changed ones';

COMMENT ON COLUMN platform.requests.bytes IS 'size of the response''s body';

CREATE TABLE platform.restores (
    uuid uuid NOT NULL,
    backup_uuid uuid NOT NULL,
    backup_project_uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    target text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    error text DEFAULT ''::text NOT NULL,
    kept_until timestamp with time zone,
    heartbeat_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    undone_at timestamp with time zone,
    missing jsonb DEFAULT '[]'::jsonb NOT NULL,
    allow_missing boolean DEFAULT false NOT NULL,
    CONSTRAINT restores_status CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'completed'::text, 'failed'::text]))),
    CONSTRAINT restores_target CHECK ((target = ANY (ARRAY['in_place'::text, 'new'::text])))
);

COMMENT ON COLUMN platform.restores.project_uuid IS 'the project that is restored into: the backup''s own, or a new one, which is removed if that fails';

COMMENT ON COLUMN platform.restores.kept_until IS 'until when the database is kept that the restored one took the place of; null if there is none';

COMMENT ON COLUMN platform.restores.undone_at IS 'since when the project is again what it was before; what was restored is what is kept then';

COMMENT ON COLUMN platform.restores.missing IS 'objects that the restore could not create, with their statements';

COMMENT ON COLUMN platform.restores.allow_missing IS 'whether a restore in place goes on without them';

CREATE TABLE platform.retired_roles (
    name text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    next_try timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON COLUMN platform.retired_roles.next_try IS 'the time between tries doubles, up to six hours';

CREATE TABLE platform.s3_keys (
    uuid uuid NOT NULL,
    project_uuid uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL
);

COMMENT ON COLUMN platform.s3_keys.uuid IS 'also the access key; the secret key is derived from it and the secret of the install, and kept nowhere';

CREATE TABLE platform.schedule_times (
    project_uuid uuid NOT NULL,
    next_run_at timestamp with time zone,
    version bigint DEFAULT 1 NOT NULL
);

COMMENT ON COLUMN platform.schedule_times.next_run_at IS 'when a server opens the project; null: it has nothing to do';

COMMENT ON COLUMN platform.schedule_times.version IS 'changes with each look and each change of a schedule: only the last look sets next_run_at';

CREATE TABLE platform.second_factors (
    user_uuid uuid NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    confirmed_at timestamp with time zone,
    last_step bigint DEFAULT 0 NOT NULL
);

COMMENT ON COLUMN platform.second_factors.sealed IS 'the shared secret, encrypted with the secret key of the instance';

COMMENT ON COLUMN platform.second_factors.confirmed_at IS 'since when a log-in needs it; null: not yet';

COMMENT ON COLUMN platform.second_factors.last_step IS 'the time step of the last code that was taken: no code of it or before is taken again';

CREATE TABLE platform.servers (
    uuid uuid NOT NULL,
    pid integer NOT NULL,
    session_started timestamp with time zone NOT NULL,
    address text,
    connections integer
);

COMMENT ON TABLE platform.servers IS 'servers of the install. A row counts as long as its session exists';

COMMENT ON COLUMN platform.servers.pid IS 'PID of the server''s LISTEN session';

COMMENT ON COLUMN platform.servers.session_started IS 'start of that session, since a PID is used again';

COMMENT ON COLUMN platform.servers.address IS 'host:port for messages of other servers; null: it does not listen yet';

COMMENT ON COLUMN platform.servers.connections IS 'connections that the server may open, or has open; null: it has not claimed any yet';

CREATE TABLE platform.sessions (
    uuid uuid NOT NULL,
    user_uuid uuid NOT NULL,
    refresh_hash bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    refreshed_at timestamp with time zone DEFAULT now() NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    user_agent text DEFAULT ''::text NOT NULL
);

COMMENT ON TABLE platform.sessions IS 'a log-in; without its row no token of the session is worth anything';

COMMENT ON COLUMN platform.sessions.refresh_hash IS 'of releases before refresh tokens were taken; read by nobody';

COMMENT ON COLUMN platform.sessions.generation IS 'of the one refresh token that is not spent';

COMMENT ON COLUMN platform.sessions.address IS 'from where it was opened, or renewed last';

CREATE TABLE platform.settings (
    name text NOT NULL,
    value jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL
);

COMMENT ON TABLE platform.settings IS 'what an administrator has set to another value than the default';

CREATE TABLE platform.signing_keys (
    id text NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    retired_at timestamp with time zone
);

COMMENT ON COLUMN platform.signing_keys.sealed IS 'the private key, encrypted with the secret key of the instance';

CREATE TABLE platform.tokens (
    uuid uuid NOT NULL,
    user_uuid uuid NOT NULL,
    name text NOT NULL,
    hint text NOT NULL,
    hash bytea NOT NULL,
    role smallint NOT NULL,
    project_uuids uuid[],
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT tokens_role CHECK (((role >= 1) AND (role <= 5)))
);

COMMENT ON COLUMN platform.tokens.hint IS 'the beginning of the token, by which people tell it from others';

COMMENT ON COLUMN platform.tokens.hash IS 'SHA-256 of the token, which itself is kept nowhere';

COMMENT ON COLUMN platform.tokens.role IS 'what the token may do at most, whatever its user may';

COMMENT ON COLUMN platform.tokens.project_uuids IS 'the only projects that it opens; null: all of its user''s';

CREATE TABLE platform.users (
    uuid uuid NOT NULL,
    username text NOT NULL,
    username_folded text NOT NULL,
    email text NOT NULL,
    email_folded text NOT NULL,
    password_hash text NOT NULL,
    bio text DEFAULT ''::text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    is_administrator boolean DEFAULT false NOT NULL,
    organization_uuid uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT users_status CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text])))
);

COMMENT ON COLUMN platform.users.organization_uuid IS 'the organization made with the user';

CREATE TABLE platform.webhook_projects (
    project_uuid uuid NOT NULL,
    wanted_at timestamp with time zone DEFAULT now() NOT NULL,
    server uuid,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);

COMMENT ON TABLE platform.webhook_projects IS 'projects with webhooks, and the server that delivers for them';

COMMENT ON COLUMN platform.webhook_projects.wanted_at IS 'when a webhook was last made or resumed; a row without webhooks is removed some time later';

ALTER TABLE ONLY platform.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (key);

ALTER TABLE ONLY platform.auth_settings
    ADD CONSTRAINT auth_settings_pkey PRIMARY KEY (project_uuid);

ALTER TABLE ONLY platform.awaited_backups
    ADD CONSTRAINT awaited_backups_pkey PRIMARY KEY (project_uuid, request);

ALTER TABLE ONLY platform.backup_contents
    ADD CONSTRAINT backup_contents_pkey PRIMARY KEY (backup_uuid, sha256);

ALTER TABLE ONLY platform.backup_schedules
    ADD CONSTRAINT backup_schedules_pkey PRIMARY KEY (project_uuid);

ALTER TABLE ONLY platform.backups
    ADD CONSTRAINT backups_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.certificates
    ADD CONSTRAINT certificates_pkey PRIMARY KEY (name);

ALTER TABLE ONLY platform.database_credentials
    ADD CONSTRAINT database_credentials_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.database_credentials
    ADD CONSTRAINT database_credentials_username_key UNIQUE (username);

ALTER TABLE ONLY platform.database_sessions
    ADD CONSTRAINT database_sessions_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.forms
    ADD CONSTRAINT forms_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key);

ALTER TABLE ONLY platform.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (one);

ALTER TABLE ONLY platform.invitations
    ADD CONSTRAINT invitations_email_key UNIQUE (organization_uuid, email_folded);

ALTER TABLE ONLY platform.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (organization_uuid, user_uuid);

ALTER TABLE ONLY platform.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY platform.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.outbox_projects
    ADD CONSTRAINT outbox_projects_pkey PRIMARY KEY (project_uuid);

ALTER TABLE ONLY platform.project_jwt_keys
    ADD CONSTRAINT project_jwt_keys_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.project_keys
    ADD CONSTRAINT project_keys_hash_key UNIQUE (hash);

ALTER TABLE ONLY platform.project_keys
    ADD CONSTRAINT project_keys_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_uuid, hash);

ALTER TABLE ONLY platform.restores
    ADD CONSTRAINT restores_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.retired_roles
    ADD CONSTRAINT retired_roles_pkey PRIMARY KEY (name);

ALTER TABLE ONLY platform.s3_keys
    ADD CONSTRAINT s3_keys_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.schedule_times
    ADD CONSTRAINT schedule_times_pkey PRIMARY KEY (project_uuid);

ALTER TABLE ONLY platform.second_factors
    ADD CONSTRAINT second_factors_pkey PRIMARY KEY (user_uuid);

ALTER TABLE ONLY platform.servers
    ADD CONSTRAINT servers_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.sessions
    ADD CONSTRAINT sessions_refresh_key UNIQUE (refresh_hash);

ALTER TABLE ONLY platform.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);

ALTER TABLE ONLY platform.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY platform.tokens
    ADD CONSTRAINT tokens_hash_key UNIQUE (hash);

ALTER TABLE ONLY platform.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.users
    ADD CONSTRAINT users_email_key UNIQUE (email_folded);

ALTER TABLE ONLY platform.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY platform.users
    ADD CONSTRAINT users_username_key UNIQUE (username_folded);

ALTER TABLE ONLY platform.webhook_projects
    ADD CONSTRAINT webhook_projects_pkey PRIMARY KEY (project_uuid);

CREATE INDEX attempts_resets ON platform.attempts USING btree (resets_at);

CREATE INDEX awaited_backups_by_backup ON platform.awaited_backups USING btree (backup_uuid);

CREATE INDEX backup_contents_sha256_key ON platform.backup_contents USING btree (project_uuid, sha256);

CREATE INDEX backup_schedules_due ON platform.backup_schedules USING btree (next_run_at);

CREATE INDEX backups_completed ON platform.backups USING btree (project_uuid, completed_at) WHERE (status = 'completed'::text);

CREATE UNIQUE INDEX backups_one_at_a_time ON platform.backups USING btree (project_uuid, origin) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text]));

CREATE INDEX backups_running ON platform.backups USING btree (heartbeat_at) WHERE (status = 'running'::text);

CREATE UNIQUE INDEX database_credentials_name_key ON platform.database_credentials USING btree (project_uuid, lower(name));

CREATE INDEX forms_project ON platform.forms USING btree (project_uuid);

CREATE INDEX idempotency_created ON platform.idempotency USING btree (created_at);

CREATE INDEX invitations_expires ON platform.invitations USING btree (expires_at);

CREATE INDEX links_expires ON platform.links USING btree (expires_at);

CREATE INDEX links_subject ON platform.links USING btree (subject_uuid);

CREATE INDEX links_user ON platform.links USING btree (user_uuid);

CREATE INDEX members_user ON platform.members USING btree (user_uuid);

CREATE UNIQUE INDEX project_jwt_keys_kid_key ON platform.project_jwt_keys USING btree (project_uuid, kid);

CREATE UNIQUE INDEX project_keys_name_key ON platform.project_keys USING btree (project_uuid, lower(name));

CREATE UNIQUE INDEX projects_name_key ON platform.projects USING btree (organization_uuid, lower(name)) WHERE (status <> ALL (ARRAY['deleted'::text, 'deleting'::text]));

CREATE INDEX requests_project ON ONLY platform.requests USING btree (project_uuid, at DESC, uuid DESC);

CREATE INDEX restores_backup ON platform.restores USING btree (backup_uuid);

CREATE INDEX restores_kept ON platform.restores USING btree (kept_until) WHERE (kept_until IS NOT NULL);

CREATE UNIQUE INDEX restores_one_at_a_time ON platform.restores USING btree (project_uuid) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text]));

CREATE INDEX restores_running ON platform.restores USING btree (heartbeat_at) WHERE (status = 'running'::text);

CREATE UNIQUE INDEX s3_keys_name_key ON platform.s3_keys USING btree (project_uuid, lower(name));

CREATE INDEX schedule_times_next_run_at_idx ON platform.schedule_times USING btree (next_run_at) WHERE (next_run_at IS NOT NULL);

CREATE INDEX sessions_expires ON platform.sessions USING btree (expires_at);

CREATE INDEX sessions_user ON platform.sessions USING btree (user_uuid);

CREATE UNIQUE INDEX signing_keys_active ON platform.signing_keys USING btree (((retired_at IS NULL))) WHERE (retired_at IS NULL);

CREATE INDEX tokens_expires ON platform.tokens USING btree (expires_at);

CREATE UNIQUE INDEX tokens_name_key ON platform.tokens USING btree (user_uuid, lower(name));

CREATE INDEX users_administrators ON platform.users USING btree (uuid) WHERE is_administrator;

CREATE TRIGGER find_restored_schedules AFTER UPDATE OF status, undone_at ON platform.restores FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) OR (new.undone_at IS DISTINCT FROM old.undone_at))) EXECUTE FUNCTION platform.find_restored_schedules();

CREATE CONSTRAINT TRIGGER members_last_owner AFTER DELETE OR UPDATE ON platform.members DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW WHEN ((old.role = 2)) EXECUTE FUNCTION platform.keep_an_owner();

CREATE TRIGGER tell_backup_over AFTER UPDATE OF status ON platform.backups FOR EACH ROW WHEN (((new.status = ANY (ARRAY['completed'::text, 'failed'::text])) AND (new.status <> old.status))) EXECUTE FUNCTION platform.tell_backup_over();

CREATE CONSTRAINT TRIGGER users_last_administrator AFTER DELETE OR UPDATE OF status, is_administrator ON platform.users DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW WHEN ((old.is_administrator AND (old.status = 'active'::text))) EXECUTE FUNCTION platform.keep_an_administrator();

ALTER TABLE ONLY platform.auth_settings
    ADD CONSTRAINT auth_settings_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.awaited_backups
    ADD CONSTRAINT awaited_backups_backup FOREIGN KEY (backup_uuid) REFERENCES platform.backups(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.awaited_backups
    ADD CONSTRAINT awaited_backups_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.backup_contents
    ADD CONSTRAINT backup_contents_backup FOREIGN KEY (backup_uuid) REFERENCES platform.backups(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.backup_schedules
    ADD CONSTRAINT backup_schedules_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.backups
    ADD CONSTRAINT backups_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.database_credentials
    ADD CONSTRAINT database_credentials_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.forms
    ADD CONSTRAINT forms_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.invitations
    ADD CONSTRAINT invitations_organization FOREIGN KEY (organization_uuid) REFERENCES platform.organizations(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.links
    ADD CONSTRAINT links_user FOREIGN KEY (user_uuid) REFERENCES platform.users(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.members
    ADD CONSTRAINT members_organization FOREIGN KEY (organization_uuid) REFERENCES platform.organizations(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.members
    ADD CONSTRAINT members_user FOREIGN KEY (user_uuid) REFERENCES platform.users(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.outbox_projects
    ADD CONSTRAINT outbox_projects_project_uuid_fkey FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.project_jwt_keys
    ADD CONSTRAINT project_jwt_keys_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.project_keys
    ADD CONSTRAINT project_keys_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.projects
    ADD CONSTRAINT projects_organization FOREIGN KEY (organization_uuid) REFERENCES platform.organizations(uuid);

ALTER TABLE ONLY platform.recovery_codes
    ADD CONSTRAINT recovery_codes_factor FOREIGN KEY (user_uuid) REFERENCES platform.second_factors(user_uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.restores
    ADD CONSTRAINT restores_project FOREIGN KEY (backup_project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.s3_keys
    ADD CONSTRAINT s3_keys_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.schedule_times
    ADD CONSTRAINT schedule_times_project FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.second_factors
    ADD CONSTRAINT second_factors_user FOREIGN KEY (user_uuid) REFERENCES platform.users(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.sessions
    ADD CONSTRAINT sessions_user FOREIGN KEY (user_uuid) REFERENCES platform.users(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.tokens
    ADD CONSTRAINT tokens_user FOREIGN KEY (user_uuid) REFERENCES platform.users(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY platform.users
    ADD CONSTRAINT users_organization FOREIGN KEY (organization_uuid) REFERENCES platform.organizations(uuid);

ALTER TABLE ONLY platform.webhook_projects
    ADD CONSTRAINT webhook_projects_project_uuid_fkey FOREIGN KEY (project_uuid) REFERENCES platform.projects(uuid) ON DELETE CASCADE;
