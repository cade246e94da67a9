package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

const (
	bucketUUID = "0192d5b0-0000-7000-8000-00000000000a"
	ann        = "0192d5b0-0000-7000-8000-000000000001"
)

// formerStatements are the changes of containers and files as the releases before
// storage.objects make them, with literals for arguments.
var formerStatements = []string{
	`insert into storage.containers (uuid, name, description, is_public, max_file_size, allowed_mime_types, created_by, updated_by)
		values ('` + bucketUUID + `', 'avatars', '', false, 1000, '{}', '` + ann + `', '` + ann + `') returning uuid, name, total_files`,
	`insert into storage.containers (uuid, name, max_file_size, created_by, updated_by)
		values ('0192d5b0-0000-7000-8000-00000000000b', 'docs', 1000, '` + ann + `', '` + ann + `')`,
	`insert into storage.uploads (blob_uuid) values ('0192d5b0-0000-7000-8000-0000000000b1')`,
	`with note as materialized (
		select blob_uuid from storage.uploads where blob_uuid = '0192d5b0-0000-7000-8000-0000000000b1' for update
	), container as materialized (
		select uuid from storage.containers where uuid = '` + bucketUUID + `' and not deleting for no key update
	), inserted as (
		insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
		select '0192d5b0-0000-7000-8000-0000000000f1', c.uuid, 'ann/a.png', 'image/png', 3, sha256('1'), n.blob_uuid, '` + ann + `', '` + ann + `'
		from container c, note n
		on conflict on constraint files_full_file_name_key do nothing
		returning *
	), completed as (
		delete from storage.uploads u using inserted i where u.blob_uuid = i.blob_uuid
	) select uuid, full_file_name from inserted`,
	`insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
		values ('0192d5b0-0000-7000-8000-0000000000f2', '` + bucketUUID + `', 'bob/b.png', 'image/png', 4, sha256('2'),
			'0192d5b0-0000-7000-8000-0000000000b2', '` + ann + `', '` + ann + `')
		on conflict on constraint files_full_file_name_key do nothing returning uuid`,
	`select uuid, blob_uuid from storage.files where container_uuid = '` + bucketUUID + `' and full_file_name = 'bob/b.png' for no key update`,
	`update storage.files set mime_type = 'image/gif', size = 5, sha256 = sha256('3'), blob_uuid = '0192d5b0-0000-7000-8000-0000000000b3',
		updated_at = now() where uuid = '0192d5b0-0000-7000-8000-0000000000f2' returning uuid`,
	`update storage.files set full_file_name = 'bob/c.png', container_uuid = '0192d5b0-0000-7000-8000-00000000000b'
		where uuid = '0192d5b0-0000-7000-8000-0000000000f2' returning uuid`,
	`update storage.containers set name = 'portraits', is_public = true where uuid = '` + bucketUUID + `' and not deleting returning uuid`,
	`insert into storage.variants (blob_uuid, source_uuid, spec, mime_type, size, sha256)
		values ('0192d5b0-0000-7000-8000-0000000000b9', '0192d5b0-0000-7000-8000-0000000000b1', 'w', 'image/png', 1, sha256('4'))`,
}

// checkObjects checks the buckets and objects that formerStatements leave. renamed is the id of the
// bucket that they rename.
func checkObjects(t *testing.T, conn *pgx.Conn, renamed string) {
	t.Helper()

	for sql, want := range map[string]string{
		`select string_agg(concat_ws('|', bucket_id, name, id, path_tokens, metadata ->> 'size', owner_id), ';' order by name) from storage.objects`: renamed + "|ann/a.png|0192d5b0-0000-7000-8000-0000000000f1|{ann,a.png}|3;docs|bob/c.png|0192d5b0-0000-7000-8000-0000000000f2|{bob,c.png}|5",
		`select string_agg(concat_ws('|', name, public, file_size_limit, type), ';' order by name) from storage.buckets`:                             "docs|f|1000|STANDARD;portraits|t|1000|STANDARD",
		`select string_agg(concat_ws('|', name, total_files, total_size), ';' order by name) from storage.containers`:                                "docs|1|5;portraits|1|3",
		`select concat_ws('|', files, bytes) from storage.usage`:                                                                                     "2|8",
	} {
		if got := pgtest.Value[string](t, conn, sql); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
}

// TestFormerStatements runs the statements of earlier releases on the present schema.
func TestFormerStatements(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Trusted)
	for _, sql := range formerStatements {
		pgtest.Exec(t, conn, sql)
	}

	checkObjects(t, conn, "avatars")
	if got := pgtest.Value[string](t, conn, `select id from storage.buckets where name = 'portraits'`); got != "avatars" {
		t.Errorf("got id %q of the renamed bucket, want avatars", got)
	}

	pgtest.Exec(t, conn, `update storage.containers set deleting = true, name = uuid::text where uuid = '`+bucketUUID+`';
		insert into storage.containers (uuid, name, max_file_size, created_by, updated_by)
			values ('0192d5b0-0000-7000-8000-00000000000c', 'avatars', 1, '`+ann+`', '`+ann+`')`)
	if got := pgtest.Value[string](t, conn, `select id from storage.buckets where name = 'avatars'`); got != "avatars" {
		t.Errorf("got id %q of the bucket after one in deletion, want avatars", got)
	}
}

