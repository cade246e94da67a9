package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/server"
)

// bench is a running Socle with projects.
type bench struct {
	dir      string
	process  *socle.Process
	database *server.Database // for counting connections
	token    string           // the user's
	projects []project
	maxOpen  atomic.Int64 // peak number of connections to projects
}

const (
	measuredProjects  = 20 // created sequentially at each end
	createConcurrency = 4  // concurrency of the others
)

// project is a project with a table, and a secret key to its rows.
type project struct{ id, key string }

func (b *bench) settings() []string {
	return []string{
		"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(b.dir, "data"), "SOCLE_RATE_LIMIT=off",
		"SOCLE_DRAIN=0s",
		"SOCLE_LOG_LEVEL=" + cmp.Or(os.Getenv("SOCLE_LOG_LEVEL"), "warn"),
	}
}

// start starts Socle, and returns the time until it served.
func (b *bench) start() (time.Duration, error) {
	cmd := exec.Command(*program, "serve")
	cmd.Env, cmd.Stderr = append(os.Environ(), b.settings()...), os.Stderr

	begun := time.Now()
	process, err := socle.StartSocle(cmd)
	if err != nil {
		return 0, err
	}

	took := time.Since(begun)
	b.process = process

	c, err := config.Load(b.settings(), nil)
	if err != nil {
		return 0, err
	}

	b.database, _, err = server.OpenDatabase(context.Background(), c, slog.New(slog.DiscardHandler))
	return took, err
}

func (b *bench) stop() {
	if b.database != nil {
		_ = b.database.Close(context.Background())
		b.database = nil
	}

	b.process.Stop()
}

// createProjects creates the user and all projects.
func (b *bench) createProjects(ctx context.Context) error {
	user, err := b.post("/users", "",
		`{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}

	b.token = user.Metadata.Token
	organizations := make([]string, 0, *count/perOrganization+1)
	for n := 0; n < *count; n += perOrganization {
		organization, err := b.post("/organizations", "", fmt.Sprintf(`{"name": "bench %d"}`, n))
		if err != nil {
			return err
		}

		organizations = append(organizations, organization.Content.UUID)
	}

	// The first and the last projects, whose times are printed, are created sequentially.
	b.projects = make([]project, *count)
	times := make([]time.Duration, *count)
	few := min(measuredProjects, *count)
	for _, part := range []struct {
		from, to, atOnce int
	}{{0, few, 1}, {few, *count - few, createConcurrency}, {max(few, *count-few), *count, 1}} {
		var wg sync.WaitGroup
		errs := make([]error, part.atOnce)
		for i := range part.atOnce {
			wg.Go(func() {
				for n := part.from + i; n < part.to && errs[i] == nil; n += part.atOnce {
					if errs[i] = ctx.Err(); errs[i] == nil {
						b.projects[n], times[n], errs[i] = b.createProject(n, organizations[n/perOrganization])
					}
				}
			})
		}

		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}

	middle := func(around []time.Duration) float64 {
		sorted := slices.Sorted(slices.Values(around))
		return sorted[len(sorted)/2].Seconds() * 1000
	}
	early, late := middle(times[:few]), middle(times[*count-few:])
	fmt.Printf("making a project, median of %d: the first %.0f ms, the last %.0f ms, ratio %.2f; load %s\n", few, early,
		late, late/early, loadAverage())

	return nil
}

// createProject creates a project with a table and a key, and returns the duration for the project
// alone.
func (b *bench) createProject(n int, organization string) (p project, took time.Duration, err error) {
	begun := time.Now()
	reply, err := b.post("/projects", "",
		fmt.Sprintf(`{"name": "bench %d", "organization_uuid": %q}`, n, organization))
	took = time.Since(begun)
	if err != nil {
		return p, took, err
	}

	p.id = reply.Content.UUID
	key, err := b.post("/projects/"+p.id+"/keys", "", `{"name": "bench", "kind": "secret"}`)
	if err != nil {
		return p, took, err
	}

	p.key = key.Metadata.Key
	_, err = b.post("/tables", p.id, `{"name": "items", "columns": [
		{"name": "id", "type": "uuid", "primary": true, "default_value": "gen_random_uuid()"}, {"name": "note", "type": "text"}]}`)
	return p, took, err
}

type reply struct {
	Content  struct{ UUID string }
	Metadata struct{ Token, Key string }
}

func (b *bench) post(path, project, body string) (r reply, err error) {
	text, err := send(http.DefaultTransport, b.platformRequest("POST", path, project, body))
	if err != nil {
		return r, err
	}

	return r, json.Unmarshal(text, &r)
}

func (b *bench) platformRequest(method, path, project, body string) *http.Request {
	q := request(method, b.process.URL+path, body)
	if b.token != "" {
		q.Header.Set("Authorization", "Bearer "+b.token)
	}
	if project != "" {
		q.Header.Set("X-Project", project)
	}

	return q
}

func (b *bench) rowsRequest(method, path string, p project, body string) *http.Request {
	q := request(method, b.process.URL+"/projects/"+p.id+"/rest/v1"+path, body)
	q.Header.Set("apikey", p.key)

	return q
}

func request(method, url, body string) *http.Request {
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		panic(err) // programming error: the URL is ours
	}

	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}

	return q
}

// send sends a request and returns the response body. It fails without a status of success.
func send(transport http.RoundTripper, q *http.Request) ([]byte, error) {
	res, err := transport.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()

	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		return nil, err
	}

	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s %s", q.Method, q.URL, res.Status, text.Bytes())
	}

	return text.Bytes(), nil
}

type connections struct{ Open, Listening int64 }

// connections counts the connections to project databases.
func (b *bench) connections() (n struct{ open, listening int64 }, err error) {
	c, err := pg.One[connections](context.Background(), b.database.Pool, `
		with sessions as materialized (select datname, query from pg_stat_activity where backend_type = 'client backend')
		select count(*) as open, count(*) filter (where query ilike 'listen%') as listening
		from sessions where starts_with(datname, 'socle_')`)
	n.open, n.listening = c.Open, c.Listening
	b.maxOpen.Store(max(b.maxOpen.Load(), n.open))

	return n, err
}

// awaitNoConnections waits until all idle connections to projects are closed.
func (b *bench) awaitNoConnections(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()

	for {
		n, err := b.connections()
		if err != nil || n.open == 0 {
			return err
		}

		select {
		case <-ctx.Done():
			return errors.New("idle connections stay open")
		case <-time.After(time.Second):
		}
	}
}

// memory returns the current and peak memory of Socle in MiB.
func (b *bench) memory() (now, peak int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.process.PID())) // exists on Linux only
	for line := range strings.SplitSeq(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}

		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = n >> 10
		case "VmHWM:":
			peak = n >> 10
		}
	}

	return now, peak
}
