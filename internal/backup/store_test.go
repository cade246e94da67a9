package backup

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

// testStore is a store on a new platform database with an active project.
type testStore struct {
	*store
	t             *testing.T
	project, user uuid.UUID
}

func newTestStore(t *testing.T) *testStore {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return platform.Migrate(ctx, conn)
	})

	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	r := &testStore{store: newStore(platform.New(pool)), t: t, user: uuid.New()}
	r.project = r.newProject()

	return r
}

func (r *testStore) newProject() uuid.UUID {
	r.t.Helper()

	id := uuid.New()
	r.exec(`
		with o as (insert into platform.organizations (uuid, name) values (@id::uuid, 'o') returning uuid)
		insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		select @id, uuid, 'p', 'active', @id, @id from o`, pgx.NamedArgs{"id": id})

	return id
}

func (r *testStore) exec(sql string, args pgx.NamedArgs) {
	r.t.Helper()

	if _, err := pg.Exec(r.t.Context(), r.q, sql, args); err != nil {
		r.t.Fatal(err)
	}
}

// insertPast inserts a completed backup that began a number of days ago.
func (r *testStore) insertPast(days int, scheduled bool) uuid.UUID {
	r.t.Helper()

	id := uuid.Must(uuid.NewV7())
	r.exec(`
		insert into platform.backups (uuid, project_uuid, created_by, status, created_at, started_at, completed_at, size, scheduled)
		select @id, @project, @project, 'completed', at, at, at, 1, @scheduled from (select now() - make_interval(days => @days) as at) t`,
		pgx.NamedArgs{"id": id, "project": r.project, "days": days, "scheduled": scheduled})

	return id
}

func (r *testStore) create() Backup {
	r.t.Helper()

	return must(r.insert(r.t.Context(), r.project, r.user, false))(r.t)
}

func (r *testStore) status(id uuid.UUID) Status {
	r.t.Helper()

	return must(r.Get(r.t.Context(), r.project, id))(r.t).Status
}

// must returns a function that returns v, or fails the test with err.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		return v
	}
}

func wantFault(t *testing.T, err error, kind fault.Kind, code string) {
	t.Helper()

	if f := fault.Of(err); err == nil || f.Kind != kind || (code != "" && f.CodeWord() != code) {
		t.Errorf("got %v, want kind %v, code %q", err, kind, code)
	}
}

// TestTasks takes a backup through its states.
func TestTasks(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx, tasks := t.Context(), r.backupTasks()
	b := r.create()
	_, err := r.insert(ctx, r.project, r.user, false)
	wantFault(t, err, fault.Conflict, "backup_under_way")
	wantFault(t, tasks.heartbeat(ctx, b.UUID), fault.NotFound, "") // not before the start

	if b = must(tasks.start(ctx, b.UUID))(t); b.Status != Running || b.StartedAt == nil {
		t.Errorf("got %+v after the start", b)
	}

	_, err = tasks.start(ctx, b.UUID)
	wantFault(t, err, fault.NotFound, "")

	if err := tasks.heartbeat(ctx, b.UUID); err != nil {
		t.Error(err)
	}
	if _, err := r.Delete(ctx, r.project, b.UUID); err == nil {
		t.Error("a running backup was deleted")
	}

	// A heartbeat that meets the postponement cancels the work.
	cancelled, cancel := context.WithCancel(ctx)
	cancel()

	err = (&Service{store: r.store}).postpone(cancelled, b, lockCollision("a table", errors.New("locked")))
	if _, retry := errors.AsType[*RetryError](err); !retry {
		t.Errorf("got %v of a postponement, want a retry", err)
	}
	if b = must(tasks.unfinished(ctx, b.UUID))(t); b.Status != Pending || b.WaitingFor == "" {
		t.Errorf("got %+v of a postponed backup", b)
	}

	must(tasks.start(ctx, b.UUID))(t)
	if err := r.complete(ctx, b.UUID, 7, make([]byte, 32), nil); err != nil {
		t.Fatal(err)
	}

	if failed := must(tasks.fail(ctx, b.UUID, "too late"))(t); failed || r.status(b.UUID) != Completed {
		t.Errorf("a completed backup failed: %v, %s", failed, r.status(b.UUID))
	}

	_, err = tasks.unfinished(ctx, b.UUID)
	wantFault(t, err, fault.NotFound, "")
	wantFault(t, r.complete(ctx, b.UUID, 7, make([]byte, 32), nil), fault.NotFound, "")

	if b = must(r.Delete(ctx, r.project, b.UUID))(t); b.Status != Deleting {
		t.Errorf("got status %s of a deleted backup", b.Status)
	}
	if all := must(r.deleting(ctx))(t); len(all) != 1 || all[0].UUID != b.UUID {
		t.Errorf("got deleted backups %v, want %s", all, b.UUID)
	}

	if err := r.forget(ctx, b.UUID); err != nil {
		t.Error(err)
	}

	failed := r.create()
	if ok := must(tasks.fail(ctx, failed.UUID, "no reason"))(t); !ok || r.status(failed.UUID) != Failed {
		t.Errorf("got %v and status %s of a failed backup", ok, r.status(failed.UUID))
	}
}

