package apitest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// changes are the requests of a test that changed something: each must have exactly one entry in an audit log.
type changes struct {
	mu       sync.Mutex
	requests map[string]string // what was asked for, by the request's id
}

func (c *changes) note(r *Reply, method string) {
	if method == "GET" || r.Status >= 300 || r.Header.Get("Idempotency-Replayed") != "" || r.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = map[string]string{}
	}
	c.requests[r.Header.Get("X-Request-Id")] = r.request
}

// check looks into the logs of the platform, whose database conn is connected to, and of all projects that are there. A project that is
// gone has taken its log along.
func (c *changes) check(ctx context.Context, t testing.TB, conn *pgx.Conn, projects []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) == 0 || t.Failed() {
		return
	}
	found := map[string]int{}
	if !noted(ctx, conn, found) {
		return // the test has taken the tables away
	}
	gone := false
	for _, name := range projects {
		config := conn.Config()
		config.Database = name
		project, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			gone = true
			continue
		}
		gone = !noted(ctx, project, found) || gone
		_ = project.Close(ctx)
	}
	for _, what := range c.requests {
		gone = gone || strings.HasPrefix(what, "DELETE /projects/")
	}
	for id, what := range c.requests {
		if n := found[id]; n > 1 || n == 0 && !gone {
			t.Errorf("%s has %d entries in the audit logs, and not one", what, n)
		}
	}
}

// noted counts the entries of a database's log by their requests. It reports whether there is a log.
func noted(ctx context.Context, conn *pgx.Conn, found map[string]int) bool {
	rows, err := conn.Query(ctx, `select entry::jsonb ->> 'request' from socle.audit where entry::jsonb ? 'request'`)
	if err != nil {
		return false
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range ids {
		found[id]++
	}
	return err == nil
}
