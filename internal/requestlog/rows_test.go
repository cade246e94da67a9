package requestlog

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform/platformtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestDaysOfRequests checks that several servers can create daily partitions at once, and that
// partitions older than a week are dropped.
func TestDaysOfRequests(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, now := i.Project(), time.Now()
	done := make(chan error)
	for range 4 {
		go func() {
			var batch []record
			for day := range 12 {
				batch = append(batch, record{uuid: uuid.Must(uuid.NewV7()), project: project,
					at: now.AddDate(0, 0, -day)})
			}

			done <- appendRecords(t.Context(), i.DB, batch)
		}()
	}

	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	count := func() int {
		t.Helper()

		n, err := pg.Value[int](t.Context(), i.DB.Querier(), `select count(*) from platform.requests`)
		if err != nil {
			t.Fatal(err)
		}

		return n
	}
	if got := count(); got != 48 {
		t.Errorf("got %d logged requests, want 48", got)
	}

	if err := dropPartitions(t.Context(), i.DB, 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	if got := count(); got != 32 { // today and the seven days before
		t.Errorf("got %d logged requests, want 32", got)
	}
}

// TestFilters checks that each filter lists the request that it matches, and no other.
func TestFilters(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	user, key, endUser := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	rows := func(target string, r record) record {
		r.uuid, r.at, r.method, r.status = uuid.Must(uuid.NewV7()), time.Now(), "GET", max(r.status, 200)
		r.route, r.prefix, r.target = "/projects/{projectUUID}/rest/v1", rowsPrefix, target
		if r.project == uuid.Nil {
			r.project = project
		}

		return r
	}

	batch := []record{
		rows("/books", record{status: 403, code: "42501", message: "permission denied", endUser: endUser,
			role: "authenticated", token: true, query: "id=eq.canary"}),
		rows("/books", record{key: key, role: "anon", rows: 3, hasRows: true, bytes: 70, agent: "test"}),
		rows("/books", record{schema: "shop"}),
		rows("/rpc/books", record{status: 500}),
		rows("/films", record{user: user}),
		rows("/books", record{project: other, status: 403, code: "42501", endUser: endUser}),
	}
	if err := appendRecords(t.Context(), i.DB, batch); err != nil {
		t.Fatal(err)
	}

	null := func(id uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: id, Valid: true} }
	for name, c := range map[string]struct {
		filter Filter
		want   []int
	}{
		"all":               {Filter{}, []int{4, 3, 2, 1, 0}},
		"table":             {Filter{Table: "books"}, []int{2, 1, 0}},
		"table of a schema": {Filter{Table: "shop.books"}, []int{2}},
		"table with public": {Filter{Table: "public.films"}, []int{4}},
		"function":          {Filter{Function: "books"}, []int{3}},
		"route":             {Filter{Route: "/rest/v1/rpc"}, []int{3}},
		"class of statuses": {Filter{Status: "4xx"}, []int{0}},
		"minimum and class": {Filter{Status: "4xx", MinStatus: 500}, nil},
		"code":              {Filter{Code: "42501"}, []int{0}},
		"end user":          {Filter{EndUser: null(endUser)}, []int{0}},
		"user":              {Filter{User: null(user)}, []int{4}},
		"key":               {Filter{Key: null(key)}, []int{1}},
		"role":              {Filter{Role: "anon"}, []int{1}},
		"role and end user": {Filter{Role: "anon", EndUser: null(endUser)}, nil},
		"wildcards":         {Filter{Route: "/rest/v1/%"}, nil},
	} {
		c.filter.Limit = 10
		requests, _, err := List(t.Context(), i.DB, project, c.filter)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		var got []int
		for _, r := range requests {
			for n := range batch {
				if batch[n].uuid == r.UUID {
					got = append(got, n)
				}
			}
		}

		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
			continue
		}
		for n := range got {
			if got[n] != c.want[n] {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
		}
	}

	r, err := Get(t.Context(), i.DB, project, batch[0].uuid)
	if err != nil || *r.Query != "id=eq.…" || *r.ErrorCode != "42501" || *r.EndUserUUID != endUser ||
		r.Caller != "token" || r.Rows != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := Get(t.Context(), i.DB, other, batch[0].uuid); !fault.Is(err, fault.NotFound) {
		t.Errorf("a request of another project: got %v, want NotFound", err)
	}
}
