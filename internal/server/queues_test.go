package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestQueuesByClient has a browser and a server use queues by supabase-js, after the project has
// exposed the schema for them.
func TestQueuesByClient(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	s.run(`create extension if not exists pgmq; select pgmq.create('tasks'); select pgmq.create('inbox');
		grant select, insert, delete, update on pgmq.q_inbox to authenticated;
		create policy own on pgmq.q_inbox to authenticated using (message ->> 'to' = auth.jwt() ->> 'sub')`)

	s.Put("/projects/"+s.Project+"/rest-settings", `{"schemas": ["public", "pgmq_public"]}`).Want(200)
	runNode(t, clients, []string{
		"SOCLE_PROJECT=" + s.URL + "/projects/" + s.Project,
		"SOCLE_PUBLISHABLE=" + s.publishable, "SOCLE_SECRET=" + s.secret,
		"SOCLE_USER=" + s.token(map[string]any{"role": "authenticated", "sub": "ann"}),
	}, "--experimental-websocket", "queues.mjs")

	closed := newTitlesProject(t)
	closed.run(`select pgmq.create('tasks')`)
	status, text := closed.rows(closed.Project, "POST", "/rpc/send", `{"queue_name": "tasks", "message": {}}`,
		"apikey: "+closed.secret, "Content-Profile: pgmq_public")
	if status != http.StatusNotAcceptable || !strings.Contains(text, "PGRST106") {
		t.Errorf("a project that exposes no queues: got %d %s, want 406", status, text)
	}
}
