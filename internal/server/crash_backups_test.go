package server_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// crashProject drives backups, restores and purges of a project through crashes. The project's
// state is a number in every row of a table and in the content of every file, so a mix of two
// states is visible.
type crashProject struct {
	t         *testing.T
	p         *process
	c         client
	round     int
	state     int            // state of the project
	states    map[string]int // states of the completed backups
	container string
}

const (
	stateRows  = 3000
	stateFiles = 6
)

func stateFile(state, i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "state %d of file %d\n", state, i), 5000)
}

// advance moves the project to its next state.
func (k *crashProject) advance() {
	k.t.Helper()

	k.state++

	b := k.p.inspect(k.t)
	defer b.close()

	b.asOwner(k.c.project, fmt.Sprintf(`update public.orders set state = %d`, k.state))

	for i := range stateFiles {
		if status, _, text := k.c.do(k.t, "PUT", fmt.Sprintf("/files/%s/%s/%d", k.c.project, k.container, i),
			stateFile(k.state, i)); status/100 != 2 {
			k.t.Fatalf("write a file: %d %s", status, text)
		}
	}
}

// wantState checks that a project is completely in a state.
func (k *crashProject) wantState(project string, state int) {
	k.t.Helper()

	b := k.p.inspect(k.t)
	defer b.close()

	var rows, sum, first, last int
	b.asOwner(project, `select count(*), sum(n), min(state), max(state) from public.orders`, &rows, &sum, &first, &last)

	if rows != stateRows || sum != stateRows*(stateRows+1)/2 || first != state || last != state {
		k.t.Errorf("got %d rows of states %d to %d, want %d of %d", rows, first, last, stateRows, state)
	}

	c := k.c
	c.project = project

	for i := range stateFiles {
		c.wantComplete(k.t, fmt.Sprintf("/files/%s/%s/%d", project, k.container, i), stateFile(state, i), false)
	}

	b.verifyStorage(project, false)
}

// moment is a moment of a job: when a query has a row, or when a new file matches a pattern.
type moment struct{ name, query, file string }

var (
	backupMoments = []moment{
		{name: "when bytes arrive", file: ".unfinished/*"},
		{name: "when a content is kept", file: "projects/*/backups/content/*"},
		{name: "when something is kept", file: "projects/*/backups/*"},
		{name: "when it runs", query: `select from platform.backups where status = 'running'`},
		{name: "when it is over"},
	}

	restoreMoments = []moment{
		{name: "when a database is closed", query: `select from pg_database where datconnlimit = 0`},
		{name: "when files are copied", file: "projects/*/files/*/*"},
		{name: "when a database is made", query: `select from pg_database where datname like '%\_new\_%'`},
		{name: "when it runs", query: `select from platform.restores where status = 'running'`},
		{name: "when it is over"},
	}
)

// wait waits for a moment of the job that runs, or for the end of the job. In a soak it waits a
// little longer at random. It returns the description of the moment.
func (k *crashProject) wait(m moment) string {
	b := k.p.inspect(k.t)
	defer b.close()

	exists := func(query string) bool { return b.values(`select exists (` + query + `)::text`)[0] == "true" }
	pattern := filepath.Join(k.p.dir, "storage", m.file)
	before, _ := filepath.Glob(pattern)
	is := func() bool {
		if m.query != "" {
			return exists(m.query)
		}

		now, _ := filepath.Glob(pattern)
		isNew := func(name string) bool { return !slices.Contains(before, name) }

		return m.file != "" && slices.ContainsFunc(now, isNew)
	}

	description := m.name
	for !is() {
		if !exists(`select from platform.backups where status in ('pending', 'running')
			union all select from platform.restores where status in ('pending', 'running')`) {
			description = "when it is over, not " + m.name
			break
		}

		<-time.After(2 * time.Millisecond)
	}

	if os.Getenv("SOAK") != "" {
		<-time.After(time.Duration(rand.IntN(30_000)) * time.Microsecond)
	}

	return description
}

