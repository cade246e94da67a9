package api_test

import (
	"slices"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestLintProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/lint"
	a.CreateTable("fine", "note text")

	if got := a.Get(path).Want(200).Get("").([]any); len(got) != 0 {
		t.Errorf("got %v of a project without findings", got)
	}

	execute(t, a, `create extension postgis schema extensions; grant usage on schema extensions to public`)
	if got := a.Get(path).Want(200).Get("").([]any); len(got) != 0 {
		t.Errorf("got %v of members of an extension", got)
	}

	asOwner(t, a, `
		create table public.bare (id integer);
		create table public.off (id integer primary key); alter table public.off disable row level security; grant select on public.off to anon;
		create table public.shut (id integer primary key); alter table public.shut disable row level security; create policy p on public.shut using (id > 0);
		create table public.granted (id integer primary key); grant select on public.granted to authenticated;
		create table public.open (id integer primary key, fine integer references public.fine, shut integer references public.shut);
		create index on public.open (shut, fine);
		create policy "all rows" on public.open using (true);
		create policy narrow on public.open as restrictive using (true);
		create policy read on public.open for select to anon using (true);
		create policy signed on public.open to authenticated using (true);
		create policy add on public.open for insert to anon with check (true);
		alter table public.open add check (id > 0) not valid;
		create view public.seen as select * from public.fine; grant select on public.seen to anon;
		create view public.invoked with (security_invoker = on) as select * from public.fine; grant select on public.invoked to anon;
		create view public.hidden as select * from public.fine;
		create materialized view public.kept as select * from public.fine; grant select on public.kept to public;
		create function public.strong(n integer) returns integer language sql security definer as 'select 1'; grant execute on function public.strong to anon;
		create function public.pinned() returns integer language sql security definer set search_path = '' as 'select 1'`)

	execute(t, a, "update pg_index set indisvalid = false where indexrelid = 'public.open_shut_fine_idx'::regclass")
	r := a.Get(path).Want(200)

	var got []string
	for _, item := range r.Get("").([]any) {
		f := item.(map[string]any)
		got = append(got, f["severity"].(string)+" "+f["code"].(string)+" "+f["object"].(string))
		if f["sentence"] == "" {
			t.Errorf("no description of %v", f)
		}
	}

	want := []string{
		"error policies_without_rls public.shut",
		`error policy_writes_for_all "all rows" on public.open`,
		"error policy_writes_for_all add on public.open",
		"error rls_disabled public.off",
		"error security_definer_function public.strong(n integer)",
		"error security_definer_view public.seen",
		"warning function_search_path public.strong(n integer)",
		"warning invalid_index open_shut_fine_idx on public.open",
		"warning materialized_view_exposed public.kept",
		"warning policies_without_grants public.open",
		"warning policy_reads_for_all read on public.open",
		"warning rls_disabled_closed public.shut",
		"info constraint_not_valid open_id_check on public.open",
		"info foreign_key_without_index open_fine_fkey on public.open",
		"info foreign_key_without_index open_shut_fkey on public.open",
		"info rls_without_policy public.granted",
		"info table_without_primary_key public.bare",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}

	a.Get("/projects/x/lint").Want(400)
	a.Get("/projects/" + apitest.MissingUUID + "/lint").Want(404)
	a.Anonymous().Get(path).Want(401)
}
