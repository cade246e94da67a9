package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestSavedQueries shares queries between the developers of a project.
func TestSavedQueries(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/saved-queries"
	developer := a.Member(4)

	id := a.Post(path, `{"name": "cheap \"books\" 📚", "query": "select 'x'"}`).Want(201).
		Content("name", `cheap "books" 📚`).Get("uuid").(string)
	developer.Get(path).Want(200).Total(1).Content("0.query", "select 'x'")
	developer.Put(path+"/"+id, `{"query": "select 2"}`).Want(200).Content("query", "select 2").
		Content("name", `cheap "books" 📚`).Content("updatedBy", developer.User)

	other := a.Create(path, `{"name": "all", "query": "select 1"}`)
	long := `{"name": "long", "query": "` + strings.Repeat("x", 1<<20) + `"}`
	a.Post(path, long).Want(413)
	a.Put(path+"/"+id, long).Want(413)
	a.Get(path+"?sort=name").Want(200).Content("0.name", "all")
	a.Post(path, `{"name": "all", "query": "select 1"}`).Want(409).Field("name")
	a.Put(path+"/"+id, `{"name": "all"}`).Want(409).Field("name")
	a.Put(path+"/"+id, `{}`).Want(422).Code("nothing_to_change")
	a.Put(path+"/"+apitest.MissingUUID, `{"name": "x"}`).Want(404)
	a.Put(path+"/x", `{"name": "x"}`).Want(400)
	a.Post(path, `{"name": "", "query": "x"}`).Want(422).Field("name")
	a.Post(path, `{"name": "long", "query": "`+strings.Repeat("x", 50_001)+`"}`).Want(422).Field("query")
	a.Post(path, `{`).Want(400)
	a.Get(path + "?sort=query").Want(400)

	a.Delete(path+"/"+other).Want(200).Content("name", "all")
	a.Delete(path + "/" + other).Want(404)
	a.Delete(path + "/x").Want(400)

	execute(t, a, `insert into socle.saved_queries (uuid, name, query, created_by, updated_by)
		select gen_random_uuid(), 'query ' || n, 'select 1', gen_random_uuid(), gen_random_uuid()
		from generate_series(2, 500) n`)
	a.Post(path, `{"name": "one too many", "query": "select 1"}`).Want(422).Code("quota_exceeded")
}

// TestRequestSeries counts requests over time.
func TestRequestSeries(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/request-series"
	a.Get("/projects/" + a.Project + "/end-users/x").Want(400)

	until(t, "a failed request is counted", func() bool {
		r := a.Get(path + "?span=hour").Want(200)
		return len(values(r, "at")) == 60 && strings.Contains(string(r.Body), `"clientErrors":1`)
	})
	if r := a.Get(path).Want(200); fmt.Sprint(r.Metadata("bucketSeconds")) != "900" || len(values(r, "at")) != 96 {
		t.Errorf("got %s", r.Body)
	}
	a.Get(path + "?span=year").Want(400)
}

// TestRequestSeriesOneAtATime checks that a second series of an account waits, and is refused.
func TestRequestSeriesOneAtATime(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	path := "/projects/" + a.Project + "/request-series"
	conn, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	pgtest.Exec(t, conn, "begin; lock table platform.requests in access exclusive mode")

	replies := make(chan *apitest.Reply, 2)
	for range 2 {
		go func() { replies <- a.Get(path) }()
	}

	if (<-replies).Want(429).Code("busy").Header.Get("Retry-After") == "" {
		t.Error("a 429 has no Retry-After")
	}

	pgtest.Exec(t, conn, "rollback")
	(<-replies).Want(200)
}

// TestRealtimeActivity lists what is open; package realtimeapi has the tests with sockets.
func TestRealtimeActivity(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/realtime-activity"
	a.Get(path).Want(200).Content("sockets", 0.0).Content("largestChannels", []any{})
	a.Get("/projects/x/realtime-activity").Want(400)
}
