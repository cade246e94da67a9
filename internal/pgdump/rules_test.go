package pgdump

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/sqllex"
)

// decided is a verdict in short.
type decided struct {
	Does  action
	SQL   string // if it differs from the dump's
	Notes string
}

func decide(r *rules, sql string, h header) decided {
	s := statement{Statement: sqllex.Split(sql)[0], header: h}
	s.command = strings.HasPrefix(sql, `\`)

	v := r.decide(s)
	d := decided{Does: v.action}
	if v.sql != sql {
		d.SQL = v.sql
	}

	var notes []string
	for _, n := range v.notes {
		notes = append(notes, strings.TrimPrefix(string(n.topic)+": "+n.text, ": "))
	}
	d.Notes = strings.Join(notes, "; ")

	return d
}

func TestRules(t *testing.T) {
	t.Parallel()

	for sql, want := range map[string]decided{
		`\restrict X`:      {leaveOut, "", `commands of psql: \restrict`},
		`\connect shop`:    {leaveOut, "", `databases: \connect shop`},
		`\! rm -rf /`:      {refuse, "", `the command \! of psql is not supported`},
		`\copy t from 'x'`: {refuse, "", `the command \copy of psql is not supported`},

		`SET row_security = off`: {Does: set}, `SELECT pg_catalog.set_config('search_path', '', false)`: {Does: set},
		`RESET ALL`:                             {Does: set},
		`SET SESSION AUTHORIZATION 'x'`:         {leaveOut, "", "roles: everything belongs to the project"},
		`SET client_encoding = 'LATIN1'`:        {Does: set},
		`SET client_encoding TO "SJIS"`:         {refuse, "", "the encoding sjis is not supported: dump with --encoding UTF8"},
		`SET standard_conforming_strings = off`: {refuse, "", "dumps with standard_conforming_strings = off are not supported: dump with a newer pg_dump"},

		`VACUUM (ANALYZE) public.t`:         {leaveOut, "", "maintenance: VACUUM: a new database needs none"},
		`REINDEX TABLE public.t`:            {leaveOut, "", "maintenance: REINDEX: a new database needs none"},
		`CLUSTER public.t USING i`:          {leaveOut, "", "maintenance: CLUSTER: a new database needs none"},
		`CHECKPOINT`:                        {leaveOut, "", "maintenance: CHECKPOINT: a new database needs none"},
		`LOAD 'age'`:                        {leaveOut, "", "maintenance: LOAD: a project loads no libraries"},
		`REASSIGN OWNED BY a TO b`:          {leaveOut, "", "owners: everything belongs to the project"},
		`DROP OWNED BY a`:                   {leaveOut, "", "owners: everything belongs to the project"},
		`ANALYZE`:                           {Does: run},
		`ALTER TABLE public.t CLUSTER ON i`: {Does: run},

		`BEGIN`:    {leaveOut, "", "transactions: BEGIN: the import is one transaction"},
		`ROLLBACK`: {refuse, "", "ROLLBACK would undo the import, which is one transaction: use --single-transaction=false"},

		`CREATE ROLE app`:                                             {leaveOut, "", "roles: role app"},
		`ALTER USER app SET search_path TO x`:                         {leaveOut, "", "roles: user app"},
		`CREATE USER MAPPING FOR a SERVER b`:                          {leaveOut, "", "objects: user mapping for: a project has none"},
		`ALTER DATABASE shop SET a TO b`:                              {leaveOut, "", "databases: database shop"},
		`CREATE PUBLICATION p FOR ALL TABLES`:                         {leaveOut, "", "objects: publication p: a project has none"},
		`ALTER PUBLICATION p OWNER TO x`:                              {leaveOut, "", "objects: publication p: a project has none"},
		`CREATE PUBLICATION supabase_realtime FOR TABLE t`:            {attempt, "", "objects: create publication supabase_realtime"},
		`DROP PUBLICATION IF EXISTS supabase_realtime`:                {attempt, "", "objects: drop publication supabase_realtime"},
		`ALTER PUBLICATION supabase_realtime ADD TABLE ONLY public.t`: {attempt, "", "objects: alter publication supabase_realtime"},
		`ALTER PUBLICATION supabase_realtime OWNER TO postgres`:       {leaveOut, "", "owners: owner postgres"},
		`COMMENT ON EVENT TRIGGER e IS 'x'`:                           {leaveOut, "", "objects: event trigger e: a project has none"},
		`DROP EVENT TRIGGER IF EXISTS e`:                              {leaveOut, "", "objects: event trigger e: a project has none"},
		`CREATE EXTENSION IF NOT EXISTS pgmq WITH SCHEMA pgmq`:        {leaveOut, "", "extensions: extension pgmq: every project has its functions"},
		`CREATE SCHEMA pgmq`:                                          {leaveOut, "", "schemas: create schema pgmq: every project has the functions of pgmq"},
		`CREATE FUNCTION pgmq_public.q_x() RETURNS int`:               {leaveOut, "", "schemas: create function pgmq_public.q_x: every project has the functions of pgmq"},
		`CREATE TABLE pgmq.meta ()`:                                   {leaveOut, "", "schemas: create table pgmq.meta: every project has the functions of pgmq"},
		`CREATE TABLE pgmq.q_tasks (msg_id bigint)`:                   {Does: run},
		`CREATE INDEX q_tasks_vt_idx ON pgmq.q_tasks (vt)`:            {Does: run},
		`ALTER TABLE pgmq.a_tasks ADD PRIMARY KEY (msg_id)`:           {Does: run},

		`CREATE OR REPLACE PROCEDURAL LANGUAGE plpgsql`: {
			leaveOut, "", "objects: language plpgsql: a project has none"},
		`SECURITY LABEL FOR x ON TABLE t IS 'y'`:                  {leaveOut, "", "objects: security label"},
		`SELECT pg_catalog.lo_create('16401')`:                    {leaveOut, "", "large objects: large objects: store their bytes as files"},
		`SELECT pg_catalog.lowrite(0, '\x00')`:                    {leaveOut, "", "large objects: large objects: store their bytes as files"},
		`ALTER LARGE OBJECT 16401 OWNER TO x`:                     {leaveOut, "", "large objects: large objects: store their bytes as files"},
		`SELECT * FROM pg_catalog.pg_restore_relation_stats('a')`: {leaveOut, "", "statistics: statistics: the project collects its own"},

		`CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog`: {Does: leaveOut},
		`CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public`: {Does: extension},
		`COMMENT ON EXTENSION hstore IS 'x'`:                            {leaveOut, "", "extensions: comment on extension hstore"},

		`ALTER TABLE public.a OWNER TO "x y"`:                   {leaveOut, "", "owners: owner x y"},
		`ALTER FUNCTION public.f(a integer, b text) OWNER TO x`: {leaveOut, "", "owners: owner x"},
		`ALTER OPERATOR public.+ (integer, NONE) OWNER TO x`:    {leaveOut, "", "owners: owner x"},
		`ALTER TABLE public.a RENAME COLUMN owner TO x`:         {Does: run},
		`ALTER TABLE auth.users OWNER TO supabase_auth_admin`:   {leaveOut, "", "owners: owner supabase_auth_admin"},

		`GRANT SELECT ON TABLE public.a TO anon`:       {Does: run},
		`GRANT SELECT(id) ON TABLE public.a TO "anon"`: {Does: run},
		`GRANT ALL ON FUNCTION public.f(to_ text) TO web, authenticated, ops WITH GRANT OPTION`: {run,
			"GRANT ALL ON FUNCTION public.f(to_ text) TO authenticated WITH GRANT OPTION",
			"roles: privileges of web, ops: no such role in the project"},
		`REVOKE ALL ON TABLE public.a FROM web`:                                                   {leaveOut, "", "roles: privileges of web: no such role in the project"},
		`GRANT web TO ops`:                                                                        {leaveOut, "", "roles: membership in a role"},
		`GRANT ALL ON SCHEMA public TO PUBLIC`:                                                    {leaveOut, "", "privileges: privileges of PUBLIC on schema public"},
		`GRANT ALL ON SCHEMA app TO PUBLIC`:                                                       {Does: run},
		`GRANT USAGE ON SCHEMA auth TO anon`:                                                      {leaveOut, "", "privileges: privileges on auth, which belongs to the platform"},
		`GRANT ALL ON FUNCTION extensions.armor(bytea) TO anon`:                                   {leaveOut, "", "privileges: privileges on extensions.armor, which belongs to the platform"},
		`GRANT ALL ON ALL TABLES IN SCHEMA storage TO anon`:                                       {leaveOut, "", "privileges: privileges on storage, which belongs to the platform"},
		`ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA public GRANT ALL ON TABLES TO anon`: {leaveOut, "", "privileges: default privileges of postgres"},
		`ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon`:                   {Does: run},

		`CREATE SCHEMA public`:                            {leaveOut, "", "schemas: create schema public: it is the project's"},
		`DROP SCHEMA IF EXISTS public`:                    {leaveOut, "", "schemas: drop schema public: it is the project's"},
		`CREATE SCHEMA extensions`:                        {leaveOut, "", "schemas: create schema extensions: it is the project's"},
		`CREATE SCHEMA app`:                               {Does: run},
		`COMMENT ON SCHEMA public IS 'x'`:                 {Does: run},
		`CREATE TABLE storage.t (id int)`:                 {refuse, "", "the schema storage belongs to the platform: leave it out by --exclude-schema storage, or rename it before you dump"},
		`CREATE TABLE old.t (id int)`:                     {leaveOut, "", "schemas: create table old.t"},
		`ALTER TABLE ONLY old.t ADD PRIMARY KEY (id)`:     {leaveOut, "", "schemas: alter table old.t"},
		`CREATE UNIQUE INDEX i ON old.t USING btree (id)`: {leaveOut, "", "schemas: create index i on old.t"},
		`COPY old.t (id) FROM stdin`:                      {skipRows, "", "schemas: copy table old.t"},
		`INSERT INTO old.t VALUES (1)`:                    {leaveOut, "", "schemas: insert table old.t"},
		`SELECT pg_catalog.setval('old.t_id_seq', 1)`:     {leaveOut, "", "schemas: select sequence old.t_id_seq"},
		`COMMENT ON COLUMN old.t.id IS 'x'`:               {leaveOut, "", "schemas: comment column old.t"},
		`REFRESH MATERIALIZED VIEW old.m`:                 {leaveOut, "", "schemas: refresh materialized view old.m"},
		`CREATE TRIGGER new_user AFTER INSERT ON auth.users FOR EACH ROW EXECUTE FUNCTION public.f()`:                {attemptTrigger, "", "references: create trigger new_user on auth.users"},
		`CREATE POLICY "p 1" ON storage.objects FOR SELECT USING ((storage.foldername(name))[1] = auth.uid()::text)`: {attempt, "", `references: create policy p 1 on storage.objects`},
		`CREATE POLICY p ON storage.objects USING (EXISTS (SELECT FROM storage.buckets b WHERE b.id = bucket_id))`:   {attempt, "", "references: create policy p on storage.objects"},
		`CREATE POLICY p ON "storage"."buckets" TO supabase_storage_admin, anon USING (name::public.citext = 'a')`: {attempt,
			`CREATE POLICY p ON "storage"."buckets" TO anon USING (name::extensions.citext = 'a')`,
			"references: create policy p on storage.buckets; changed: public.citext is extensions.citext; roles: policy p on storage.buckets for supabase_storage_admin: no such role in the project"},
		`CREATE POLICY p ON storage.buckets TO postgres USING (true)`:                     {leaveOut, "", "roles: policy p on storage.buckets for postgres: no such role in the project"},
		`CREATE POLICY p ON storage.objects USING (storage.operation() = 'x')`:            {leaveOut, "", "references: policy p on storage.objects refers to storage.operation"},
		`CREATE POLICY p ON storage.objects USING (owner IN (SELECT id FROM auth.users))`: {attempt, "", "references: create policy p on storage.objects"},
		`CREATE POLICY p ON storage.migrations USING (true)`:                              {leaveOut, "", "references: create policy p on storage.migrations"},
		`COMMENT ON POLICY p ON storage.objects IS 'x'`: {attempt, "",
			"references: comment policy p on storage.objects"},
		`DROP POLICY IF EXISTS p ON storage.objects`: {attempt, "", "references: drop policy p on storage.objects"},
		`INSERT INTO storage.buckets (id, name, public) VALUES ('a', 'a', true)`: {attempt, "",
			"schemas: insert table storage.buckets"},
		`ALTER TABLE storage.objects ENABLE ROW LEVEL SECURITY`: {leaveOut, "",
			"schemas: alter table storage.objects: only its policies are the project's"},
		`COPY storage.buckets (id, name) FROM stdin`: {stage, "",
			"schemas: copy table storage.buckets"},
		`COPY auth.users (id, "email") FROM stdin`: {stage, "", "schemas: copy table auth.users"},
		`CREATE POLICY p ON realtime.messages FOR SELECT TO authenticated USING (realtime.topic() = 'a')`: {attempt, "",
			"references: create policy p on realtime.messages"},
		`INSERT INTO auth.users (id) VALUES ('a')`: {tryRows, "", "schemas: insert table auth.users"},
		`DELETE FROM auth.identities`:              {attempt, "", "schemas: delete table auth.identities"},
		`CREATE TRIGGER w AFTER INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION supabase_functions.http_request('a')`: {Does: run},
		`CREATE VIEW public.v AS SELECT storage.filename(path) AS name FROM public.t`:                                  {Does: run},
		`CREATE POLICY p ON public.t USING (EXISTS (SELECT FROM storage.objects))`:                                     {leaveOut, "", "references: policy p on public.t refers to storage.objects"},

		`COPY public.t (a, b) FROM stdin`: {Does: copyRows},
		`COPY public.t (` + strings.Repeat("abc, ", 99) + `b) FROM STDIN WITH (FORMAT csv)`: {Does: copyRows},
		`COPY public.t FROM '/etc/passwd'`:                                                  {refuse, "", "only COPY … FROM stdin is supported"},
		`COPY public.t TO stdout`:                                                           {refuse, "", "only COPY … FROM stdin is supported"},

		`CREATE POLICY p ON public.t TO anon, web USING (true)`: {run, "CREATE POLICY p ON public.t TO anon USING (true)",
			"roles: policy p on public.t for web: no such role in the project"},
		`CREATE POLICY p ON public.t FOR ALL TO web WITH CHECK (true)`:                             {leaveOut, "", "roles: policy p on public.t for web: no such role in the project"},
		`CREATE POLICY p ON public.t USING ((( SELECT "auth"."uid"() AS "uid") = owner))`:          {Does: run},
		`CREATE POLICY p ON public.t USING (auth.token() = owner)`:                                 {leaveOut, "", "references: policy p on public.t refers to auth.token"},
		`CREATE POLICY p ON public.t USING (id IN (SELECT id FROM auth.users))`:                    {Does: tryRun},
		`CREATE POLICY p ON public.t USING (id IN (SELECT user_id FROM auth.sessions))`:            {leaveOut, "", "references: policy p on public.t refers to auth.sessions"},
		`CREATE VIEW public.v AS SELECT id FROM auth.users`:                                        {Does: tryRun},
		`ALTER TABLE ONLY public.t ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES auth.users(id)`:    {attemptKey, "", "references: constraint k on public.t refers to auth.users"},
		`ALTER TABLE ONLY public.t ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES auth.sessions(id)`: {leaveOut, "", "references: constraint k on public.t refers to auth.sessions"},
		`ALTER TABLE ONLY public.t ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES public.u(id)`:      {Does: run},
		`CREATE VIEW public.v AS SELECT id FROM old.t`:                                             {leaveOut, "", "references: view public.v refers to old.t"},
		`CREATE TRIGGER t AFTER INSERT ON public.t EXECUTE FUNCTION old.hook()`:                    {leaveOut, "", "references: trigger t on public.t refers to old.hook"},

		`ALTER TABLE ONLY public.t FORCE ROW LEVEL SECURITY`: {Does: runLast},
		`ALTER TABLE public.t DISABLE TRIGGER ALL`: {run, "ALTER TABLE public.t DISABLE TRIGGER user",
			"changed: TRIGGER ALL is TRIGGER USER: foreign keys stay enabled"},
		`CREATE TABLE public.t (a public.citext DEFAULT 'public.citext'::public.citext, b public.citext_2)`: {run,
			"CREATE TABLE public.t (a extensions.citext DEFAULT 'public.citext'::extensions.citext, b public.citext_2)",
			"changed: public.citext is extensions.citext"},
		`CREATE INDEX i ON public.t USING gin (a public.gin_trgm_ops) WHERE (a OPERATOR(public.%) 'b')`: {run,
			"CREATE INDEX i ON public.t USING gin (a extensions.gin_trgm_ops) WHERE (a OPERATOR(extensions.%) 'b')",
			"changed: public.gin_trgm_ops is extensions.gin_trgm_ops; changed: public.% is extensions.%"},
		`CREATE FUNCTION public.f() RETURNS uuid LANGUAGE sql AS $_$ SELECT auth.uid()::public.citext -- public.citext
			WHERE 'public.citext' = $1 $_$`: {run, `CREATE FUNCTION public.f() RETURNS uuid LANGUAGE sql AS $_$ SELECT auth.uid()::extensions.citext -- public.citext
			WHERE 'public.citext' = $1 $_$`, "changed: public.citext is extensions.citext"},
		`CREATE FUNCTION public.f() RETURNS void LANGUAGE sql AS $$ DELETE FROM auth.users $$`: {Does: run},
		`INSERT INTO public.t VALUES ('auth.uid()', 'x')`:                                      {Does: run},
	} {
		r := newRules(Options{ExcludeSchemas: []string{"old"}})
		r.members["public"] = map[string]bool{"citext": true, "gin_trgm_ops": true, "%": true}

		got := decide(r, sql, header{})
		if got.Does != run && got.Does != set && got.Does != copyRows && got.Does != runLast && got.Does != attempt {
			got.SQL = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sql, diff)
		}
	}
}

// TestRulesRemember decides by earlier statements.
func TestRulesRemember(t *testing.T) {
	t.Parallel()

	r := newRules(Options{Separately: true})
	for i, step := range []struct {
		sql    string
		header header
		want   action
	}{
		{`\connect template1`, header{}, leaveOut},
		{"SET lock_timeout = 0", header{}, set},
		{`\connect shop`, header{}, leaveOut},
		{"BEGIN", header{}, run},
		{"CREATE SCHEMA vault", header{"SCHEMA", "-", "supabase_admin"}, leaveOut},
		{"CREATE TABLE auth.users ()", header{"TABLE", "auth", "supabase_auth_admin"}, leaveOut},
		{"CREATE TABLE vault.secrets ()", header{"TABLE", "vault", "supabase_admin"}, leaveOut},
		{"CREATE SCHEMA pgmq", header{"SCHEMA", "-", "supabase_admin"}, leaveOut},
		{"CREATE TYPE pgmq.message_record AS (a int)", header{"TYPE", "pgmq", "supabase_admin"}, leaveOut},
		{"CREATE TABLE pgmq.q_tasks ()", header{"TABLE", "pgmq", "postgres"}, run},
		{"CREATE FUNCTION public.g() RETURNS SETOF pgmq.message_record", header{}, run},
		{"CREATE FUNCTION public.f() RETURNS int", header{"FUNCTION", "public", "supabase_admin"}, run},
		{"CREATE VIEW public.v AS SELECT * FROM auth.sessions", header{}, leaveOut},
		{"GRANT SELECT ON TABLE public.v TO anon", header{}, leaveOut},
		{"COMMENT ON VIEW public.v IS 'x'", header{}, leaveOut},
		{"CREATE FOREIGN TABLE public.far () SERVER x", header{}, leaveOut},
		{"GRANT SELECT ON TABLE public.far TO anon", header{}, leaveOut},
		{`\connect other`, header{}, refuse},
	} {
		if got := decide(r, step.sql, step.header); got.Does != step.want {
			t.Errorf("%d, %s: got %v, want %v", i, step.sql, got, step.want)
		}
	}
}
