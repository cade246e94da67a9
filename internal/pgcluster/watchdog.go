package pgcluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/throttle"
	"github.com/socle-dev/socle/internal/tick"
)

// A PostgreSQL server has one lock table, one notification queue and one memory for all projects,
// and no setting limits a login's share. The watchdog does: it polls all project logins' sessions
// and terminates those beyond a limit. Every Socle server runs one; two that terminate the same
// session do no harm.
const (
	watchInterval          = 250 * time.Millisecond // a session takes 80,000 advisory locks in half a second
	watchRetryDelay        = time.Second            // after a lost connection
	watchTimeout           = 10 * time.Second       // for one check
	checksPerSettingsCheck = 8                      // session checks per login settings check
	// Checks that find another server's session beyond a limit before this server terminates it: by
	// then that server is dead.
	foreignChecks = 12

	// Maximum age of a rows API transaction: the longest time to send a response.
	rowsTxTimeout = 30 * time.Minute
	// The same for the owner: longer than an export, an import or an index build may take.
	ownerTxTimeout = 70 * time.Minute
	idleTxTimeout  = 5 * time.Minute // maximum wait in a transaction for the client

	maxSessionLocks = 8000 // per session; fewer on a server with a small lock table
	minSessionLocks = 1000
	// Used fraction of the notification queue above which the oldest session is terminated.
	maxQueueUsage = 0.25
)

// projectSession is a project login's session.
type projectSession struct {
	PID      int32
	Login    string  // socle_<project>_owner and the like
	Database string  // the project's database or a copy
	Age      float64 // seconds since the transaction or statement began
	Idle     float64 // seconds idle in transaction
	Locks    int     // entries in the lock table
	Memory   int64   // private bytes; 0 if unknown
	Query    string  // start of the last statement
}

// project returns the common prefix of the project's login and database names.
func (s projectSession) project() string { return s.Login[:strings.LastIndexByte(s.Login, '_')] }

// ScratchKind marks a scratch copy in the database name, after the project database's name.
const ScratchKind = "_scratch_"

// isPlatformWork reports whether a session works for the platform: it dumps the project or restores
// it into a copy. Locks and duration depend on the project's size, and the job has limits of its
// own. A scratch copy runs the user's own SQL.
func (s projectSession) isPlatformWork() bool {
	return loginOf(s.Login).platformWork ||
		(s.Database != s.project() && !strings.HasPrefix(s.Database, s.project()+ScratchKind))
}

// watchLimits are a PostgreSQL server's limits.
type watchLimits struct {
	capacity int     // entries in the lock table
	queue    float64 // used fraction of the notification queue
	memory   int64   // bytes for a project's sessions together; 0 is unlimited
}

func (l watchLimits) sessionLocks() int {
	return max(minSessionLocks, min(maxSessionLocks, l.capacity/12))
}
func (l watchLimits) projectLocks() int { return 2 * l.sessionLocks() }

// violation is a session beyond a limit.
type violation struct {
	projectSession
	limit string // in words for the statement's author
}

// violations returns the sessions to terminate. If sessions together exceed a limit, it picks the
// largest: the rest may then be within the limit, and the next check comes soon.
func (l watchLimits) violations(sessions []projectSession) []violation {
	var over []violation
	locks, memory := map[string]int{}, map[string]int64{}
	mostLocks, largestMemory := map[string]projectSession{}, map[string]projectSession{}

	var totalLocks int
	var mostLocksOverall, oldest projectSession
	for _, s := range sessions {
		if limit := l.exceededLimit(s); limit != "" {
			over = append(over, violation{s, limit})
			continue
		}

		totalLocks += s.Locks
		mostLocksOverall = maxBy(mostLocksOverall, s, func(w projectSession) float64 { return float64(w.Locks) })

		if s.isPlatformWork() {
			continue
		}

		p := s.project()
		locks[p] += s.Locks
		mostLocks[p] = maxBy(mostLocks[p], s, func(w projectSession) float64 { return float64(w.Locks) })
		memory[p] += s.Memory
		largestMemory[p] = maxBy(largestMemory[p], s, func(w projectSession) float64 { return float64(w.Memory) })
		oldest = maxBy(oldest, s, func(w projectSession) float64 { return w.Age })
	}

	for p, n := range locks {
		if n > l.projectLocks() {
			over = append(over,
				violation{mostLocks[p],
					fmt.Sprintf("the project's sessions held more than %d locks", l.projectLocks())})
		}
	}

	for p, n := range memory {
		if l.memory > 0 && n > l.memory {
			over = append(over,
				violation{largestMemory[p],
					fmt.Sprintf("the project's sessions used more than %d MB of memory", l.memory>>20)})
		}
	}

	if totalLocks > l.capacity/4*3 {
		over = append(over, violation{mostLocksOverall, "the server's lock table was nearly full"})
	}
	if l.queue > maxQueueUsage && oldest.Age > 1 {
		over = append(over, violation{oldest, "the server's notification queue was filling up"})
	}

	return over
}