// TestMigrateFormerFiles migrates a project of commit 0dc44af that has files.
func TestMigrateFormerFiles(t *testing.T) {
	t.Parallel()

	const version = 12 // of commit 0dc44af
	conn, _, provision := newFormerProject(t, version)
	for _, sql := range formerStatements {
		pgtest.Exec(t, conn, sql)
	}
	provision()

	checkObjects(t, conn, "portraits")
}

// policies let end users use their own folder of the bucket avatars.
const policies = `
	create policy read on storage.objects for select to authenticated
		using (bucket_id = 'avatars' and owner_id = (select auth.uid()::text));
	create policy write on storage.objects for insert to authenticated
		with check (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
	create policy change on storage.objects for update to authenticated
		using (owner_id = (select auth.uid()::text)) with check (storage.extension(name) = 'png');
	create policy remove on storage.objects for delete to authenticated using (owner_id = (select auth.uid()::text));
	create policy see on storage.buckets for select using (id = 'avatars')`

// TestStoragePolicies checks that the project's policies decide about objects, and that nothing
// changes them through the tables.
func TestStoragePolicies(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	platform, developer := projectdbtest.Connect(t, p, pgcluster.Trusted), projectdbtest.Connect(t, p, pgcluster.Owner)
	conn := projectdbtest.Connect(t, p, pgcluster.Request)
	pgtest.Exec(t, developer, policies)
	pgtest.Exec(t, platform, formerStatements[0]+`;
		insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by, owner_id)
		select gen_random_uuid(), '`+bucketUUID+`', '`+ann+`/' || n || '.png', 'image/png', n, sha256('1'), gen_random_uuid(), '`+ann+`', '`+ann+`',
			case when n < 3 then '`+ann+`' end
		from generate_series(1, 3) n`)
	pgtest.Exec(t, conn, `set role authenticated; set request.jwt.claims = '{"sub": "`+ann+`", "role": "authenticated"}'`)

	const granted = "storage_api_only"
	for sql, want := range map[string]string{
		`insert into storage.objects (bucket_id, full_file_name) values ('avatars', '` + ann + `/x.png')`: granted,
		`insert into storage.objects (bucket_id, full_file_name) values ('avatars', 'bob/x.png')`:         "",
		`insert into storage.objects (bucket_id, full_file_name) values ('docs', '` + ann + `/x.png')`:    "",
		`update storage.objects set full_file_name = 'x.png' where name like '%/1.png'`:                   granted,
		`update storage.objects set full_file_name = 'x.gif' where name like '%/1.png'`:                   "",
		`delete from storage.objects where name like '%.png'`:                                             granted,
		`delete from storage.buckets`:                                 granted,
		`insert into storage.buckets (id) values ('mine')`:            "",
		`truncate storage.objects`:                                    "",
		`insert into storage.files (uuid) values (gen_random_uuid())`: "",
	} {
		_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		refused, _ := errors.AsType[*pgconn.PgError](err)
		if refused == nil || refused.ConstraintName != want || (want == "" && refused.Code != "42501") {
			t.Fatalf("%s: got %v, want a refusal by %q", sql, err, want)
		}
		if strings.HasPrefix(sql, "delete from storage.objects") && strings.Count(refused.Detail, "version") != 2 {
			t.Errorf("%s: got %s, want the end user's two objects", sql, refused.Detail)
		}
	}

	if got := pgtest.Value[int](t, conn, `select count(*)::int from storage.objects`); got != 2 {
		t.Errorf("the end user sees %d objects, want 2", got)
	}
	for _, sql := range []string{
		`delete from storage.objects`, `truncate storage.buckets cascade`, `truncate storage.objects cascade`,
		`copy storage.objects (bucket_id) from program 'echo'`, `update storage.objects set owner_id = null`,
		`insert into storage.objects default values`, `with gone as (delete from storage.objects returning 1) select 1`,
	} {
		if got := pgtest.State(t, developer, sql); got != "42501" && got != "23514" {
			t.Errorf("%s as the owner: got state %q, want 42501 or 23514", sql, got)
		}
	}
	if got := pgtest.Value[int](t, developer, `select count(*)::int from storage.objects`); got != 3 {
		t.Errorf("the owner sees %d objects, want 3", got)
	}
}