// TestSchedules creates and changes a schedule, and creates its due backups.
func TestSchedules(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx := t.Context()
	update := func(u ScheduleUpdate) (BackupSchedule, error) { return r.UpdateSchedule(ctx, r.project, r.user, u) }
	_, err := update(ScheduleUpdate{})
	wantFault(t, err, fault.Unprocessable, "required")
	_, err = update(ScheduleUpdate{Cron: new("every day")})
	wantFault(t, err, fault.Unprocessable, "")

	first := must(update(ScheduleUpdate{Cron: new("0 3 * * *")}))(t)
	if first.Timezone != "UTC" || first.KeepDaily != 7 || !first.Prove || first.NextRunAt.UTC().Hour() != 3 {
		t.Errorf("got new schedule %+v", first)
	}

	if s := must(update(ScheduleUpdate{KeepDaily: new(0)}))(t); s.KeepDaily != 0 ||
		!s.NextRunAt.Equal(first.NextRunAt) {
		t.Errorf("got %+v after a change of the retention", s)
	}
	if s := must(update(ScheduleUpdate{Timezone: new("Asia/Tokyo")}))(t); s.NextRunAt.UTC().Hour() != 18 {
		t.Errorf("got next run %s in another time zone", s.NextRunAt.UTC())
	}

	_, err = r.createDue(ctx, r.project)
	wantFault(t, err, fault.NotFound, "")

	overdue := pgx.NamedArgs{"project": r.project}
	r.exec(`update platform.backup_schedules set next_run_at = now() - interval '3 days' where project_uuid = @project`, overdue)
	if due := must(r.due(ctx))(t); !slices.Equal(due, []uuid.UUID{r.project}) {
		t.Errorf("got due projects %v, want %s", due, r.project)
	}

	b := must(r.createDue(ctx, r.project))(t)
	if s := must(r.GetSchedule(ctx, r.project))(t); !b.Scheduled || s.NextRunAt.Before(time.Now()) {
		t.Errorf("got backup %+v and schedule %+v", b, s)
	}

	r.exec(`update platform.backup_schedules set next_run_at = now() where project_uuid = @project`, overdue)
	if due := must(r.due(ctx))(t); len(due) > 0 { // while the backup is unfinished
		t.Errorf("got due projects %v, want none", due)
	}

	// The clock was ahead when the run was computed.
	r.exec(`update platform.backup_schedules set next_run_at = now() + interval '1 year' where project_uuid = @project`, overdue)
	if err := r.RecomputeNextRuns(ctx); err != nil {
		t.Fatal(err)
	}
	if s := must(r.GetSchedule(ctx, r.project))(t); time.Until(s.NextRunAt) > 24*time.Hour {
		t.Errorf("got next run %s, want within a day", s.NextRunAt)
	}

	must(r.DeleteSchedule(ctx, r.project))(t)
	_, err = r.GetSchedule(ctx, r.project)
	wantFault(t, err, fault.NotFound, "")
}

