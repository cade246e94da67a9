package queue

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestShares runs jobs that block: one per project, and as many per account as it may have, over
// all its organizations.
func TestShares(t *testing.T) {
	t.Parallel()

	pool := newPool(t)
	project := func(account uuid.UUID) uuid.UUID {
		t.Helper()

		id, organization := uuid.New(), uuid.New()
		if _, err := pool.Exec(t.Context(), `
			with o as (insert into platform.accounts values ($2, $3))
			insert into platform.projects values ($1, $2)`, id, organization, account); err != nil {
			t.Fatal(err)
		}

		return id
	}

	hostile, other := uuid.New(), uuid.New()
	first, second, third := project(hostile), project(hostile), project(hostile)
	bystander := project(other)

	q := newQueue(t, pool)
	started, release := make(chan uuid.UUID, 20), make(chan struct{})
	Register(q, Options{Workers: Workers{Queue: "notes", PerServer: 4, PerAccount: 2}, MaxAttempts: 1},
		func(ctx context.Context, job *Job[noteArgs]) error {
			started <- job.Args.Project

			select {
			case <-release:
			case <-ctx.Done():
			}

			return nil
		})

	for _, project := range []uuid.UUID{first, first, second, third, third, uuid.Nil, uuid.Nil} {
		insert(t, q, noteArgs{Project: project})
	}

	start(t, q)

	running := map[uuid.UUID]int{}
	for range 3 {
		running[receive(t, started, "a job of each owner starts")]++
	}

	insert(t, q, noteArgs{Project: bystander})

	if got := receive(t, started, "the bystander's job starts"); got != bystander {
		t.Errorf("a job of %s beyond its share runs before the bystander's", got)
	}

	if running[uuid.Nil] != 1 || running[first] > 1 || running[second] > 1 || running[third] > 1 {
		t.Errorf("got running jobs %v, want one per project, two of the account, one without a project", running)
	}

	pgtest.Eventually(t, "the other jobs wait", func() bool {
		waiting, err := pg.Value[int](t.Context(), pool,
			`select count(*)::int from river.river_job where state in ('available', 'scheduled') and attempt = 0`)
		return err == nil && waiting == 4
	})

	if len(started) > 0 {
		t.Errorf("%d jobs beyond their share run", len(started))
	}

	close(release)
}

// TestSharesWithoutProject runs jobs that block, without a project: one per share, however many
// jobs a share has.
func TestSharesWithoutProject(t *testing.T) {
	t.Parallel()

	q := newQueue(t, newPool(t))
	started, release := make(chan string, 20), make(chan struct{})
	Register(q, Options{Workers: Workers{Queue: "notes", PerServer: 3, PerAccount: 2}, MaxAttempts: 1},
		func(ctx context.Context, job *Job[noteArgs]) error {
			started <- job.Args.Share

			select {
			case <-release:
			case <-ctx.Done():
			}

			return nil
		})

	for range 8 {
		insert(t, q, noteArgs{Share: "many"})
	}

	start(t, q)

	if got := receive(t, started, "a job of the share with many starts"); got != "many" {
		t.Fatalf("got a job of %q, want many", got)
	}

	for _, share := range []string{"one", ""} {
		insert(t, q, noteArgs{Share: share})
		if got := receive(t, started, "the job of another share starts"); got != share {
			t.Errorf("got a job of %q, want %q", got, share)
		}
	}

	close(release)
}
