package function

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxLogBytes  = 64 << 20 // per project, in its database
	maxLogAge    = 7 * 24 * time.Hour
	maxPending   = 8 << 20 // bytes that wait to be written, all projects
	maxPendingOf = 1 << 20 // bytes that wait, one project

	writeTimeout = 5 * time.Second
	trimInterval = time.Minute

	logWindow   = 10 * time.Second
	windowLines = 100 // per process
	windowBytes = 256 << 10
)

// streamEvent is the stream of what happened to a process.
const streamEvent = "event"

// LogLine is a line of a project's log.
type LogLine struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	Function string    `json:"function" db:"function_name"`
	Stream   string    `json:"stream" enum:"stdout,stderr,event" doc:"event: the start and the end of a process."`
	Message  string    `json:"message"`
}

// Log returns a page of a project's log and the total number. A name of "" stands for all
// functions.
func Log(ctx context.Context, p *projectdb.Project, name string, page pg.Page) ([]LogLine, int64, error) {
	return pg.List[LogLine](ctx, p.Trusted(), pg.Listing{
		Columns: `id, at, function_name, stream, message`,
		From:    `socle.edge_function_log where (@name = '' or function_name = @name)`,
		Sorts:   map[string]string{"id": "id"}, Tie: "id",
	}, page, pgx.StrictNamedArgs{"name": name})
}

// Subject returns the subject of functions. Limits are an administrator's: those of a backup do not
// hold. The other rows need nothing in a restore, and package projectdb seals secrets anew.
func Subject() projectdb.Subject {
	return projectdb.Subject{Sweep: sweep, Restore: projectdb.Restore{CopyQuota: copyLimits}}
}

// sweep removes old lines and metrics.
func sweep(ctx context.Context, p *projectdb.Project) error {
	_, err := pg.Exec(ctx, p.Trusted(), `
		delete from socle.edge_function_log where at < now() - make_interval(secs => @seconds::float8)`,
		pgx.StrictNamedArgs{"seconds": maxLogAge.Seconds()})
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, p.Trusted(), `
		delete from socle.edge_function_metrics where hour < now() - make_interval(secs => @seconds::float8)`,
		pgx.StrictNamedArgs{"seconds": maxMetricAge.Seconds()})
	return err
}

// logs collect the lines of all processes, and write them in the background.
type logs struct {
	mu      sync.Mutex
	bytes   int
	pending map[uuid.UUID]*pendingLines
	trimmed map[uuid.UUID]time.Time // when flush last bounded the size of a log
}

// pendingLines are the lines of one project.
type pendingLines struct {
	project  *projectdb.Project
	bytes    int
	lost     int
	at       []time.Time
	names    []string
	streams  []string
	messages []string
}

// add adds a line. Beyond the bounds it only counts.
func (l *logs) add(p *projectdb.Project, name string, line runtime.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()

	of := l.pending[p.UUID]
	if of == nil {
		of = &pendingLines{project: p}
		if l.pending == nil {
			l.pending = map[uuid.UUID]*pendingLines{}
		}
		l.pending[p.UUID] = of
	}

	const overhead = 128
	size := len(line.Text) + overhead
	if of.bytes+size > maxPendingOf || l.bytes+size > maxPending {
		of.lost++
		return
	}

	of.bytes += size
	l.bytes += size
	of.at, of.names = append(of.at, time.Now()), append(of.names, name)
	of.streams, of.messages = append(of.streams, line.Stream), append(of.messages, line.Text)
}

// flush writes the lines that wait. It bounds the size of each log that it writes to, once in
// trimInterval.
func (l *logs) flush(ctx context.Context, log *slog.Logger) {
	l.mu.Lock()
	pending := l.pending
	l.pending, l.bytes = nil, 0
	l.mu.Unlock()

	now := time.Now()
	maps.DeleteFunc(l.trimmed, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) > trimInterval })
	for id, of := range pending {
		err := of.write(ctx)
		if _, ok := l.trimmed[id]; err == nil && !ok {
			if l.trimmed == nil {
				l.trimmed = map[uuid.UUID]time.Time{}
			}
			l.trimmed[id] = now
			err = trim(ctx, of.project, maxLogBytes)
		}
		if err != nil {
			log.Warn("log lines of edge functions lost", "project", id, "lines", len(of.at)+of.lost, "error", err)
		}
	}
}

func (of *pendingLines) write(ctx context.Context) error {
	if of.project.OverQuota() {
		return errors.New("the database exceeds its quota")
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()

	_, err := pg.Exec(ctx, of.project.Trusted(), `
		insert into socle.edge_function_log (at, function_name, stream, message)
		select * from unnest(@at::timestamptz[], @names::text[], @streams::text[], @messages::text[])`,
		pgx.StrictNamedArgs{"at": of.at, "names": of.names, "streams": of.streams, "messages": of.messages})
	return err
}

// trim removes the older half of a log that exceeds a size. The space of deleted rows is used
// again, so the size of the table stays: the lines themselves decide.
func trim(ctx context.Context, p *projectdb.Project, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()

	size, err := pg.Value[int64](ctx, p.Trusted(), `select pg_table_size('socle.edge_function_log')`)
	if err != nil || size < bytes {
		return err
	}

	_, err = pg.Exec(ctx, p.Trusted(), `
		delete from socle.edge_function_log
		where (select sum(octet_length(message) + 64) from socle.edge_function_log) > @bytes
			and id <= (select (min(id) + max(id)) / 2 from socle.edge_function_log)`,
		pgx.StrictNamedArgs{"bytes": bytes})
	return err
}

// throttle bounds what one process logs.
type throttle struct {
	mu           sync.Mutex
	began        time.Time
	lines, bytes int
	dropped      int
}

// admit reports whether a line is logged, and how many were not since the last window.
func (t *throttle) admit(now time.Time, size int) (ok bool, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if now.Sub(t.began) > logWindow {
		dropped, t.dropped = t.dropped, 0
		t.began, t.lines, t.bytes = now, 0, 0
	}
	if t.lines >= windowLines || t.bytes+size > windowBytes {
		t.dropped++
		return false, dropped
	}

	t.lines++
	t.bytes += size
	return true, dropped
}