// crashDuring kills a victim at a moment of a job, expires the job's heartbeat, and returns its
// final status.
func (k *crashProject) crashDuring(path string, kill victim, m moment) (status string) {
	k.t.Helper()

	reached := k.wait(m)
	before := k.p
	k.p = k.p.crash(kill)
	k.c = k.c.at(k.p)
	k.c.waitUntilServing(k.t)

	b := k.p.inspect(k.t)
	defer b.close()

	begun, own := time.Now(), time.Duration(0)
	if kill == killPostgreSQL { // the server survives and can record the end itself
		own = 2 * time.Second
	}

	var reason any
	k.eventually(path+" is over", func() string {
		if time.Since(begun) >= own {
			for _, sql := range []string{
				`update platform.backups set heartbeat_at = now() - interval '1 hour' where status = 'running'`,
				`update platform.restores set heartbeat_at = now() - interval '1 hour' where status = 'running'`,
				`update platform.backups set created_at = now() - interval '1 hour' where status = 'pending'`,
				`update platform.restores set created_at = now() - interval '1 hour' where status = 'pending'`,
				`update river.river_job set attempted_at = now() - interval '1 hour' where state = 'running'`,
			} {
				b.exec(sql)
			}

			if err := b.queue.CleanUp(k.t.Context()); err != nil {
				return err.Error()
			}
		}

		a := k.c.send(k.t, "GET", path, "")
		status, _ = a.content["status"].(string)
		reason = a.content["error"]
		if a.status == 200 && (status == "completed" || status == "failed") {
			return ""
		}

		return string(a.body)
	})

	k.t.Logf("%s was killed %s: %s %s: %q (%v)", kill, reached, path, status, reason, time.Since(begun))

	abandoned := reason == "the server running it stopped" || reason == "the server stopped before starting it"
	if status == "failed" && kill != killPostgreSQL && !abandoned {
		k.t.Errorf("%s failed without a crash: %q\n%s", path, reason, failureLines(before.log.String()))
	}
	if (status == "failed") != (reason != "") {
		k.t.Errorf("%s: got status %s, error %q", path, status, reason)
	}

	return status
}

// failureLines returns the lines of a log about failures.
func failureLines(log string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(log, "\n"), func(line string) bool {
		return !strings.Contains(line, "level=ERROR")
	}), "\n")
}

// backUp runs a backup, with a crash at a moment unless kill is "".
func (k *crashProject) backUp(kill victim, m moment) string {
	k.t.Helper()

	id := k.c.want(k.t, 201, "POST", "/backups", `{}`)["uuid"].(string)
	path, status := "/backups/"+id, ""
	if kill != "" {
		status = k.crashDuring(path, kill, m)
	} else {
		eventually(k.t, "a backup is over", func() bool {
			status, _ = k.c.send(k.t, "GET", path, "").content["status"].(string)
			return status == "completed" || status == "failed"
		})
	}

	kept, _ := filepath.Glob(filepath.Join(k.p.dir, "storage/projects", k.c.project, "backups", id+".*"))
	switch {
	case status == "completed":
		k.states[id] = k.state
	case kill == "":
		k.t.Fatalf("undisturbed backup: got status %s: %s", status, k.c.send(k.t, "GET", path, "").body)
	case len(kept) > 0:
		k.t.Errorf("a failed backup leaves %v", kept)
	}

	return id
}

// restore restores a backup during a crash, in place or into a new project. It returns the new
// project, "" for none.
func (k *crashProject) restore(backup, target string, kill victim, m moment) (made string) {
	k.t.Helper()

	r := k.c.want(k.t, 201, "POST", "/backups/"+backup+"/restore",
		fmt.Sprintf(`{"target": %q, "name": "made in round %d"}`, target, k.round))
	path, project := "/restores/"+r["uuid"].(string), r["projectUuid"].(string)
	completed := k.crashDuring(path, kill, m) == "completed"
	switch {
	case target == "new" && completed:
		k.wantState(project, k.states[backup])
		made = project
	case target == "new":
		if _, exists := k.c.projects(k.t, "")[project]; exists {
			k.t.Errorf("a failed restore leaves its new project")
		}
	case completed:
		k.state = k.states[backup]
		k.wantState(project, k.state)
		k.c.want(k.t, 200, "DELETE", path, "")
	}

	return made
}

// wantNoOrphans runs the periodic jobs and checks that no orphans remain.
func (k *crashProject) wantNoOrphans() {
	k.t.Helper()

	b := k.p.inspect(k.t)
	defer b.close()

	k.eventually("everything is over", func() string {
		if err := b.queue.CleanUp(k.t.Context()); err != nil {
			return err.Error()
		}

		var databases []string
		for _, id := range b.values(`select uuid::text from platform.projects`) {
			databases = append(databases, b.registry.Database(uuid.MustParse(id)))
		}

		left := b.values(`
			select datname from pg_database
			where datname like 'socle\_%' and datname not like 'socle\_template%'
				and datname <> all(coalesce($1, '{}'::text[]))
			union all select kind || ' ' || state::text from river.river_job where state = 'running'
			union all select name || ' ' || status from platform.projects where status not in ('active', 'paused')`,
			databases)

		return strings.Join(left, ", ")
	})

	left, err := filepath.Glob(filepath.Join(k.p.scratch(), "*"))
	if err != nil {
		k.t.Fatal(err)
	}

	for _, name := range left {
		if text, err := os.ReadFile(name); err != nil || len(text) > 0 {
			k.t.Errorf("a killed server leaves %s: %q %v", name, text, err)
		}
	}

	folders, err := os.ReadDir(filepath.Join(k.p.dir, "storage/projects"))
	if err != nil {
		k.t.Fatal(err)
	}

	projects := b.values(`select uuid::text from platform.projects`)
	for _, f := range folders {
		if !slices.Contains(projects, f.Name()) {
			k.t.Errorf("purged project %s leaves bytes", f.Name())
		}
	}
}

