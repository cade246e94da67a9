package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// longSQL creates a table of 4 MB and a function that returns 50 MB.
const longSQL = `
	create table pages (id int primary key, body text not null);
	insert into pages select n, repeat('x', 20000) from generate_series(1, 200) n;
	create function all_pages() returns setof pages language sql stable as 'select * from pages order by id';
	create function much() returns setof text language sql stable as 'select repeat(''x'', 1000000) from generate_series(1, 50)';
	create function locked() returns boolean language sql stable as 'select pg_advisory_lock(4711) is not null';
	create view locking as select *, locked() from pages;
	grant select on pages, locking to authenticated`

func TestLongResponses(t *testing.T) {
	t.Parallel()

	a := newAPI(t, longSQL, func(c *Config) { c.Features.TxOverride = true })
	pool := singleConnection(a)

	for _, step := range []struct {
		path, accept, prefer, content string // content: of Content-Range
		status, rows                  int
	}{
		{"/pages?order=id", "", "", "0-199/*", 200, 200},
		{"/pages?order=id&limit=150&offset=20", "", "count=exact", "20-169/200", 206, 150},
		{"/rpc/all_pages", "", "", "0-199/*", 200, 200},
		{"/locking?order=id", "", "", "0-199/*", 200, 200},
		{"/pages?order=id", "", "tx=rollback", "0-199/*", 200, 200}, // buffered
		{"/pages?order=id", "text/csv", "", "0-199/*", 200, 0},
		{"/locking?select=id,body", "text/csv", "", "0-199/*", 200, 0},
	} {
		got := a.do("GET", step.path, "", "Accept", step.accept, "Prefer", step.prefer)
		if h := got.header; got.status != step.status || h.Get("Content-Range") != step.content ||
			h.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Errorf("%s: got %d %v, want %d, Content-Range %s", step.path, got.status, h, step.status, step.content)
		}

		if step.accept == "text/csv" {
			if lines := strings.Split(got.body, "\n"); lines[0] != "id,body" || len(lines) != 201 ||
				len(lines[200]) < 20000 {
				t.Errorf("%s: got %d lines, want 201", step.path, len(lines))
			}
		} else {
			var rows []struct{ Body string }
			if err := json.Unmarshal([]byte(got.body), &rows); err != nil || len(rows) != step.rows ||
				len(rows[step.rows-1].Body) != 20000 {
				t.Errorf("%s: got %d rows, %v, want %d", step.path, len(rows), err, step.rows)
			}
		}

		if left := a.do("POST", "/rpc/residue", "").body; !strings.Contains(left, `"locks" : 0`) {
			t.Errorf("after %s: got %s, want no locks", step.path, left)
		}
	}

	if got := a.do("GET", "/pages", "", "Accept", "application/vnd.pgrst.object+json"); got.status !=
		http.StatusNotAcceptable {
		t.Errorf("single object of several rows: got %d %.200s, want 406", got.status, got.body)
	}
	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("after a refused long response: got %+v", got)
	}
	if n := pool.Stat().NewConnsCount(); n > 2 {
		t.Errorf("got %d connections opened, want 2: one more after the refused response", n)
	}
}

// TestAbortedResponses checks that an incomplete response does not look complete.
func TestAbortedResponses(t *testing.T) {
	t.Parallel()

	a := newAPI(t, longSQL)
	singleConnection(a)
	gone := errors.New("the client has disconnected")
	for name, write := range map[string]func() error{
		"client": func() error { return gone },
		"database": func() error {
			a.exec("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and usename = 'request'")
			return nil
		},
	} {
		w := &hook{httptest.NewRecorder(), write}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/rpc/much", nil)
		r.Header.Set("Authorization", "Bearer authenticated:ann")

		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler {
					t.Errorf("%s: got panic %v, want %v", name, p, http.ErrAbortHandler)
				}
			}()

			a.server.ServeHTTP(w, r)
		}()

		if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
			t.Errorf("after an aborted response (%s): got %+v", name, got)
		}
	}
}

// hook calls a function at the first write.
type hook struct {
	http.ResponseWriter
	first func() error
}

func (h *hook) Write(b []byte) (int, error) {
	if f := h.first; f != nil {
		h.first = nil
		if err := f(); err != nil {
			return 0, err
		}
	}

	return h.ResponseWriter.Write(b)
}

// TestMemoryOfLongResponses is not parallel since it measures allocations.
func TestMemoryOfLongResponses(t *testing.T) {
	a := newAPI(t, longSQL)
	read := func() {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/rpc/much", nil)
		r.Header.Set("Authorization", "Bearer authenticated:ann")
		w := &counter{discardWriter: discardWriter{http.Header{}}}
		a.server.ServeHTTP(w, r)

		if w.bytes < 50_000_000 {
			t.Fatalf("got %d bytes, want 50,000,000: %v", w.bytes, w.h)
		}
	}

	read()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)

	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("response of 50 MB: got %d bytes allocated, want at most %d", took, 4<<20)
	}
}

type counter struct {
	discardWriter
	bytes int
}

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return len(b), nil
}
