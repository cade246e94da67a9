package event_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestSleepingPolicies: policies that sleep end their own followers and joins after a while, and
// others are told of their changes.
func TestSleepingPolicies(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create table slow (id int primary key); grant select on slow to anon; grant all on slow to service_role;
		create policy slow on slow for select to anon using (pg_sleep(60) is not null);
		create policy slow on realtime.messages for select to anon using (pg_sleep(60) is not null);
		alter publication supabase_realtime add table slow`)
	slow := event.Binding{Event: "*", Schema: "public", Table: "slow"}
	sleeping, service := w.follow(anon, "", slow), w.follow(actor.Service(), "", slow)
	other := w.follow(anon, "", event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"})

	w.exec(`insert into slow values (1); insert into prices (id) values (1)`)
	joined := make(chan error, 1)
	go func() {
		_, err := event.Channels{Project: w.project}.MayReceive(t.Context(), anon, "room", "broadcast")
		joined <- err
	}()
	wantNext(w, other, `[0] INSERT prices {"id":1} `)
	wantNext(w, service, `[0] INSERT slow {"id":1} `)
	if changes, err := sleeping.Next(t.Context()); err == nil {
		t.Errorf("a policy that sleeps: got %+v, want a failure", changes)
	}
	if err := <-joined; err == nil {
		t.Error("a policy of channels that sleeps: got no failure")
	}
}

// TestManyRows: 100,000 rows of one statement reach a follower in their order, each once, through a
// filter that matches all; so they do when it continues in the middle.
func TestManyRows(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	binding := event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Filter: "id=gte.0", Select: "id"}
	f := w.follow(anon, "", binding)
	const rows = 100_000
	w.exec(`insert into prices (id) select generate_series(1, 100000)`)

	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()

	for seen := 0; seen < rows; {
		changes, err := f.Next(ctx)
		if err != nil {
			t.Fatalf("after %d rows: %v", seen, err)
		}
		for _, c := range changes {
			var row struct{ ID int }
			if err := json.Unmarshal(c.Record, &row); err != nil || row.ID != seen+1 {
				t.Fatalf("got %s, %v, want row %d", c.Record, err, seen+1)
			}
			if seen++; seen == rows/2 {
				f.Close()
				f = w.follow(anon, c.Cursor, binding)
				break
			}
		}
	}
}
