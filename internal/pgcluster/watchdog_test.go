package projectdb

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestWatchLimits(t *testing.T) {
	t.Parallel()

	name := "socle_" + strings.Repeat("a", 32)
	other := "socle_" + strings.Repeat("b", 32)

	of := func(pid int32, project string, l login, change func(*projectSession)) projectSession {
		w := projectSession{PID: pid, Login: project + "_" + string(l), Database: project}
		change(&w)

		return w
	}

	locks := func(n int) func(*projectSession) { return func(w *projectSession) { w.Locks = n } }
	age := func(seconds float64) func(*projectSession) { return func(w *projectSession) { w.Age = seconds } }
	limits := watchLimits{capacity: 100_000, memory: 1 << 30}

	for what, test := range map[string]struct {
		limits   watchLimits
		sessions []projectSession
		ends     []int32
	}{
		"nothing much": {limits,
			[]projectSession{
				of(1, name, owner, locks(8000)), of(2, name, request, age(1799)), of(3, name, owner, age(4199)),
			},
			nil},
		"locks": {limits, []projectSession{of(1, name, owner, locks(8001)), of(2, other, owner, locks(10))},
			[]int32{1}},
		"a small lock table": {watchLimits{capacity: 6400},
			[]projectSession{of(1, name, service, locks(1001))}, []int32{1}},
		"locks together": {limits,
			[]projectSession{of(1, name, owner, locks(7000)), of(2, name, request, locks(7500)),
				of(3, name, service, locks(2000)), of(4, other, owner, locks(7900))}, []int32{2}},
		"a dump": {limits,
			[]projectSession{of(1, name, dump, locks(50_000)), of(2, name, dump, age(1e6))}, nil},
		"a huge dump": {limits, []projectSession{of(1, name, dump, locks(50_001))}, []int32{1}},
		"a restore": {limits,
			[]projectSession{of(1, name, owner, func(w *projectSession) {
				w.Locks, w.Age, w.Database = 50_000, 1e6, name+"_new_0123"
			})}, nil},
		"the lock table": {limits,
			[]projectSession{of(1, name, dump, locks(40_000)), of(2, other, dump, locks(36_000))}, []int32{1}},
		"a request": {limits, []projectSession{of(1, name, request, age(1801))}, []int32{1}},
		"a change":  {limits, []projectSession{of(1, name, owner, age(4201))}, []int32{1}},
		"an idle transaction": {
			limits, []projectSession{of(1, name, owner, func(w *projectSession) { w.Idle = 301 })}, []int32{1},
		},
		"memory": {limits,
			[]projectSession{of(1, name, owner, func(w *projectSession) { w.Memory = 600 << 20 }),
				of(2, name, owner, func(w *projectSession) { w.Memory = 500 << 20 })}, []int32{1}},
		"memory of two": {limits,
			[]projectSession{of(1, name, owner, func(w *projectSession) { w.Memory = 600 << 20 }),
				of(2, other, owner, func(w *projectSession) { w.Memory = 500 << 20 })}, nil},
		"notifications": {watchLimits{capacity: 100_000, queue: 0.3},
			[]projectSession{of(1, name, owner, age(5)), of(2, other, request, age(9))}, []int32{2}},
		"notifications at once": {watchLimits{capacity: 100_000, queue: 0.3},
			[]projectSession{of(1, name, owner, age(0.1))}, nil},
	} {
		var ends []int32
		for _, e := range test.limits.violations(test.sessions) {
			ends = append(ends, e.PID)
			if e.limit == "" {
				t.Errorf("%s: no limit for session %d", what, e.PID)
			}
		}

		if len(ends) != len(test.ends) || (len(ends) == 1 && ends[0] != test.ends[0]) {
			t.Errorf("%s: got terminated sessions %v, want %v", what, ends, test.ends)
		}
	}
}

// TestWatchdog fills the lock table of the server from one project. The session is terminated with
// the reason, and another project keeps working. It is not parallel: other tests need locks too.
func TestWatchdog(t *testing.T) {
	r := newRegistry(t, 8)
	p, bystander := newProject(t, r), newProject(t, r)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)

	go func() { stopped <- r.Watch(ctx) }()

	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	eventually(t, "the watchdog checks the sessions", r.WatchdogAlive)
	r.resetPools(p.UUID) // the session begins after that check

	_, err := pg.Exec(t.Context(), p.Owner(),
		`select pg_advisory_lock(n), case when n = 12000 then pg_sleep(3600) end from generate_series(1, 12000) n`)
	if f := fault.Of(err); f.Kind != fault.Unprocessable || f.CodeWord() != "session_ended" ||
		!strings.Contains(f.Detail, "more than 8000 locks") {
		t.Errorf("12,000 locks: got %v", err)
	}

	eventually(t, "its locks are gone", func() bool {
		return value[bool](t, bystander.Trusted(),
			`select not exists (select from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory' and d.datname = $1)`, p.registry.Database(p.UUID))
	})

	for _, pool := range []login{owner, request, service} {
		value[int](t, bystander.pool(pool), "select 1")
		value[int](t, p.pool(pool), "select 1")
	}

	if !r.WatchdogAlive() {
		t.Error("the watchdog is not alive")
	}
}

