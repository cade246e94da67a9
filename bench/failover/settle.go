package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Targets after another node leads.
const (
	writeTarget    = 5 * time.Second  // until the first successful write
	sessionsTarget = 15 * time.Second // until the servers listen and hold their locks
)

// awaitOther waits for another leader than the former, and notes when it leads. From then on it
// measures in the background how long the servers need to have their sessions there.
func (i *install) awaitOther(ctx context.Context, c *cluster, former *node) error {
	if err := c.awaitLeader(ctx, former); err != nil {
		return err
	}

	leader, err := c.leader(ctx)
	if err != nil {
		return err
	}

	i.ledAt = time.Now()
	sessions := make(chan settled, 1)
	i.sessions = sessions
	go func() {
		led := time.Now()
		err := await(ctx, "the servers' sessions on the new leader", func() bool {
			return i.haveSessions(ctx, leader, c.ports.postgres)
		})
		sessions <- settled{time.Since(led), err}
	}()

	return nil
}

// settled says when the servers had their sessions on a new leader.
type settled struct {
	after time.Duration
	err   error
}

// haveSessions reports whether each server listens on a node and has its worker lock there, and one
// the leader lock. The other advisory locks are short.
func (i *install) haveSessions(ctx context.Context, n *node, postgres int) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()

	address := fmt.Sprintf("postgres://postgres:%s@%s:%d/socle", superuserPassword, n.address, postgres)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)

	var listening, working, leading int
	err = conn.QueryRow(ctx, `
		with locks as (
			select classid::bigint << 32 | objid::bigint as key, pid from pg_locks
			where locktype = 'advisory' and granted and objsubid = 1
				and database = (select oid from pg_database where datname = current_database()))
		select (select count(*) from platform.servers s
				join pg_stat_activity a on a.pid = s.pid and a.backend_start = s.session_started),
			(select count(*) from locks where key <> hashtextextended('socle periodic work', 0)),
			(select count(*) from locks where key = hashtextextended('socle periodic work', 0))`).
		Scan(&listening, &working, &leading)

	return err == nil && listening == len(i.servers) && working >= len(i.servers) && leading == 1
}

// startBackup starts a backup, which an event is about to meet.
func (i *install) startBackup(ctx context.Context) (string, error) {
	var r reply
	if err := i.call(ctx, "POST", "/backups", `{}`, &r); err != nil {
		return "", err
	}

	id, _ := r.Content["uuid"].(string)
	return id, nil
}

// awaitBackup waits until a backup is completed, and returns how long it took. It fails if the
// backup has.
func (i *install) awaitBackup(ctx context.Context, id string) (time.Duration, error) {
	var r reply
	var status string
	if err := await(ctx, "the backup is over", func() bool {
		r = reply{}
		if err := i.call(ctx, "GET", "/backups/"+id, "", &r); err != nil {
			return false
		}

		status, _ = r.Content["status"].(string)
		return status == "completed" || status == "failed"
	}); err != nil {
		return 0, err
	}
	if status == "failed" {
		return 0, fmt.Errorf("a backup has failed: %v", r.Content["error"])
	}

	started, _ := r.Content["startedAt"].(string)
	completed, _ := r.Content["completedAt"].(string)
	from, err := time.Parse(time.RFC3339Nano, started)
	if err != nil {
		return 0, err
	}
	to, err := time.Parse(time.RFC3339Nano, completed)

	return to.Sub(from), err
}
