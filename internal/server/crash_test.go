package server_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// writer changes one entity repeatedly and records the acknowledged changes. The change in flight
// at a crash can be applied or not.
type writer struct {
	next         int // number of the next change
	acknowledged []int
	write        func(c client, n int) bool // reports whether change n was acknowledged
	check        func(c client, w *writer)
}

// change makes the next change and reports whether it was acknowledged.
func (w *writer) change(c client) bool {
	n := w.next
	w.next++
	if !w.write(c, n) {
		return false
	}

	w.acknowledged = append(w.acknowledged, n)
	return true
}

// lastAcked returns the number of the newest acknowledged change, 0 for none.
func (w *writer) lastAcked() int {
	if len(w.acknowledged) == 0 {
		return 0
	}
	return w.acknowledged[len(w.acknowledged)-1]
}

// writersPerKind is how many writers make changes of the same kind at once.
const writersPerKind = 2

// writers returns writers of tables and containers.
func writers(t *testing.T, c client) []*writer {
	t.Helper()

	var all []*writer
	for i := range writersPerKind {
		all = append(all, columnWriter(t, c, i), renamer(t, c, i), fileWriter(t, c, i), describer(t, c, i))
	}

	return all
}

// columnWriter adds columns to a table.
func columnWriter(t *testing.T, c client, i int) *writer {
	t.Helper()

	path := fmt.Sprintf("/tables/wide%d/columns", i)
	c.want(t, 201, "POST", "/tables",
		fmt.Sprintf(`{"name": "wide%d", "columns": [{"name": "id", "type": "integer"}]}`, i))

	return &writer{next: 1,
		write: func(c client, n int) bool {
			return c.send(t, "POST", path, fmt.Sprintf(`{"name": "c%d", "type": "text"}`, n)).status == 201
		},
		check: func(c client, w *writer) {
			a := c.send(t, "GET", path, "")
			for _, n := range w.acknowledged {
				if !bytes.Contains(a.body, fmt.Appendf(nil, `"c%d"`, n)) {
					t.Errorf("column c%d of %s was acknowledged and is lost: %d", n, path, a.status)
				}
			}
		}}
}

// renamer renames a table.
func renamer(t *testing.T, c client, i int) *writer {
	t.Helper()

	name := func(n int) string { return fmt.Sprintf("name%d_%d", i, n) }
	exists := func(c client, n int) bool { return c.send(t, "GET", "/tables/"+name(n), "").status == 200 }
	c.want(t, 201, "POST", "/tables",
		fmt.Sprintf(`{"name": %q, "columns": [{"name": "id", "type": "integer"}]}`, name(0)))

	now := 0

	return &writer{next: 1,
		write: func(c client, n int) bool {
			done := c.send(t, "PUT", "/tables/"+name(now)+"/rename", fmt.Sprintf(`{"name": %q}`, name(n))).status == 200
			if done {
				now = n
			}

			return done
		},
		check: func(c client, w *writer) {
			old, tried := exists(c, now), exists(c, w.next-1)
			if w.next-1 != now && old == tried || !old && !tried {
				t.Errorf("the table has the acknowledged name %s: %t, and the one that was tried %s: %t", name(now),
					old, name(w.next-1), tried)
			}

			if tried {
				now = w.next - 1
			}
		}}
}