// TestOrphans terminates the sessions of a killed server.
func TestOrphans(t *testing.T) {
	t.Parallel()

	if err := prepared(); err != nil {
		t.Fatal(err)
	}

	// Use a separate platform database: servers of other tests share theirs.
	r, err := NewRegistry(pgtest.URL(t), secret, names, 8, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(r.closeAll)
	platform, err := pgxpool.NewWithConfig(t.Context(), r.base)
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close()

	p, foreign := newProject(t, r), newProject(t, r)
	left, theirs := connect(t, p, owner), connect(t, foreign, owner)
	known := func(_ context.Context, projects []uuid.UUID) ([]uuid.UUID, error) { return []uuid.UUID{p.UUID}, nil }

	other := connectTo(t, r.base.ConnConfig) // another running server
	value[any](t, other, "select pg_advisory_lock_shared($1, 0)", swapLock)

	if err := r.TerminateOrphans(t.Context(), platform, known); err != nil {
		t.Fatal(err)
	}

	exec(t, left, "select 1")
	other.Close(t.Context())

	failed := make(chan error)
	go func() {
		_, err := left.Exec(t.Context(), endless)
		failed <- err
	}()

	eventually(t, "the statement runs", func() bool {
		return value[bool](t, p.Trusted(),
			`select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	})

	if err := r.TerminateOrphans(t.Context(), platform, known); err != nil {
		t.Fatal(err)
	}

	if err := <-failed; pg.State(err) != "57P01" {
		t.Errorf("the statement of a killed server: got %v", err)
	}

	exec(t, theirs, "select 1")
}

// TestEndedBetweenRows terminates a session that waits for its client to read rows. PostgreSQL
// cannot tell that client the reason, but Socle does.
func TestEndedBetweenRows(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 4)
	p := newProject(t, r)
	conn, err := p.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	rows, err := conn.Query(t.Context(), "select repeat('x', 1000) from generate_series(1, 100000)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	pid := conn.Conn().PgConn().PID()
	eventually(t, "the session waits for its client", func() bool {
		return value[bool](t, p.Trusted(),
			"select exists (select from pg_stat_activity where pid = $1 and wait_event = 'ClientWrite')", int32(pid))
	})

	over := []violation{{projectSession{PID: int32(pid), Login: p.registry.login(p.UUID, owner)}, "it took too much"}}
	r.watchdog.due(over, func(uint32) bool { return true })

	if err := r.supervisor.Terminate(t.Context(), p.registry.login(p.UUID, owner), pid); err != nil {
		t.Fatal(err)
	}

	for rows.Next() {
	}

	if f := fault.Of(pg.Fault(rows.Err())); f.Kind != fault.Unprocessable || f.CodeWord() != "session_ended" ||
		!strings.Contains(f.Detail, "it took too much") {
		t.Errorf("got %v", rows.Err())
	}
}

// TestWatchdogAmongManyRoles checks that the cost of a check depends on the sessions and not on the
// roles, of which each project has four.
func TestWatchdogAmongManyRoles(t *testing.T) {
	t.Parallel()

	const roles, connections = 1000, 10
	r := newRegistry(t, connections)
	conn, err := pgx.ConnectConfig(t.Context(), r.base.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))

	for range connections {
		other, err := pgx.ConnectConfig(t.Context(), r.base.ConnConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(context.WithoutCancel(t.Context()))
	}

	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))

	_, err = tx.Exec(t.Context(),
		`do $$ begin for i in 1..`+strconv.Itoa(roles)+
			` loop execute format('create role socle_%s_owner', md5(i::text)); end loop; end $$`)
	if err != nil {
		t.Fatal(err)
	}

	sessions, err := pg.Value[int](t.Context(), tx, `select count(*)::int from pg_stat_activity`)
	if err != nil {
		t.Fatal(err)
	}

	type node struct {
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Filtered float64 `json:"Rows Removed by Filter"`
		Joined   float64 `json:"Rows Removed by Join Filter"`
		Plans    []node
	}

	plans, err := pg.Value[[]struct {
		Plan node
	}](t.Context(), tx, "explain (analyze, timing off, format json) "+selectSessions)
	if err != nil {
		t.Fatal(err)
	}

	var handled func(n node) float64
	handled = func(n node) float64 {
		rows := (n.Rows + n.Filtered + n.Joined) * n.Loops
		for _, p := range n.Plans {
			rows += handled(p)
		}

		return rows
	}
	if rows := handled(plans[0].Plan); rows > float64(3*roles+200*sessions) {
		t.Errorf("got %v rows processed for %d sessions and %d roles", rows, sessions, roles)
	}
}
