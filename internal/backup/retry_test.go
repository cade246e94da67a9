package backup

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// rival is a querier that loses the answer to its first statement. Before each one, another server
// that runs the task sends a heartbeat.
type rival struct {
	pg.Querier
	beat func()
	lost bool
}

func (r *rival) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.beat()
	if !r.lost {
		r.lost = true
		return nil, io.ErrUnexpectedEOF
	}

	return r.Querier.Query(ctx, sql, args...)
}

// backupTask returns the backups as a task, and counts the times that it is cleared.
func (r *testStore) backupTask(q pg.Querier) (k task[Backup], cleared *int) {
	cleared = new(int)
	rows := r.backupTasks()
	rows.q = q

	return task[Backup]{rows: rows, pend: (&store{r.platform, q}).pendBackup,
		run:    func(context.Context, Backup) error { return errors.New("it ran") },
		reason: func(context.Context, error) string { return "" },
		clear:  func(context.Context, Backup) error { *cleared++; return nil }}, cleared
}

// TestRivalKeepsTask has a server lose an answer while another server starts the task.
func TestRivalKeepsTask(t *testing.T) {
	t.Parallel()

	type work func(r *testStore, id uuid.UUID, q *rival) (k task[Backup], cleared *int)
	test := func(lose string, work work, want int) {
		t.Run(lose, func(t *testing.T) {
			t.Parallel()

			r := newTestStore(t)
			id := r.create().UUID
			q := &rival{Querier: r.q, beat: func() {
				r.exec(`update platform.backups set heartbeat_at = clock_timestamp() where uuid = @id`,
					pgx.NamedArgs{"id": id})
			}}
			k, cleared := work(r, id, q)
			k.abandon = func(context.Context, Backup, string) error {
				t.Error("another server's backup is abandoned")
				return nil
			}

			_, err := runTask(t.Context(), &Service{Config: Config{Queue: &queue.Queue{}}}, k, id)
			if !errors.Is(err, errTaken) || *cleared != want || r.status(id) != Running {
				t.Errorf("got %v, cleared %d times, status %s of another server's backup", err, *cleared, r.status(id))
			}
		})
	}

	test("start", func(r *testStore, id uuid.UUID, q *rival) (task[Backup], *int) {
		must(r.backupTasks().start(t.Context(), id))(t)
		return r.backupTask(q)
	}, 0)
	test("pend", func(r *testStore, id uuid.UUID, q *rival) (task[Backup], *int) {
		q.lost = true
		k, cleared := r.backupTask(q)
		k.run = func(context.Context, Backup) error { return pg.Fault(io.ErrUnexpectedEOF) }
		pend := k.pend
		k.pend = func(ctx context.Context, id uuid.UUID, from Status) error {
			if err := pend(ctx, id, from); err != nil {
				return err
			}
			must(r.backupTasks().start(ctx, id))(t)
			return pg.Fault(io.ErrUnexpectedEOF)
		}

		return k, cleared
	}, 1)
}

// TestRetry covers what a server finds once an outage is over.
func TestRetry(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		state   string // SQL of the row's state
		mine    bool
		want    Status
		cleared int
		err     string // "": a retry
	}{
		"its own":             {"status = 'running', started_at = now(), heartbeat_at = now()", true, Pending, 1, ""},
		"its own of long ago": {"status = 'running', started_at = now() - interval '25 hours'", true, Running, 0, "away"},
		"never started":       {"status = 'pending'", false, Pending, 0, ""},
		"pended before":       {"status = 'pending', started_at = now()", true, Pending, 0, ""},
		"silent":              {"status = 'running', heartbeat_at = now() - interval '21 seconds'", false, Pending, 1, ""},
		"another server's":    {"status = 'running', heartbeat_at = now()", false, Running, 0, errMayRun.Error()},
		"failed meanwhile":    {"status = 'failed'", true, Failed, 0, "does not exist"},
		"completed meanwhile": {"status = 'completed', started_at = now(), completed_at = now(), size = 1", false, Completed, 0, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := newTestStore(t)
			id := r.create().UUID
			r.exec("update platform.backups set "+test.state+" where uuid = @id", pgx.NamedArgs{"id": id})

			k, cleared := r.backupTask(r.q)
			i := interrupted[Backup]{task: k, id: id, cause: errors.New("away"), mine: test.mine}
			outcome, err := i.retry(t.Context())
			_, again := errors.AsType[*RetryError](outcome)
			if err == nil && !again {
				err = outcome
			}
			if again != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, %v, want %q", outcome, err, test.err)
			}
			if got := r.status(id); got != test.want || *cleared != test.cleared {
				t.Errorf("got status %s, cleared %d times, want %s, %d", got, *cleared, test.want, test.cleared)
			}
		})
	}
}

// TestPendKeepsStarted has another server start a task between two statements of a retry.
func TestPendKeepsStarted(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	id := r.create().UUID
	must(r.backupTasks().start(t.Context(), id))(t)
	wantFault(t, r.pendBackup(t.Context(), id, Pending), fault.NotFound, "")

	if got := r.status(id); got != Running {
		t.Errorf("got status %s of a started backup", got)
	}
}