// exceededLimit returns the limit that a session exceeds on its own, or "".
func (l watchLimits) exceededLimit(s projectSession) string {
	if s.isPlatformWork() {
		if s.Locks > l.capacity/2 {
			return fmt.Sprintf("the session held more than %d locks", l.capacity/2)
		}
		return ""
	}

	age := loginOf(s.Login).maxTxAge
	switch {
	case s.Locks > l.sessionLocks():
		return fmt.Sprintf("the session held more than %d locks", l.sessionLocks())
	case s.Age > age.Seconds():
		return fmt.Sprintf("the transaction took longer than %v", age)
	case s.Idle > idleTxTimeout.Seconds():
		return fmt.Sprintf("the transaction was idle for longer than %v", idleTxTimeout)
	}

	return ""
}

func maxBy(a, b projectSession, by func(projectSession) float64) projectSession {
	if a.PID == 0 || by(b) > by(a) {
		return b
	}
	return a
}

// withSessions begins a query that filters sessions by login name. Materializing makes PostgreSQL
// read the sessions first. Otherwise it matches the pattern with all the server's roles for each
// session, which takes 9 s with 1,000 projects and 170 sessions.
const withSessions = `
	with sessions as materialized (
		select * from pg_stat_activity where backend_type = 'client backend' and datname is not null
	)`

// selectSessions selects the server's state with each project login's session, or once if there are
// none. Fast-path locks do not occupy the lock table. All checks run in one transaction, which
// would keep the first snapshot of the sessions: each check clears it, for itself or for the next,
// depending on the plan.
const selectSessions = withSessions + `, held as (
		select pid, count(*)::int as locks from pg_locks where not fastpath group by pid
	), server as materialized (
		select current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int) as capacity,
			pg_notification_queue_usage() as queue
		from pg_stat_clear_snapshot()
	)
	select v.capacity, v.queue,
		coalesce(a.pid, 0) as pid, coalesce(a.usename, '')::text as login, coalesce(a.datname, '')::text as database, coalesce(h.locks, 0) as locks, 0::bigint as memory, coalesce(left(a.query, 500), '') as query,
		coalesce(extract(epoch from clock_timestamp() - least(a.xact_start, case when a.state = 'active' then a.query_start end)), 0)::float8 as age,
		case when a.state like 'idle in transaction%' then extract(epoch from clock_timestamp() - a.state_change) else 0 end::float8 as idle
	from server v left join sessions a on a.usename ~ '` + projectLogin + `' left join held h on h.pid = a.pid`

// watchRow is a selectSessions row. PID is 0 if there are no sessions.
type watchRow struct {
	Capacity int
	Queue    float64
	projectSession
}

// MemoryLimit limits the memory for each project's sessions together.
type MemoryLimit struct {
	Bytes     int64               // 0 is unlimited
	OfProcess func(pid int) int64 // a process's private bytes; nil: unknown
}

// watchdog is a cluster's watchdog state.
type watchdog struct {
	memory MemoryLimit

	mu sync.Mutex
	// Number of checks that found another server's session beyond a limit, by PID.
	foreignCounts map[int32]int
	reasons       map[int32]termination // recently terminated sessions, by PID
	lastCheck     time.Time
	total         int64 // terminated sessions since the start
}

// termination is the reason for terminating a session.
type termination struct {
	limit string
	at    time.Time
}

// terminationTTL is how long a termination's reason is remembered.
const terminationTTL = time.Minute

// Watch runs the watchdog until ctx ends.
func (c *Cluster) Watch(ctx context.Context) {
	failures := throttle.New(c.log) // a server of reads may be away for long
	for {
		err := c.watch(ctx)

		if ctx.Err() != nil {
			return
		}

		failures.Warn("watchdog failed, restarting", "error", err)

		if tick.Pause(ctx, watchRetryDelay) != nil {
			return
		}
	}
}

// watch checks sessions until the connection fails or ctx ends. It uses a single transaction: the
// first check takes the catalog locks that the query needs, and a lock table that fills up later
// does not stop the next checks. Between statements the transaction holds no snapshot, so it does
// not hold back vacuum.
func (c *Cluster) watch(ctx context.Context) error {
	config := c.PlatformConfig()
	config.RuntimeParams["application_name"] = "socle watchdog"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"

	conn, err := connect(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly})
	if err != nil {
		return pg.Fault(err)
	}

	// Without PIDs it loads everything that it will need.
	if err := terminate(ctx, tx, nil); err != nil {
		return err
	}

	checks := 0
	for range tick.Poll(ctx, watchInterval) {
		if err := c.checkSessions(ctx, tx); err != nil {
			return err
		}

		if checks%checksPerSettingsCheck == 0 {
			if err := c.FindAltered(ctx, tx); err != nil {
				return err
			}
		}

		checks++
	}

	return nil
}