// TestBucketsBySQL checks what the owner's SQL on storage.buckets does, which values it refuses,
// and that nobody else's does anything.
func TestBucketsBySQL(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, platform := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Trusted)

	const buckets = `select coalesce(string_agg(concat_ws('|', id, name, public, file_size_limit, allowed_mime_types), ';' order by id), '') from storage.buckets`
	for _, step := range []struct{ sql, want string }{
		{`insert into storage.buckets (id, name) values ('docs', 'docs')`, "docs|docs|f|5368709120|{}"},
		{`insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types) values ('docs', 'docs', true, 5, '{a/b}') on conflict (id) do nothing`, "docs|docs|f|5368709120|{}"},
		{`insert into storage.buckets (id, name, public) values ('docs', 'docs', true) on conflict (id) do update set public = excluded.public`, "docs|docs|t|5368709120|{}"},
		{`insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types, avif_autodetection) values ('docs', 'docs', false, 1000, '{"Image/PNG ",image/png,text/*}', false)
			on conflict (id) do update set public = excluded.public, file_size_limit = excluded.file_size_limit, allowed_mime_types = excluded.allowed_mime_types`, "docs|docs|f|1000|{image/png,text/*}"},
		{`do $$ begin insert into storage.buckets (id, name, owner) values ('a b', 'a b', '` + ann + `') on conflict do nothing; end $$`, "a b|a b|f|5368709120|{};docs|docs|f|1000|{image/png,text/*}"},
		{`update storage.buckets set public = true, file_size_limit = null, allowed_mime_types = null where id = 'docs'`, "a b|a b|f|5368709120|{};docs|docs|t|5368709120|{}"},
		{`update storage.buckets set public = false where id = 'none'`, "a b|a b|f|5368709120|{};docs|docs|t|5368709120|{}"},
		{`delete from storage.buckets where id = 'a b'`, "docs|docs|t|5368709120|{}"},
		{`insert into storage.buckets (id, name, public) select x, x, true from unnest('{avatars,posts}'::text[]) x`, "avatars|avatars|t|5368709120|{};docs|docs|t|5368709120|{};posts|posts|t|5368709120|{}"},
		{`delete from storage.buckets where id <> 'docs'`, "docs|docs|t|5368709120|{}"},
	} {
		pgtest.Exec(t, conn, step.sql)
		if got := pgtest.Value[string](t, conn, buckets); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.sql, got, step.want)
		}
	}
	if got := pgtest.Value[string](t, platform, `select concat_ws('|', is_public, max_file_size, substr(uuid::text, 15, 1), created_by) from storage.containers`); got != "t|5368709120|7|00000000-0000-0000-0000-000000000000" {
		t.Errorf("got the container %s", got)
	}

	pgtest.Exec(t, platform, `
		insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
		select gen_random_uuid(), uuid, 'a.png', 'image/png', 1, sha256('1'), gen_random_uuid(), '`+ann+`', '`+ann+`' from storage.containers`)
	for _, refused := range []struct{ sql, state, column string }{
		{`insert into storage.buckets (id, name) values ('a/b', 'a/b')`, "23514", "id"},
		{`insert into storage.buckets (name) values ('x')`, "23502", "id"},
		{`insert into storage.buckets (id, name) values ('public', 'x')`, "23514", "id"},
		{`insert into storage.buckets (id, name) values ('x', 'list')`, "23514", "name"},
		{`insert into storage.buckets (id, name, file_size_limit) values ('x', 'x', 0)`, "23514", "file_size_limit"},
		{`insert into storage.buckets (id, name, file_size_limit) values ('x', 'x', 5368709121)`, "23514", "file_size_limit"},
		{`insert into storage.buckets (id, name, allowed_mime_types) values ('x', 'x', '{*/*}')`, "23514", "allowed_mime_types"},
		{`insert into storage.buckets (id, name, type) values ('x', 'x', 'ANALYTICS')`, "23514", "type"},
		{`insert into storage.buckets (id, name, uuid) values ('x', 'x', gen_random_uuid())`, "42501", ""},
		{`insert into storage.buckets (id, name, deleting) values ('x', 'x', true)`, "42501", ""},
		{`insert into storage.buckets (id, name) values ('x', 'docs')`, "23505", ""},
		{`update storage.buckets set file_size_limit = -1`, "23514", "file_size_limit"},
		{`update storage.buckets set name = null`, "23502", "name"},
		{`update storage.buckets set name = 'list'`, "23514", "name"},
		{`update storage.buckets set id = 'x', name = 'x'`, "42501", "id"},
		{`update storage.buckets set is_public = false`, "42501", "is_public"},
		{`update storage.buckets set deleting = true`, "42501", "deleting"},
		{`update storage.buckets set uuid = gen_random_uuid()`, "42501", "uuid"},
		{`delete from storage.buckets`, "23503", "id"},
		{`truncate storage.buckets cascade`, "42501", ""},
		{`update storage.containers set name = 'x'`, "42501", ""},
		{`drop index storage.buckets_id_key`, "42501", ""},
		{`alter index storage.buckets_id_key rename to x`, "42501", ""},
		{`alter table storage.buckets_id_key set (fillfactor = 50)`, "42501", ""},
		{`alter table storage.buckets disable trigger insert_bucket`, "42501", ""},
	} {
		_, err := conn.PgConn().Exec(t.Context(), refused.sql).ReadAll()
		e, _ := errors.AsType[*pgconn.PgError](err)
		if e == nil || e.Code != refused.state || e.ColumnName != refused.column {
			t.Errorf("%s: got %v, want state %s on the column %q", refused.sql, err, refused.state, refused.column)
		}
	}

	pgtest.Exec(t, conn, `create policy everything on storage.buckets using (true) with check (true)`)
	request := projectdbtest.Connect(t, p, pgcluster.Service)
	for _, sql := range []string{
		`insert into storage.buckets (id, name) values ('x', 'x')`, `insert into storage.buckets (id) values ('docs') on conflict (id) do nothing`,
		`insert into storage.buckets (id) values ('docs') on conflict (id) do update set name = 'x'`,
		`update storage.buckets set is_public = false`, `update storage.buckets set public = false`,
		`delete from storage.buckets`,
		`set storage.upsert = 'on'; select storage.put_bucket(b, true) from storage.buckets b`,
	} {
		got := pgtest.State(t, request, "begin; set local role service_role; "+sql)
		if got != "42501" && got != "23514" {
			t.Errorf("%s as service_role: got state %q, want 42501 or 23514", sql, got)
		}
		pgtest.Exec(t, request, "rollback")
	}
	if got := pgtest.Value[string](t, conn, buckets); got != "docs|docs|t|5368709120|{}" {
		t.Errorf("after the refused statements: got %s", got)
	}
}

