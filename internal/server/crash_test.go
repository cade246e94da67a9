package server_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// writer changes one entity repeatedly and records the acknowledged changes. The change in flight
// at a crash can be applied or not.
type writer struct {
	next         int // number of the next change
	acknowledged []int
	write        func(c client, n int) bool // reports whether change n was acknowledged
	check        func(c client, w *writer)
}

func (w *writer) run(c client, stop *atomic.Bool) {
	for !stop.Load() {
		n := w.next
		w.next++
		if !w.write(c, n) {
			return
		}

		w.acknowledged = append(w.acknowledged, n)
	}
}

// lastAcked returns the number of the newest acknowledged change, 0 for none.
func (w *writer) lastAcked() int {
	if len(w.acknowledged) == 0 {
		return 0
	}
	return w.acknowledged[len(w.acknowledged)-1]
}

// writers returns sixteen writers, four of each kind.
func writers(t *testing.T, c client) []*writer {
	t.Helper()

	var all []*writer
	for i := range 4 {
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

// loadAndCrash runs the writers for a random time, then calls strike while they run.
func loadAndCrash(t *testing.T, c client, all []*writer, strike func()) {
	t.Helper()

	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() { w.run(c, &stop) })
	}

	<-time.After(time.Duration(200+rand.IntN(800)) * time.Millisecond)
	strike()

	// a writer with a connection to the new PostgreSQL would never stop
	stop.Store(true)
	wg.Wait()
}

// crashes returns the usual number of crashes of a test.
func crashes(t *testing.T) int {
	t.Helper()

	return crashesOr(t, 2)
}

// crashesOr returns the number of crashes of a test: SOAK, or few by default.
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

// TestKilledServer kills the server under sixteen writers and checks that the next start has all
// acknowledged changes.
func TestKilledServer(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	all := writers(t, c)
	for range crashes(t) {
		loadAndCrash(t, c.at(p), all, func() { p.signal(syscall.SIGKILL) })
		p.wait()

		postmaster := p.postmaster()
		if postmaster == 0 {
			t.Error("PostgreSQL ended with the server: there is nothing to adopt")
		}

		p = serve(t, p.dir)
		if got := p.postmaster(); got != postmaster {
			t.Errorf("PostgreSQL: got process %d after the restart, want %d", postmaster, got)
		}

		for _, w := range all {
			w.check(c.at(p), w)
		}
	}
}

// TestKilledPostgreSQL kills PostgreSQL or one of its backends under sixteen writers. The server
// must recover without a restart and without leaking pool connections.
func TestKilledPostgreSQL(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	all := writers(t, c)
	for round := range max(2, crashes(t)) {
		b := p.inspect(t)
		loadAndCrash(t, c, all, func() {
			victim := p.postmaster()
			if round%2 == 1 {
				victim = b.backend(c.project)
			}

			if victim > 0 {
				if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		})

		b.close()
		eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz") == 200 })
		inARow := 0 // pools can still hold dead connections

		eventually(t, "requests succeed again", func() bool {
			if inARow++; c.send(t, "GET", "/tables", "").status != 200 {
				inARow = 0
			}
			return inARow == 20
		})

		for _, w := range all {
			w.check(c, w)
		}

		var many sync.WaitGroup
		for range 60 { // more than any pool has: a leaked connection would block some
			many.Go(func() {
				if a := c.send(t, "GET", "/containers", ""); a.status != 200 {
					t.Errorf("concurrent request: got %d %s", a.status, a.body)
				}
			})
		}

		many.Wait()
	}

	p.signal(syscall.SIGTERM)

	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestKilledBoth kills the server and PostgreSQL.
func TestKilledBoth(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	all := writers(t, c)
	for range crashes(t) {
		loadAndCrash(t, c.at(p), all, func() {
			postmaster := p.postmaster()
			p.signal(syscall.SIGKILL)

			if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})

		p.wait()
		p = serve(t, p.dir)
		for _, w := range all {
			w.check(c.at(p), w)
		}
	}
}