// checkSessions terminates the sessions beyond a limit.
func (c *Cluster) checkSessions(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()

	rows, err := pg.All[watchRow](ctx, tx, selectSessions)
	if err != nil {
		return err
	}

	w := &c.watchdog
	limits := watchLimits{capacity: rows[0].Capacity, queue: rows[0].Queue, memory: w.memory.Bytes}
	sessions := make([]projectSession, 0, len(rows))
	for _, row := range rows {
		if row.PID != 0 {
			sessions = append(sessions, row.projectSession)
		}
	}

	if w.memory.OfProcess != nil {
		for i := range sessions {
			sessions[i].Memory = w.memory.OfProcess(int(sessions[i].PID))
		}
	}

	over := w.due(limits.violations(sessions), c.supervisor.Supervises)
	pids := make([]int32, 0, len(over))
	for _, e := range over {
		c.log.Warn("terminating a project's session", "project", e.project(), "login", e.Login, "database", e.Database,
			"limit", e.limit,
			"pid", e.PID, "locks", e.Locks, "seconds", int(e.Age), "memory", e.Memory, "statement", e.Query)
		pids = append(pids, e.PID)
	}

	if len(pids) == 0 {
		return nil
	}

	return terminate(ctx, tx, pids)
}

// terminate terminates sessions.
func terminate(ctx context.Context, tx pgx.Tx, pids []int32) error {
	_, err := pg.Values[bool](ctx, tx, `select pg_terminate_backend(pid) from unnest(@pids::int[]) pid`,
		pgx.StrictNamedArgs{"pids": pids})
	return err
}

// due returns the sessions to terminate now and records the reasons. A session's own server can
// report the reason to the author, so it acts first.
func (w *watchdog) due(over []violation, ours func(pid uint32) bool) []violation {
	w.mu.Lock()
	defer w.mu.Unlock()

	now := time.Now()
	w.lastCheck = now

	for pid, t := range w.reasons {
		if now.Sub(t.at) > terminationTTL {
			delete(w.reasons, pid)
		}
	}

	counts := w.foreignCounts
	w.foreignCounts = map[int32]int{}

	if w.reasons == nil {
		w.reasons = map[int32]termination{}
	}

	var due []violation
	for _, e := range over {
		w.foreignCounts[e.PID] = counts[e.PID] + 1
		if !ours(uint32(e.PID)) && w.foreignCounts[e.PID] < foreignChecks {
			continue
		}

		if _, again := w.reasons[e.PID]; !again {
			w.total++
		}

		w.reasons[e.PID] = termination{e.limit, now}
		due = append(due, e)
	}

	return due
}

// explain puts the reason into the error if the watchdog terminated the session.
func (c *Cluster) explain(conn *pgconn.PgConn, err *pgconn.PgError) {
	if err.Code != "57P01" { // admin_shutdown
		return
	}

	w := &c.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()

	if note, ok := w.reasons[int32(conn.PID())]; ok {
		pg.MarkEndedByLimit(err, note.limit)
	}
}

// EndReason returns the reason for a session that ended without an error message, or nil unless the
// watchdog terminated it.
func (c *Cluster) EndReason(pid uint32) error {
	w := &c.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()

	note, ok := w.reasons[int32(pid)]
	if !ok {
		return nil
	}

	e := &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}
	pg.MarkEndedByLimit(e, note.limit)

	return e
}

// WatchdogAlive reports whether the watchdog checked the sessions recently.
func (c *Cluster) WatchdogAlive() bool {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()

	return time.Since(c.watchdog.lastCheck) < watchTimeout
}

// Terminated returns the number of sessions that the watchdog has terminated since the start.
func (c *Cluster) Terminated() int64 {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()

	return c.watchdog.total
}

// selectAltered selects the project logins with settings that the platform did not give them.
// Nearly all logins have exactly the platform's, so the query compares those first, and reads only
// the others' names: an install has thousands of logins. The dump login has further settings, and
// runs no user code that could change them.
const selectAltered = `
	with altered as materialized (
		select setrole from pg_db_role_setting
		where setconfig <> '{temp_file_limit=` + tempFileLimit + `,log_min_messages=fatal}'
			and exists (select from unnest(setconfig) setting where not ` + isLoginSetting + `)
	), named as materialized (
		select (select rolname::text from pg_roles where oid = setrole) as name from altered
	)
	select distinct name from named where name ~ '^socle_[0-9a-f]{32}_(owner|request|service|auth|reader)$'`

// FindAltered finds the projects with a login that changed its own settings, and reports each to
// [Config.Altered].
func (c *Cluster) FindAltered(ctx context.Context, q pg.Querier) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()

	logins, err := pg.Values[string](ctx, q, selectAltered)
	if err != nil {
		return err
	}

	changes := map[uuid.UUID]bool{}
	for _, login := range logins {
		if id, ok := c.ProjectOf(login); ok {
			changes[id] = true
		}
	}

	c.mu.Lock()
	c.changes = changes // before the reports: a project opened meanwhile asks [Cluster.IsAltered]
	c.mu.Unlock()

	for id := range changes {
		c.onAltered(id)
	}

	return nil
}

// IsAltered reports whether a project had a login that changed its own settings at the last check.
func (c *Cluster) IsAltered(project uuid.UUID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.changes[project]
}