// TestStorageDDL checks that the project's owner changes nothing of the two tables but policies.
func TestStorageDDL(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, policies+`; create function public.f() returns trigger language plpgsql as 'begin return null; end';
		create function public.g() returns text language sql as 'select 1::text'`)

	for sql, want := range map[string]string{
		`create policy mine on storage.buckets for select using (exists (select from storage.objects o where o.bucket_id = buckets.id))`: "",
		`alter policy read on storage.objects using (false); drop policy change on storage.objects`:                                      "",
		`comment on policy read on storage.objects is 'x'`:                                                                               "",
		`create view public.v as select storage.filename('a/b') as name`:                                                                 "",
		`grant select on storage.objects to anon; revoke select on storage.objects from anon`:                                            "",

		`alter table storage.objects enable row level security`:                                                                         "",
		`alter table if exists only "storage"."buckets" enable row level security`:                                                      "",
		`set search_path = storage; alter table objects enable row level security`:                                                      "",
		`do 'begin execute ''alter table storage.objects enable row level security''; end'`:                                             "",
		`grant all on storage.objects to authenticated; alter table storage.objects enable row level security`:                          "",
		`create policy late on storage.objects for select using (true); alter table storage.objects enable row level security`:          "",
		`alter table storage.objects disable row level security, enable row level security`:                                             "",
		`alter table storage.objects no force row level security, validate constraint storage_api_only, enable trigger refuse_update`:   "",
		`alter table storage.objects enable row level security, disable row level security`:                                             "42501",
		`alter table storage.objects enable row level security, force row level security`:                                               "42501",
		`alter table storage.objects enable row level security, add column evil int`:                                                    "42501",
		`alter table storage.objects enable row level security, disable trigger refuse_update`:                                          "42501",
		`alter table storage.objects enable row level security, alter column owner_id set not null`:                                     "42501",
		`alter table storage.objects enable row level security, alter column owner_id set statistics 1`:                                 "42501",
		`alter table storage.objects enable row level security, alter column owner_id set (n_distinct = 1)`:                             "42501",
		`alter table storage.objects enable row level security, alter column owner_id type varchar using public.g()`:                    "42501",
		`alter table storage.objects enable row level security, add constraint evil check (true) not valid`:                             "42501",
		`alter table storage.objects enable row level security, drop constraint storage_api_only`:                                       "42501",
		`alter table storage.objects enable row level security, drop column owner_id`:                                                   "2BP01",
		`alter table storage.objects enable row level security, alter column name drop expression`:                                      "42501",
		`alter table storage.objects enable row level security, replica identity full`:                                                  "42501",
		`alter table storage.objects enable row level security, set (autovacuum_enabled = false)`:                                       "42501",
		`alter table storage.objects enable row level security, set unlogged`:                                                           "42501",
		`alter table storage.objects enable row level security, owner to pg_database_owner`:                                             "42501",
		`create table public.evil (owner_id text); alter table storage.objects enable row level security, inherit public.evil`:          "42501",
		`do 'begin alter table storage.objects disable row level security; alter table storage.objects enable row level security; end'`: "42501",
		`alter table storage.files enable row level security`:                                                                           "42501",

		`alter table storage.objects add column evil int`:                                                             "42501",
		`alter table storage.objects disable row level security`:                                                      "42501",
		`alter table storage.objects disable trigger all`:                                                             "42501",
		`alter table storage.objects set schema public`:                                                               "42501",
		`alter table storage.objects rename to evil`:                                                                  "42501",
		`alter table storage.objects rename column name to evil`:                                                      "42501",
		`alter table storage.objects owner to current_user; alter table storage.objects set (fillfactor = 50)`:        "42501",
		`alter index storage.objects rename to evil`:                                                                  "42501",
		`alter view storage.objects rename to evil`:                                                                   "42501",
		`drop table storage.objects`:                                                                                  "2BP01",
		`drop table storage.objects cascade`:                                                                          "42501",
		`drop owned by current_user cascade`:                                                                          "42501",
		`alter trigger refuse_update on storage.objects rename to evil`:                                               "42501",
		`drop function storage.refuse_change() cascade`:                                                               "42501",
		`alter table storage.objects alter column owner_id set default 'x'`:                                           "42501",
		`alter table storage.objects drop constraint storage_api_only`:                                                "42501",
		`alter table storage.objects rename constraint storage_api_only to evil`:                                      "42501",
		`drop trigger refuse_update on storage.objects`:                                                               "42501",
		`create trigger evil before insert on storage.objects for each row execute function public.f()`:               "42501",
		`create rule evil as on insert to storage.objects do instead nothing`:                                         "42501",
		`create index on storage.objects (name)`:                                                                      "42501",
		`create table public.evil () inherits (storage.objects)`:                                                      "42501",
		`create table public.evil (id uuid references storage.objects)`:                                               "42704",
		`create view public.seen as select * from storage.objects`:                                                    "",
		`create statistics public.evil on name, bucket_id from storage.objects`:                                       "42501",
		`create publication evil for table storage.objects`:                                                           "42501",
		`create policy evil on storage.files using (true)`:                                                            "42501",
		`alter table storage.files no inherit storage.objects`:                                                        "42501",
		`create policy evil on storage.objects using (exists (select from storage.files))`:                            "42501",
		`create table public.t (id int); create policy evil on public.t using (exists (select from storage.objects))`: "42501",
		`create or replace function storage.filename(text) returns text language sql return 'x'`:                      "42501",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}
}