// TestRetention keeps scheduled backups by the rules, and those that were requested, are being
// restored, or were proven last. Awaited backups stay for their own time.
func TestRetention(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx := t.Context()
	requested, awaited, expired := r.insertPast(40, false), r.insertPast(20, false), r.insertPast(31, false)
	r.exec(`update platform.backups set made_before = 'deleteTable' where uuid = any(@ids)`,
		pgx.NamedArgs{"ids": []uuid.UUID{awaited, expired}})

	if got := must(r.removable(ctx, r.project))(t); !slices.Equal(got, []uuid.UUID{expired}) {
		t.Errorf("without a schedule: got removable %v, want %v", got, expired)
	}

	var scheduled []uuid.UUID
	for days := range 8 {
		scheduled = append(scheduled, r.insertPast(days+1, true))
	}

	restored, proven, damaged := scheduled[4], scheduled[5], scheduled[3]
	r.exec(`update platform.backups set proven_at = now() where uuid = any(@ids)`,
		pgx.NamedArgs{"ids": []uuid.UUID{proven, damaged, scheduled[7]}})
	r.exec(`update platform.backups set proof_error = 'damaged' where uuid = @id`, pgx.NamedArgs{"id": damaged})
	must(r.createRestore(ctx, r.user, NewRestore{
		Backup: restored, BackupProject: r.project, Project: r.project, Target: IntoPlace,
	}))(t)
	must(r.UpdateSchedule(ctx, r.project, r.user, ScheduleUpdate{
		Cron: new("0 3 * * *"), KeepLast: new(2), KeepDaily: new(3), KeepWeekly: new(0), KeepMonthly: new(0),
	}))(t)

	got := must(r.removable(ctx, r.project))(t)
	for name, id := range map[string]uuid.UUID{
		"requested": requested, "awaited": awaited, "restored": restored, "proven last": proven,
		"newest": scheduled[0], "second": scheduled[1], "third day": scheduled[2],
	} {
		if slices.Contains(got, id) {
			t.Errorf("the %s backup is removable", name)
		}
	}

	if want := []uuid.UUID{expired, damaged, scheduled[6], scheduled[7]}; !sameSet(got, want) {
		t.Errorf("got removable %v, want %v", got, want)
	}

	if n := must(r.deleteExpired(ctx, r.project))(t); n != 4 || r.status(damaged) != Deleting {
		t.Errorf("removed %d backups, status %s; want 4, deleting", n, r.status(damaged))
	}
	if all := must(r.deleting(ctx))(t); len(all) > 0 { // their bytes stay for downloads in progress
		t.Errorf("the bytes of %d backups are removed at once", len(all))
	}

	_, err := r.deleteExpired(ctx, r.project)
	wantFault(t, err, fault.NotFound, "")
}

func sameSet(a, b []uuid.UUID) bool {
	compare := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), compare), slices.SortedFunc(slices.Values(b), compare))
}

// TestAwaited has requests share a pending backup, but not one that is running already.
func TestAwaited(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx := t.Context()
	request := func(name string) DestructiveRequest {
		return DestructiveRequest{Project: r.project, User: r.user, Operation: "deleteTable", Request: []byte(name)}
	}

	_, err := r.awaited(ctx, request("a"))
	wantFault(t, err, fault.NotFound, "")

	b := must(r.createAwaited(ctx, request("a")))(t)
	if shared := must(r.awaited(ctx, request("b")))(t); shared.UUID != b.UUID {
		t.Errorf("got backup %s, want the pending %s", shared.UUID, b.UUID)
	}

	must(r.backupTasks().start(ctx, b.UUID))(t)
	if again := must(r.awaited(ctx, request("a")))(t); again.UUID != b.UUID || again.Status != Running {
		t.Errorf("got %+v for a repeated request, want its backup", again)
	}

	_, err = r.awaited(ctx, request("late")) // waits for the next backup
	wantFault(t, err, fault.Conflict, "backup_under_way")

	if err := r.complete(ctx, b.UUID, 1, make([]byte, 32), nil); err != nil {
		t.Fatal(err)
	}

	next := r.create() // by a user
	if got := must(r.awaited(ctx, request("late")))(t); got.UUID != next.UUID {
		t.Errorf("got backup %s, want the next one %s", got.UUID, next.UUID)
	}
	if got := must(r.awaited(ctx, request("a")))(t); got.Status != Completed {
		t.Errorf("got %+v, want the completed backup", got)
	}

	if err := r.deleteWait(ctx, request("a"), b.UUID); err != nil {
		t.Fatal(err)
	}
	if got := must(r.awaited(ctx, request("a")))(t); got.UUID != next.UUID {
		t.Errorf("got backup %s for a later request, want the pending %s", got.UUID, next.UUID)
	}
}

