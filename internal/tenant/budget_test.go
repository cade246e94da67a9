package tenant

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"socle/internal/pg"
)

// sessions returns how many sessions of Socle's the projects' databases have.
func sessions(t *testing.T, r *Registry, projects ...*Project) int {
	t.Helper()
	var names []string
	for _, p := range projects {
		names = append(names, database(p.UUID))
	}
	return value[int](t, connectTo(t, r.base.ConnConfig), `select count(*)::int from pg_stat_activity where datname = any($1) and backend_type = 'client backend'`, names)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("still not: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestFewerConnectionsThanProjects lets many requests of many projects share three connections.
func TestFewerConnectionsThanProjects(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 3)
	projects := make([]*Project, 4)
	for i := range projects {
		projects[i] = newProject(t, r)
	}
	failures := make(chan error, 1000)
	var wg sync.WaitGroup
	for _, p := range projects {
		for range 3 {
			wg.Go(func() {
				for range 4 {
					_, err := pg.Value[int](t.Context(), p.Trusted(), "select 1")
					failures <- err
					_, err = pg.Value[int](t.Context(), p.Owner(), "select 1")
					failures <- err
				}
			})
		}
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "three sessions at most", func() bool { return sessions(t, r, projects...) <= 3 })
}

// TestBudgetIsGivenBack takes the only connection away in every way, and asks for it again.
func TestBudgetIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 1)
	p := newProject(t, r)
	for range 3 {
		held, err := p.Trusted().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Awaited() {
			t.Error("a connection is waited for, by nobody")
		}
		waiting, giveUp := context.WithCancel(t.Context())
		refused := make(chan error)
		go func() {
			_, err := p.Owner().Acquire(waiting)
			refused <- err
		}()
		eventually(t, "that somebody waits for a connection", r.Awaited)
		giveUp()
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("a second connection: got %v, want none", err)
		}
		_, _ = held.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
		held.Release()

		gone, cancel := context.WithCancel(t.Context())
		running, err := p.Owner().Acquire(gone)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := running.Exec(gone, "select pg_sleep(60)"); err == nil {
			t.Error("a statement of someone who is gone went on")
		}
		running.Release()
	}
}

func TestIdlePoolsAreClosed(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 8)
	p := newProject(t, r)
	for range 2 { // and opened again
		value[int](t, p.Trusted(), "select 1")
		value[int](t, p.Owner(), "select 1")
		r.closeUnused(time.Now().Add(-time.Minute))
		if got := sessions(t, r, p); got != 2 {
			t.Errorf("%d sessions of a project in use, want 2", got)
		}
		r.closeUnused(time.Now().Add(time.Minute))
		eventually(t, "no session of a project that nobody uses", func() bool { return sessions(t, r, p) == 0 })
	}
}

// TestDeletedProject asks a project that is held beyond its end for a connection.
func TestDeletedProject(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 8)
	p := newProject(t, r)
	value[int](t, p.Trusted(), "select 1")
	if err := r.Destroy(t.Context(), p.UUID); err != nil {
		t.Fatal(err)
	}
	if err := p.Owner().Ping(t.Context()); err == nil {
		t.Error("a deleted project has a connection")
	}
	if r.Open(p.UUID) == p {
		t.Error("a deleted project is kept")
	}
}

// TestRolesNamedElsewhere deletes a project whose roles the owner of another one has named.
func TestRolesNamedElsewhere(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 8)
	p, other := newProject(t, r), newProject(t, r)
	name := pg.Quote(owner.role(p.UUID))
	conn := connect(t, other, owner)
	exec(t, conn, `create table public.t (id int); grant select on public.t to `+name+`; grant usage on schema public to `+name+`;
		create policy named on public.t to `+name+` using (true); alter default privileges grant select on tables to `+name)
	if err := r.Destroy(t.Context(), p.UUID); err != nil {
		t.Fatal(err)
	}
	if value[bool](t, conn, `select exists (select from pg_roles where rolname like $1)`, "socle_"+hexOf(p.UUID)+"%") {
		t.Error("a role is left")
	}
}

// TestProbe asks for what a request needs while the budget has no connection left.
func TestProbe(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, 1)
	p := newProject(t, r)
	held, err := p.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Probe(ctx); err == nil {
		t.Error("a connection can be had that there is none of")
	}
	held.Release()
	if err := r.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "its place is free", func() bool { return len(r.budget.slots) == 0 })
}
