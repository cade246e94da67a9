package server_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRealtimeAppsInBrowser has two people use a chat and a list of todos, which are written for
// Supabase, in Chromium. A third one of another team sees nothing.
func TestRealtimeAppsInBrowser(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	s.Post("/sql", `{"read_only": false, "query": "create table public.messages (id bigint generated always as identity primary key, `+
		`room text not null, author text not null, body text not null); `+
		`create policy ours on public.messages to authenticated using (auth.jwt() -> 'app_metadata' ->> 'team' = 'ours'); `+
		`create table public.todos (id bigint generated always as identity primary key, `+
		`team text not null default (auth.jwt() -> 'app_metadata' ->> 'team'), task text not null, done boolean not null default false); `+
		`create policy own on public.todos to authenticated using (team = auth.jwt() -> 'app_metadata' ->> 'team'); `+
		`grant all on public.messages, public.todos to authenticated; `+
		`alter publication supabase_realtime add table public.messages, public.todos; `+
		`create policy lobby on realtime.messages to authenticated using (realtime.topic() = 'room:lobby') `+
		`with check (realtime.topic() = 'room:lobby')"}`).Want(200)
	runNode(t, clients, []string{"SOCLE_CHROMIUM=" + chromium(t), "SOCLE_PROJECT=" + s.URL + "/projects/" + s.Project,
		"SOCLE_PUBLISHABLE=" + s.key("browser", "publishable"), "SOCLE_SECRET=" + s.key("server", "secret")},
		"--experimental-websocket", "apps.mjs")
}
