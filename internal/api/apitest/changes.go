package apitest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
)

// changes collects a test's successful changes. Each must have exactly one entry in an audit log.
type changes struct {
	mu       sync.Mutex
	requests map[string]string // method and path by request ID
}

// reading ends the request of previewMail, which has a body and changes nothing.
const reading = "/mail-preview"

func (c *changes) record(r *Reply, method string) {
	if method == "GET" || strings.HasSuffix(r.request, reading) || r.Status >= 300 ||
		r.Header.Get("Idempotency-Replayed") != "" ||
		r.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.requests == nil {
		c.requests = map[string]string{}
	}

	c.requests[r.Header.Get("X-Request-Id")] = r.request
}

// databaseAccess gives access to a database: through the server's pool, or through a new connection
// that also reaches a database closed to logins.
type databaseAccess struct {
	pool     *pgxpool.Pool
	address  string
	database string // "" selects the database in the address
	start    int64  // last entry in the audit log before the test
}

// use runs f on a connection.
func (c databaseAccess) use(ctx context.Context, f func(q pg.Querier) error) error {
	if f(c.pool) == nil {
		return nil
	}

	config, err := pgx.ParseConfig(c.address)
	if err != nil {
		return err
	}

	config.Database = cmp.Or(c.database, config.Database)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	return f(conn)
}

// AuditLog is an SQL table with an audit log's entries. Pending ones are last.
const AuditLog = `(
	select seq, entry from socle.audit union all
	select 9223372036854775807, entry from socle.audit_pending
) audit_log`

// check compares the changes with the audit logs: the platform's, which is the first, and all
// existing projects'. A removed project takes its log with it.
func (c *changes) check(ctx context.Context, t testing.TB, logs []databaseAccess) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.requests) == 0 || t.Failed() {
		return
	}

	entries, removed := map[string]int{}, false
	for i, log := range logs {
		var ids []string
		err := log.use(ctx, func(q pg.Querier) (err error) {
			ids, err = pg.Values[string](ctx, q,
				`select entry::jsonb ->> 'request' from `+AuditLog+` where seq > $1 and entry::jsonb ->> 'request' = any($2)`,
				log.start, slices.Collect(maps.Keys(c.requests)))
			return err
		})
		switch {
		case err == nil:
		case i == 0:
			return // the test has dropped the tables
		default:
			removed = true
		}

		for _, id := range ids {
			entries[id]++
		}
	}

	for _, request := range c.requests {
		removed = removed || strings.HasPrefix(request, "DELETE /projects/")
	}

	for id, request := range c.requests {
		if n := entries[id]; n > 1 || (n == 0 && !removed) {
			t.Errorf("%s: got %d audit entries, want 1", request, n)
		}
	}
}
