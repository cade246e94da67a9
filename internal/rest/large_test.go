package rest

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
)

// allocated returns the bytes that f allocates. Other tests must not run in parallel.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

// TestLargeBodies sends small bodies that would be large in memory. It is not parallel since it
// measures allocations.
func TestLargeBodies(t *testing.T) {
	var columns []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf("%s_%03d", strings.Repeat("c", 59), i))
	}

	a := newAPI(t, `create table wide (`+strings.Join(columns, " text,")+` text); grant all on wide to authenticated;
		create function echo(json) returns int language sql as 'select 1'`,
		func(c *Config) { c.Limits.MaxBody = 4 << 20 })
	a.do("GET", "/clients", "") // reads the catalog

	name := strings.Repeat("n", 20_000)
	keys := make([]string, 50_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":0`, i)
	}

	object := "{" + strings.Join(keys, ",") + "}"
	csv := []string{"Content-Type", "text/csv"}
	for _, test := range []struct {
		name, path, body string
		headers          []string
		status           int
		code             string
		most             uint64 // bytes of allocations
	}{
		{"long name, no table", "/nosuch", name + "\n" + strings.Repeat("1\n", 20_000), csv, 404, "PGRST205", 4 << 20},
		{"long name", "/clients", name + "\n" + strings.Repeat("1\n", 20_000), csv, 400, "PGRST204", 4 << 20},
		{"long name of an argument", "/rpc/add", name + "\n" + strings.Repeat("1\n", 20_000), csv, 404,
			"PGRST202", 8 << 20},
		{"long name, given columns", "/parents?columns=id", name + ",id\n" + strings.Repeat("1,1\n", 20_000), csv, 409,
			"23505", 20 << 20},
		{"empty cells", "/wide",
			strings.Join(columns, ",") + "\n" + strings.Repeat(strings.Repeat(",", 299)+"\n", 12_000), csv, 413,
			"PGRST102", 17 << 20},
		{"many cells", "/clients", "id,name\n" + strings.Repeat(",", 3<<20), csv, 400, "PGRST102", 17 << 20},
		{"many columns", "/clients", strings.Repeat("id,", 1<<20), csv, 400, "PGRST102", 17 << 20},
		{"many keys", "/clients", object, nil, 400, "PGRST204", 17 << 20},
		{"many keys in two rows", "/clients", "[" + object + "," + object + "]", nil, 400, "PGRST204", 17 << 20},
		{"many keys for arguments", "/rpc/add", object, nil, 404, "PGRST202", 17 << 20},
		{"many keys for one argument", "/rpc/echo", object, nil, 200, "1", 17 << 20},
		{"many fields of a form", "/rpc/add", strings.Repeat("k=1&", 9_000) + "k=1",
			[]string{"Content-Type", "application/x-www-form-urlencoded"}, 404, "PGRST202", 17 << 20},
	} {
		var got reply
		size := allocated(func() { got = a.do("POST", test.path, test.body, test.headers...) })
		if got.status != test.status || !strings.Contains(got.body, test.code) {
			t.Errorf("%s: %d %.300s, want %d %s", test.name, got.status, got.body, test.status, test.code)
		}
		if len(got.body) > 8<<10 {
			t.Errorf("%s: got a response of %d bytes, want at most %d", test.name, len(got.body), 8<<10)
		}
		if size > test.most {
			t.Errorf("%s: %d bytes were allocated, want at most %d", test.name, size, test.most)
		}
	}
}

// TestManyParameters sends many parameters. The error must not name all of them: its size and time
// would grow with the request.
func TestManyParameters(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	var query strings.Builder
	for i := range 70_000 {
		fmt.Fprintf(&query, "&k%d=1", i)
	}

	got := a.do("GET", "/rpc/add?"+query.String()[1:], "")
	if got.status != http.StatusNotFound || !strings.Contains(got.body, "PGRST202") || len(got.body) > 8<<10 {
		t.Errorf("70,000 arguments: got %d, %d bytes, %.300s, want 404 PGRST202", got.status, len(got.body), got.body)
	}
}

// TestBodiesAreBounded checks that a body fails without room in the budget, and that each request
// returns its room.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "create function size(text) returns int language sql as 'select length($1)'", func(c *Config) {
		c.Limits.Bodies, c.Session.AcquireTimeout = httpx.NewBodyPool(4<<20), time.Minute
	})

	text := []string{"Content-Type", "text/plain"}
	if got := a.do("POST", "/rpc/size", strings.Repeat("x", 2<<20),
		text...); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "53200") {
		t.Errorf("body larger than the budget share: got %d %s, want 503 53200", got.status, got.body)
	}

	for range 5 {
		if got := a.do("POST", "/rpc/size", strings.Repeat("x", 500_000), text...); got.status != http.StatusOK ||
			got.body != "500000" {
			t.Fatalf("body within the budget: got %d %s, want 200", got.status, got.body)
		}
	}
}
