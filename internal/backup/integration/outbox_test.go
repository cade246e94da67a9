package integration_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestBackupWithoutWork: a backup has the triggers that leave work for the server, and no work. A
// restored project must not repeat what the other one has done.
func TestBackupWithoutWork(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	execAsOwner(t, a, `
		create table public.orders (id int);
		create trigger hook after insert on public.orders for each row execute function
			supabase_functions.http_request('http://127.0.0.1:1/', 'POST', '{}', '{}', '100');
		insert into public.orders values (1);
		select realtime.send('{}', 'e', 'topic')`)
	waitUntil(t, "the request has an outcome, and the message is sent", func() bool {
		return query(t, a, `select (select count(*) from socle.http_responses) || ' ' || (select count(*) from socle.unsent_messages)`) == "1 0"
	})

	id := makeBackup(t, a)
	waitUntil(t, "the backup is proven", func() bool {
		r := a.Get("/backups/" + id).Want(200)
		if text, _ := r.Metadata("proofError").(string); text != "" {
			t.Fatal(text)
		}
		return r.Metadata("provenAt") != nil
	})

	r := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, r.Get("uuid").(string), "completed", "failed").Content("status", "completed")
	copied := a.WithProject(r.Get("projectUuid").(string))
	const work = `select concat_ws(' ', (select count(*) from public.orders), (select count(*) from socle.http_requests),
		(select count(*) from socle.http_responses), (select count(*) from realtime.messages), (select count(*) from socle.unsent_messages))`
	if got := query(t, copied, work); got != "1 0 0 0 0" {
		t.Errorf("got rows, requests, outcomes, messages: %s, want 1 0 0 0 0", got)
	}

	execAsOwner(t, copied, `insert into public.orders values (2)`)
	waitUntil(t, "the copy sends its own request", func() bool {
		return query(t, copied, `select count(*)::text from net._http_response where error_msg = 'Couldn''t connect to server'`) == "1"
	})
}
