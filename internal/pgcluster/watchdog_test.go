package pgcluster

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestWatchLimits(t *testing.T) {
	t.Parallel()

	name := "socle_" + strings.Repeat("a", 32)
	other := "socle_" + strings.Repeat("b", 32)

	of := func(pid int32, project string, l Login, change func(*projectSession)) projectSession {
		w := projectSession{PID: pid, Login: project + "_" + l.name, Database: project}
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
				of(1, name, Owner, locks(8000)), of(2, name, Request, age(1799)), of(3, name, Owner, age(4199)),
			},
			nil},
		"locks": {limits, []projectSession{of(1, name, Owner, locks(8001)), of(2, other, Owner, locks(10))},
			[]int32{1}},
		"a small lock table": {watchLimits{capacity: 6400},
			[]projectSession{of(1, name, Service, locks(1001))}, []int32{1}},
		"locks together": {limits,
			[]projectSession{of(1, name, Owner, locks(7000)), of(2, name, Request, locks(7500)),
				of(3, name, Service, locks(2000)), of(4, other, Owner, locks(7900))}, []int32{2}},
		"a dump": {limits,
			[]projectSession{of(1, name, Dump, locks(50_000)), of(2, name, Dump, age(1e6))}, nil},
		"a huge dump": {limits, []projectSession{of(1, name, Dump, locks(50_001))}, []int32{1}},
		"a restore": {limits,
			[]projectSession{of(1, name, Owner, func(w *projectSession) {
				w.Locks, w.Age, w.Database = 50_000, 1e6, name+"_new_0123"
			})}, nil},
		"the lock table": {limits,
			[]projectSession{of(1, name, Dump, locks(40_000)), of(2, other, Dump, locks(36_000))}, []int32{1}},
		"a request": {limits, []projectSession{of(1, name, Request, age(1801))}, []int32{1}},
		"a change":  {limits, []projectSession{of(1, name, Owner, age(4201))}, []int32{1}},
		"an idle transaction": {
			limits, []projectSession{of(1, name, Owner, func(w *projectSession) { w.Idle = 301 })}, []int32{1},
		},
		"memory": {limits,
			[]projectSession{of(1, name, Owner, func(w *projectSession) { w.Memory = 600 << 20 }),
				of(2, name, Owner, func(w *projectSession) { w.Memory = 500 << 20 })}, []int32{1}},
		"memory of two": {limits,
			[]projectSession{of(1, name, Owner, func(w *projectSession) { w.Memory = 600 << 20 }),
				of(2, other, Owner, func(w *projectSession) { w.Memory = 500 << 20 })}, nil},
		"notifications": {watchLimits{capacity: 100_000, queue: 0.3},
			[]projectSession{of(1, name, Owner, age(5)), of(2, other, Request, age(9))}, []int32{2}},
		"notifications at once": {watchLimits{capacity: 100_000, queue: 0.3},
			[]projectSession{of(1, name, Owner, age(0.1))}, nil},
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

// TestEndedBetweenRows terminates a session that waits for its client to read rows. PostgreSQL
// cannot tell that client the reason, but Socle does.
func TestEndedBetweenRows(t *testing.T) {
	t.Parallel()

	c := newCluster(t, 4)
	project := newDatabase(t, c)

	config := c.Config(project, Owner)
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	var open atomic.Int32
	c.Attach(config, &open, func(context.Context) fair.Key { return fair.Key{Account: "a"} })
	conn := pgtest.Connect(t, config)

	rows, err := conn.Query(t.Context(), "select repeat('x', 1000) from generate_series(1, 100000)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	pid := conn.PgConn().PID()
	admin := pgtest.Connect(t, c.PlatformConfig())
	pgtest.Eventually(t, "the session waits for its client", func() bool {
		return pgtest.Value[bool](t, admin,
			"select exists (select from pg_stat_activity where pid = $1 and wait_event = 'ClientWrite')", int32(pid))
	})

	login := c.OwnerLogin(project)
	over := []violation{{projectSession{PID: int32(pid), Login: login}, "it took too much"}}
	c.watchdog.due(over, func(uint32) bool { return true })

	if err := c.supervisor.Terminate(t.Context(), login, pid); err != nil {
		t.Fatal(err)
	}

	for rows.Next() {
	}

	if f := fault.Of(pg.Fault(rows.Err())); f.Kind != fault.Unprocessable || f.CodeWord() != "session_ended" ||
		!strings.Contains(f.Detail, "it took too much") {
		t.Errorf("got %v", rows.Err())
	}
}

// TestWatchedLogins checks that the watchdog sees a session of every project login.
func TestWatchedLogins(t *testing.T) {
	t.Parallel()

	c := newCluster(t, len(ProjectLogins)+1)
	project := newDatabase(t, c)
	admin := pgtest.Connect(t, c.PlatformConfig())

	for _, l := range ProjectLogins {
		conn := pgtest.Connect(t, c.Config(project, l))
		rows, err := pg.All[watchRow](t.Context(), admin, selectSessions)
		if err != nil {
			t.Fatal(err)
		}

		pid := int32(conn.PgConn().PID())
		if !slices.ContainsFunc(rows, func(r watchRow) bool { return r.PID == pid && r.Login == c.Login(project, l) }) {
			t.Errorf("login %s: session %d is missing", l, pid)
		}
	}
}

// TestWatchdogAmongManyRoles checks that the cost of a check depends on the sessions and not on the
// roles, of which each project has four.
func TestWatchdogAmongManyRoles(t *testing.T) {
	t.Parallel()

	const roles, connections = 1000, 10
	c := newCluster(t, connections)
	conn, err := pgx.ConnectConfig(t.Context(), c.PlatformConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))

	for range connections {
		other, err := pgx.ConnectConfig(t.Context(), c.PlatformConfig())
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