// TestRestores takes restores through their states, and undoes one.
func TestRestores(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx := t.Context()
	pending := r.create()
	restore := func(backup, project uuid.UUID, target string) (Restore, error) {
		return r.createRestore(ctx, r.user, NewRestore{
			Backup: backup, BackupProject: r.project, Project: project, Target: target,
		})
	}

	_, err := restore(pending.UUID, r.project, IntoPlace)
	wantFault(t, err, fault.Conflict, "backup_not_completed")
	_, err = restore(uuid.New(), r.project, IntoPlace)
	wantFault(t, err, fault.NotFound, "")

	b := r.insertPast(1, false)
	first := must(restore(b, r.project, IntoPlace))(t)
	_, err = restore(b, r.project, IntoPlace)
	wantFault(t, err, fault.Conflict, "restore_under_way")
	_, err = r.Delete(ctx, r.project, b)
	wantFault(t, err, fault.Conflict, "restore_under_way")

	must(r.restoreTasks().start(ctx, first.UUID))(t)
	form := uuid.New()
	if err := r.completeRestore(ctx, first, []uuid.UUID{form}, 7, nil); err != nil {
		t.Fatal(err)
	}

	if got := must(r.platform.FormProject(ctx, form))(t); got != r.project {
		t.Errorf("got project %s of a restored form, want %s", got, r.project)
	}

	done := must(r.undoable(ctx, r.project, first.UUID))(t)
	if done.Status != Completed || done.KeptUntil == nil {
		t.Errorf("got %+v of a completed restore", done)
	}

	if got := must(r.restoredProjects(ctx))(t); !slices.Equal(got, []uuid.UUID{r.project}) {
		t.Errorf("got projects %v with a kept database, want %s", got, r.project)
	}

	if undone := must(r.recordUndo(ctx, done, nil, 7, nil))(t); undone.UndoneAt == nil {
		t.Errorf("got %+v of an undone restore", undone)
	}

	_, err = r.undoable(ctx, r.project, first.UUID)
	wantFault(t, err, fault.Conflict, "already_undone")
	must(r.ExpireReplaced(ctx, r.project, first.UUID))(t)
	if !must(r.isExpired(ctx, first.UUID))(t) {
		t.Error("the replaced database is kept")
	}

	if err := r.markReplacedDropped(ctx, first.UUID); err != nil {
		t.Fatal(err)
	}

	_, err = r.ExpireReplaced(ctx, r.project, first.UUID)
	wantFault(t, err, fault.Conflict, "nothing_kept")

	// A project that was created for a failed restore is removed.
	created := r.newProject()
	failing := must(restore(b, created, IntoNew))(t)
	if !must(r.failRestore(ctx, failing, "no reason"))(t) || must(r.failRestore(ctx, failing, "again"))(t) {
		t.Error("a restore fails once")
	}
	if status := must(r.platform.ProjectStatus(ctx, created))(t); status != string(Deleting) {
		t.Errorf("got project status %s, want deleting", status)
	}
}

// TestContentRows removes the contents that no other backup needs.
func TestContentRows(t *testing.T) {
	t.Parallel()

	r := newTestStore(t)
	ctx := t.Context()
	shared, own, orphan := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
	batches := func(sums ...[]byte) iter.Seq2[[][]byte, error] {
		return func(yield func([][]byte, error) bool) { yield(sums, nil) }
	}

	first, second := r.insertPast(2, false), r.insertPast(1, false)
	if n := must(r.addContents(ctx, r.project, first, batches(shared, own)))(t); n != 2 {
		t.Errorf("added %d contents, want 2", n)
	}
	if n := must(r.addContents(ctx, r.project, second, batches(shared, shared)))(t); n != 1 {
		t.Errorf("added %d contents, want 1", n)
	}

	if !must(r.hasContents(ctx, r.project, first, [][]byte{shared, own}))(t) ||
		must(r.hasContents(ctx, r.project, second, [][]byte{shared, own}))(t) {
		t.Error("hasContents contradicts what was added")
	}
	if got := must(r.orphanContents(ctx, r.project, [][]byte{shared, own, orphan}))(t); len(got) != 1 ||
		!bytes.Equal(got[0], orphan) {
		t.Errorf("got orphans %x, want %x", got, orphan)
	}

	var removed [][]byte
	remove := func(sum []byte) error {
		removed = append(removed, sum)
		return nil
	}
	if err := r.deleteContents(ctx, r.project, first, remove); err != nil || len(removed) != 1 ||
		!bytes.Equal(removed[0], own) {
		t.Errorf("removed %x, %v, want %x", removed, err, own)
	}

	failure := errors.New("failure")
	err := r.deleteContents(ctx, r.project, second, func([]byte) error { return failure })
	if !errors.Is(err, failure) || !must(r.hasContents(ctx, r.project, second, [][]byte{shared}))(t) {
		t.Errorf("got %v from a failed removal", err)
	}

	called := false
	if err := r.deleteOrphanContent(ctx, r.project, shared, func() error {
		called = true
		return nil
	}); err != nil || called {
		t.Errorf("a content in use was removed: %v, %v", called, err)
	}
}