// eventually waits until left returns nothing.
func (k *crashProject) eventually(what string, left func() string) {
	k.t.Helper()

	var last string
	over := time.Now().Add(time.Minute)
	eventually(k.t, what, func() bool {
		if last = left(); last != "" && time.Now().After(over.Add(-time.Second)) {
			k.t.Logf("left are %s", last)
		}
		return last == ""
	})
}

// TestKilledBackups kills the server, PostgreSQL or both during backups, restores in place and into
// a new project, and purges. Each job must end as it reports, and each project must be in exactly
// one state. Further rounds reach other victims and moments.
func TestKilledBackups(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	k := &crashProject{t: t, p: p, c: c, states: map[string]int{}}
	k.container, _ = k.c.container(t, "kept")

	b := p.inspect(t)
	b.asOwner(k.c.project,
		fmt.Sprintf(
			`create table public.orders as select n, 0 as state, repeat('note', 50) as note from generate_series(1, %d) n`, stateRows,
		))

	b.close()
	k.advance()
	good := k.backUp("", moment{})
	for k.round = range crashesOr(t, 1) {
		victim := func(i int) victim { return []victim{killBoth, killServer, killPostgreSQL}[(k.round+i)%3] }
		ofBackup := backupMoments[k.round%len(backupMoments)]
		ofRestore := func(i int) moment { return restoreMoments[(k.round+i)%len(restoreMoments)] }

		k.advance()

		if id := k.backUp(victim(0), ofBackup); k.states[id] > 0 {
			good = id
		}

		k.wantState(k.c.project, k.state)
		k.advance()

		before := k.state
		k.restore(good, "in_place", victim(1), ofRestore(0))

		if k.state == before {
			k.wantState(k.c.project, k.state)
		}

		made := k.restore(good, "new", victim(2), ofRestore(1))
		k.wantState(k.c.project, k.state)

		if made != "" {
			mine := k.c
			mine.project = made

			go mine.send(t, "DELETE", "/projects/"+made+"?purge=true", "")

			<-time.After(time.Duration(rand.IntN(200)) * time.Millisecond)
			k.p = k.p.crash(victim(3))
			k.c = k.c.at(k.p)
			k.c.waitUntilServing(t)
			mine.at(k.p).send(t, "DELETE", "/projects/"+made+"?purge=true", "")
		}

		k.wantNoOrphans()
	}
}

// outageDuring kills PostgreSQL at a moment of a job, and returns the job's final status.
func (k *crashProject) outageDuring(path string, m moment) (status string) {
	k.t.Helper()

	reached := k.wait(m)
	k.p.crash(killPostgreSQL)
	k.c.waitUntilServing(k.t)

	var content map[string]any
	eventually(k.t, path+" is over", func() bool {
		content = k.c.send(k.t, "GET", path, "").content
		status, _ = content["status"].(string)
		return status == "completed" || status == "failed"
	})

	k.t.Logf("PostgreSQL was killed %s: %s %s: %q", reached, path, status, content["error"])
	return status
}

// TestOutageDuringBackups kills PostgreSQL during backups and restores while the server lives. They
// must be done when it is back, and the project must be in one state.
func TestOutageDuringBackups(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	k := &crashProject{t: t, p: p, c: c, states: map[string]int{}}
	k.container, _ = k.c.container(t, "kept")

	b := p.inspect(t)
	b.asOwner(k.c.project, fmt.Sprintf(
		`create table public.orders as select n, 0 as state, repeat('note', 50) as note from generate_series(1, %d) n`,
		stateRows))
	b.close()
	k.advance()

	backup := ""
	for _, m := range []moment{
		{name: "when it runs", query: `select from platform.backups where status = 'running'`},
		{name: "when a dump is made", query: `select from pg_stat_activity where application_name = 'pg_dump'`},
	} {
		backup = k.c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
		if status := k.outageDuring("/backups/"+backup, m); status != "completed" {
			t.Fatalf("a backup: got status %s when PostgreSQL was killed %s", status, m.name)
		}
	}

	kept := k.state
	for _, m := range []moment{
		{name: "when a database is made", query: `select from pg_database where datname like '%\_new\_%'`},
		{name: "when it loads", query: `select from pg_stat_activity where datname like '%\_new\_%'`},
	} {
		k.advance()
		r := k.c.want(t, 201, "POST", "/backups/"+backup+"/restore", `{"target": "in_place"}`)
		path := "/restores/" + r["uuid"].(string)
		if status := k.outageDuring(path, m); status != "completed" {
			t.Fatalf("a restore: got status %s when PostgreSQL was killed %s", status, m.name)
		}

		k.state = kept
		k.wantState(k.c.project, kept)
		k.c.want(t, 200, "DELETE", path, "")
	}

	k.wantNoOrphans()
}