// fileWriter uploads files.
func fileWriter(t *testing.T, c client, i int) *writer {
	t.Helper()

	container, _ := c.want(t, 201, "POST", "/containers", fmt.Sprintf(`{"name": "files-%d"}`, i))["uuid"].(string)
	path := "/containers/" + container + "/files"
	text := func(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d of %d\n", n, i), 5000) }
	uuids := map[int]string{}

	return &writer{next: 1,
		write: func(c client, n int) bool {
			var body bytes.Buffer
			form := multipart.NewWriter(&body)
			_ = form.WriteField("full_file_name", strconv.Itoa(n))

			part, _ := form.CreateFormFile("file", "f")
			_, _ = part.Write(text(n))
			_ = form.Close()

			a := c.sendAs(t, "POST", path, form.FormDataContentType(), &body)
			uuids[n], _ = a.content["uuid"].(string)

			return a.status == 201
		},
		check: func(c client, w *writer) {
			for _, n := range w.acknowledged {
				if a := c.send(t, "GET", path+"/"+uuids[n]+"/download", ""); a.status != 200 ||
					!bytes.Equal(a.body, text(n)) {
					t.Errorf("file %d was acknowledged and is lost or damaged: status %d, %d bytes, want %d", n,
						a.status, len(a.body), len(text(n)))
				}
			}

			// an unacknowledged file is complete or absent
			a := c.send(t, "PUT", "/containers/"+container, `{"is_public": false}`)
			if total, ok := a.content["totalFiles"].(float64); !ok || total < float64(len(w.acknowledged)) ||
				total > float64(w.next-1) {
				t.Errorf("the container has %v files, of which %d were acknowledged and %d tried",
					a.content["totalFiles"], len(w.acknowledged), w.next-1)
			}
		}}
}

// describer changes the description of a container.
func describer(t *testing.T, c client, i int) *writer {
	t.Helper()

	container, _ := c.want(t, 201, "POST", "/containers",
		fmt.Sprintf(`{"name": "described-%d", "description": "0"}`, i))["uuid"].(string)
	path := "/containers/" + container
	now := 0 // acknowledged, or found after a crash

	return &writer{next: 1,
		write: func(c client, n int) bool {
			done := c.send(t, "PUT", path, fmt.Sprintf(`{"description": "%d"}`, n)).status == 200
			if done {
				now = n
			}

			return done
		},
		check: func(c client, w *writer) {
			got := c.send(t, "PUT", path, `{"is_public": false}`).content["description"]
			switch got {
			case strconv.Itoa(now):
			case strconv.Itoa(w.next - 1):
				now = w.next - 1
			default:
				t.Errorf("the description is %v, %d was acknowledged, and %d was tried", got, now, w.next-1)
			}
		}}
}

// loadAndCrash lets each writer make a change, then calls strike while they make others: after a
// random number of those is acknowledged. A writer stops at its first failure.
func loadAndCrash(t *testing.T, c client, all []*writer, strike func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	var stop atomic.Bool
	var first, every sync.WaitGroup
	left := atomic.Int32{}
	left.Store(1 + rand.Int32N(int32(len(all))))
	first.Add(len(all))

	for _, w := range all {
		every.Go(func() {
			isNew := w.next == 1
			ok := w.change(c)
			if isNew && !ok {
				t.Error("the first change of a writer fails")
			}

			first.Done()
			first.Wait()

			for ok && !stop.Load() {
				if ok = w.change(c); ok && left.Add(-1) == 0 {
					cancel()
				}
			}
		})
	}

	go func() {
		every.Wait()
		cancel()
	}()

	<-ctx.Done()
	strike()

	// a writer with a connection to the new PostgreSQL would never stop
	stop.Store(true)
	every.Wait()
}

// crashesOr returns the number of rounds of a test: SOAK, or few by default.
func crashesOr(t *testing.T, few int) int {
	t.Helper()

	text := os.Getenv("SOAK")
	if text == "" {
		return few
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

// victim names the processes that a crash kills.
type victim string

const (
	killServer     victim = "the server"
	killPostgreSQL victim = "PostgreSQL"
	killBoth       victim = "the server and PostgreSQL"
	killBackend    victim = "a backend of PostgreSQL"
)

// crash kills the server, its PostgreSQL or both, and returns the server, started again if it was
// killed. It checks that a server adopts the PostgreSQL of a killed one.
func (p *process) crash(kill victim) *process {
	p.t.Helper()

	postmaster := p.postmaster()
	if kill != killPostgreSQL {
		p.signal(syscall.SIGKILL)
	}
	if kill != killServer {
		if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
			p.t.Error(err)
		}
	}

	if kill == killPostgreSQL {
		return p
	}

	p.wait()

	if kill == killServer && p.postmaster() == 0 {
		p.t.Error("PostgreSQL ended with the server: there is nothing to adopt")
	}

	again := serve(p.t, p.dir)
	if got := again.postmaster(); kill == killServer && got != postmaster {
		p.t.Errorf("PostgreSQL: got process %d after the restart, want %d", got, postmaster)
	}

	return again
}

// TestKilled kills the server, PostgreSQL, both, and a backend of PostgreSQL under writers of every
// kind. All acknowledged changes must be present, bytes must match rows, and a server that survives
// must recover without leaking connections of its pools. A day later no orphans may remain.
func TestKilled(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	users := newUserWriters(t, c)
	all := slices.Concat(writers(t, c), fileWriters(t, c), users.signUps, users.refreshes)
	for round := range crashesOr(t, 1) {
		for i, kill := range []victim{killServer, killPostgreSQL, killBoth, killBackend} {
			old := p
			loadAndCrash(t, c.at(p), all, func() {
				if (round+i)%2 == 1 {
					old.waitForUpload()
				}

				if kill == killBackend {
					old.killBackend(c.project)
				} else {
					p = old.crash(kill)
				}
			})

			c = c.at(p)
			c.waitUntilServing(t)

			b := p.inspect(t)
			users.keepSpentTokens(b, c.project)
			for _, w := range all {
				w.check(c, w)
			}

			users.check(b, c.project)
			b.verifyStorage(c.project, false)
			b.close()

			if p == old {
				c.wantNoLeaks(t)
			}
		}
	}

	b := p.inspect(t)
	b.advanceDay(c.project)
	b.verifyStorage(c.project, true)
	b.close()

	p.signal(syscall.SIGTERM)

	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// wantNoLeaks sends more concurrent requests than any pool has connections: a leaked one would
// block some.
func (c client) wantNoLeaks(t *testing.T) {
	var many sync.WaitGroup
	for range 30 {
		many.Go(func() {
			if a := c.send(t, "GET", "/containers", ""); a.status != 200 {
				t.Errorf("concurrent request: got %d %s", a.status, a.body)
			}
		})
	}

	many.Wait()
}
