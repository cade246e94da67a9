package api_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/pgtest"
)

// hookEndpoint is an endpoint that keeps its requests.
type hookEndpoint struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	status int
	all    []hookRequest
}

type hookRequest struct {
	header http.Header
	body   string
	event  struct {
		ID, Type, Project string
		Time              time.Time
		Data              map[string]any
	}
}

func newHookEndpoint(t *testing.T) *hookEndpoint {
	t.Helper()

	e := &hookEndpoint{t: t, status: 200}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := hookRequest{header: r.Header, body: string(body)}
		if err != nil || json.Unmarshal(body, &request.event) != nil {
			t.Errorf("got body %s, %v", body, err)
		}

		e.mu.Lock()
		defer e.mu.Unlock()

		e.all = append(e.all, request)
		w.WriteHeader(e.status)
		_, _ = w.Write([]byte("thanks" + strings.Repeat("!", 10000)))
	}))
	t.Cleanup(e.Close)

	return e
}

func (e *hookEndpoint) setStatus(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()

	e.status = status
}

// requests waits for n requests and returns all.
func (e *hookEndpoint) requests(n int) []hookRequest {
	e.t.Helper()

	var all []hookRequest
	pgtest.Eventually(e.t, "requests arrive", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()

		all = append(all[:0], e.all...)
		return len(all) >= n
	})
	if len(all) > n {
		e.t.Errorf("got %d requests, want %d", len(all), n)
	}

	return all
}

// isSignedBy reports whether the library of Standard Webhooks accepts a request by a secret.
func (r hookRequest) isSignedBy(t *testing.T, secret string) bool {
	t.Helper()

	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}

	return library.Verify([]byte(r.body), r.header) == nil
}

// listOf returns the content of a reply.
func listOf(r *apitest.Reply) []any {
	var reply struct{ Content []any }
	_ = json.Unmarshal(r.Body, &reply)

	return reply.Content
}

func createHookTable(a *apitest.API) {
	a.Post("/sql", `{"query": "create table public.orders (id int primary key, status text, total numeric)", "read_only": false}`).
		Want(200)
}

func execSQL(a *apitest.API, sql string) {
	text, _ := json.Marshal(map[string]any{"query": sql, "read_only": false})
	a.Post("/sql", string(text)).Want(200)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	endpoint := newHookEndpoint(t)
	path := "/projects/" + a.Project + "/webhooks"
	createHookTable(a)

	created := a.Post(path, `{"name": " orders ", "endpoint": "`+endpoint.URL+`/hook?key=1", "headers": {"Authorization": "Bearer abc"},
		"tables": [{"table": "orders", "filter": "total=gt.5"}]}`).Want(201).Content("name", "orders").
		Content("headers.0", "Authorization").Content("paused", false)
	secret := created.Metadata("secret").(string)
	id := created.Get("uuid").(string)
	if strings.Contains(string(a.Get(path+"/"+id).Want(200).Body), secret) {
		t.Error("the webhook shows its secret")
	}

	execSQL(a, `insert into orders values (1, 'new', 10.50), (2, 'new', 1); update orders set status = 'paid' where id = 1;
		delete from orders where id = 1`)
	got := endpoint.requests(3)
	for i, want := range []string{
		`socle.row.inserted.v1 {"schema":"public","table":"orders","record":{"id":1,"status":"new","total":10.50},"old":null}`,
		`socle.row.updated.v1 {"schema":"public","table":"orders","record":{"id":1,"status":"paid","total":10.50},"old":{"id":1,"status":"new","total":10.50}}`,
		`socle.row.deleted.v1 {"schema":"public","table":"orders","record":null,"old":{"id":1,"status":"paid","total":10.50}}`,
	} {
		typ, data, _ := strings.Cut(want, " ")
		found := false
		for _, r := range got {
			found = found || (r.event.Type == typ && strings.Contains(r.body, `"data":`+data))
		}
		if !found {
			t.Errorf("%d: no request has %s", i, want)
		}
	}
	r := got[0]
	if r.event.Project != a.Project || r.event.ID != r.header.Get("Webhook-Id") || !r.isSignedBy(t, secret) ||
		r.header.Get("Authorization") != "Bearer abc" || r.event.Time.IsZero() {
		t.Errorf("got %v %s", r.header, r.body)
	}

	// Deliveries.
	deliveries := path + "/" + id + "/deliveries"
	pgtest.Eventually(t, "deliveries are recorded", func() bool {
		return len(listOf(a.Get(deliveries+"?status=delivered").Want(200))) == 3
	})
	first := a.Get(deliveries + "?limit=2").Want(200)
	second := a.Get(deliveries + "?limit=2&cursor=" + first.Metadata("next").(string)).Want(200)
	if len(listOf(first)) != 2 || len(listOf(second)) != 1 || second.Metadata("next") != nil {
		t.Errorf("got %s and %s", first.Body, second.Body)
	}
	one := second.Get("0.uuid").(string)
	details := a.Get(deliveries+"/"+one).Want(200).Content("status", "delivered").Content("attempts", 1.0).
		Content("log.0.status", 200.0)
	if reply := details.Get("reply").(string); len(reply) != 4096 || !strings.HasPrefix(reply, "thanks!") {
		t.Errorf("got reply %q", reply)
	}

	// Rotation, test, retry and replay.
	next := a.Post(path+"/"+id+"/secret", "").Want(200).Metadata("secret").(string)
	a.Post(path+"/"+id+"/test", "").Want(201).Content("type", "socle.webhook.test.v1")
	if r := endpoint.requests(4)[3]; !r.isSignedBy(t, secret) || !r.isSignedBy(t, next) || secret == next ||
		r.isSignedBy(t, "whsec_c29jbGUgc2lnbnMgd2l0aCB0d28ga2V5cw==") ||
		r.header.Get("Authorization") != "Bearer abc" {
		t.Errorf("after the rotation: got %v", r.header)
	}
	a.Post(deliveries+"/"+one+"/retry", "").Want(200).Content("status", "pending")
	if r := endpoint.requests(5)[4]; r.header.Get("Webhook-Id") != a.Get(deliveries+"/"+one).Get("eventUuid") {
		t.Errorf("after the retry: got %v", r.header)
	}
	pgtest.Eventually(t, "all are delivered", func() bool {
		return len(listOf(a.Get(deliveries+"?status=delivered").Want(200))) == 4
	})
	a.Post(path+"/"+id+"/replay", `{"from": "2020-01-01T00:00:00Z"}`).Want(200).Content("deliveries", 4.0)
	endpoint.requests(9)

	// A pause, and what happened meanwhile.
	a.Put(path+"/"+id, `{"paused": true}`).Want(200).Content("paused", true).Content("pauseReason", "member")
	a.Post(path+"/"+id+"/test", "").Want(409).Code("paused")
	execSQL(a, `insert into orders values (3, 'new', 30)`)
	a.Put(path+"/"+id, `{"paused": false}`).Want(200).Content("paused", false)
	if r := endpoint.requests(10)[9]; r.event.Type != "socle.row.inserted.v1" {
		t.Errorf("after the pause: got %s", r.body)
	}

	a.Delete(path+"/"+id).Want(200).Content("name", "orders")
	a.Get(path + "/" + id).Want(404)
}

func TestWebhookFaults(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/webhooks"
	createHookTable(a)
	id := a.Post(path, `{"name": "one", "endpoint": "https://example.com/"}`).Want(201).Get("uuid").(string)

	a.Post(path, `{"name": "one", "endpoint": "https://example.com/"}`).Want(409).Field("name")
	for field, body := range map[string]string{
		"endpoint": `"endpoint": "ftp://example.com/"`,
		"events":   `"endpoint": "https://example.com/", "events": ["socle.unknown.v1"]`,
		"tables":   `"endpoint": "https://example.com/", "tables": [{"table": "absent"}]`,
	} {
		a.Post(path, `{"name": "two", `+body+`}`).Want(422).Field(field)
	}
	for _, table := range []string{`{"schema": "auth", "table": "users"}`, `{"table": "orders", "filter": "x=eq.1"}`,
		`{"table": "orders", "filter": "total=gt.x"}`, `{"table": "orders", "filter": "total"}`} {
		a.Put(path+"/"+id, `{"tables": [`+table+`]}`).Want(422).Field("tables")
	}
	for _, header := range []string{`"Host": "x"`, `"webhook-id": "x"`, `"a b": "x"`, `"x": "a\nb"`} {
		a.Put(path+"/"+id, `{"headers": {`+header+`}}`).Want(422).Field("headers")
	}
	a.Put(path+"/"+id, `{"name": "renamed"}`).Want(200).Content("name", "renamed").
		Content("endpoint", "https://example.com/")
	a.Get(path + "?sort=url").Want(400).Field("sort")
	a.Get(path+"?sort=name").Want(200).Content("0.name", "renamed")
	a.Get(path + "/" + id + "/deliveries?cursor=-").Want(400).Field("cursor")
	a.Get(path + "/" + id + "/deliveries?from=yesterday").Want(400).Field("from")
	a.Post(path+"/"+id+"/replay", `{"from": "yesterday"}`).Want(422).Field("from")

	for i := range 19 {
		a.Post(path, `{"name": "more `+string(rune('a'+i))+`", "endpoint": "https://example.com/"}`).Want(201)
	}
	a.Post(path, `{"name": "too many", "endpoint": "https://example.com/"}`).Want(422).Code("quota_exceeded")
}

// createWebhook creates a webhook with a delivery, and returns their names in paths. It makes room
// for them first.
func createWebhook(a *apitest.API, n string) map[string]string {
	path := "/projects/" + a.Project + "/webhooks"
	if all := values(a.Get(path+"?limit=100").Want(200), "uuid"); len(all) > 10 {
		for _, id := range all {
			a.Delete(path + "/" + id).Want(200)
		}
	}

	id := a.Create(path, `{"name": "to go `+n+`", "endpoint": "https://example.com/"}`)
	return map[string]string{"webhookUUID": id, "deliveryUUID": a.Create(path+"/"+id+"/test", "")}
}

// TestWebhookFacts: a webhook gets the facts of the platform, by whatever way they come.
func TestWebhookFacts(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	e := newHookEndpoint(t)
	var types []string
	for _, f := range event.Facts {
		if f.Name != event.QuotaNear {
			types = append(types, f.Name)
		}
	}
	text, err := json.Marshal(types)
	if err != nil {
		t.Fatal(err)
	}
	project := "/projects/" + a.Project
	a.Post(project+"/webhooks", `{"name": "facts", "endpoint": "`+e.URL+`", "events": `+string(text)+`}`).Want(201)

	// Files, by the API of the platform and by that of applications.
	container := a.Create("/containers", `{"name": "photos"}`)
	upload(a, container, "a.txt", "hello").Want(201)
	key := "apikey: " + a.Post(project+"/keys", `{"name": "app", "kind": "secret"}`).Want(201).Metadata("key").(string)
	app := a.Anonymous()
	app.Send("POST", project+"/storage/v1/object/photos/b.txt", "world", key, "Content-Type: text/plain").Want(200)
	app.Send("PUT", project+"/storage/v1/object/photos/b.txt", "again", key, "Content-Type: text/plain").Want(200)
	app.Send("POST", project+"/storage/v1/object/move", `{"bucketId": "photos", "sourceKey": "a.txt", "destinationKey": "c.txt"}`,
		key, "Content-Type: application/json").Want(200)
	app.Send("DELETE", project+"/storage/v1/object/photos/b.txt", "", key).Want(200)

	// A response that is completed later, and one at once.
	form := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	partial := a.Post(form.path+"/responses", `{"answers": {}, "partial": true}`).Want(201)
	a.Put(form.path+"/responses/"+partial.Get("uuid").(string),
		`{"token": "`+partial.Metadata("token").(string)+`"}`).Want(200)
	a.Post(form.path+"/responses", form.answers(`{"answers": {"name": "Ann"}}`)).Want(201)

	// Users, by the API and by SQL.
	created := app.Send("POST", project+"/auth/v1/admin/users",
		`{"email": "ann@example.com", "password": "correct horse battery", "email_confirm": true}`, key,
		"Content-Type: application/json")
	var user struct{ ID string }
	if err := json.Unmarshal(created.Body, &user); err != nil || user.ID == "" {
		t.Fatalf("got %s", created.Body)
	}
	app.Send("POST", project+"/auth/v1/token?grant_type=password", `{"email": "ann@example.com", "password": "correct horse battery"}`,
		key, "Content-Type: application/json").Want(200)
	a.Delete(project + "/end-users/" + user.ID).Want(200)
	execSQL(a, `insert into auth.users (id, email) values (gen_random_uuid(), 'bob@example.com')`)

	a.Post("/migrations", migrationsBody(t, "", "create table public.made (id int)")).Want(200)

	// A backup with its proof. Tests of backups have the failures, package webhook the quota.
	a.Create("/backups", `{}`)

	counts := map[string]int{}
	for _, r := range e.requests(14) {
		counts[r.event.Type]++
	}
	want := map[string]int{"socle.file.stored.v1": 3, "socle.file.moved.v1": 1, "socle.file.deleted.v1": 1,
		"socle.form.submitted.v1": 2, "socle.user.created.v1": 2, "socle.user.signed_in.v1": 1,
		"socle.user.deleted.v1": 1, "socle.migration.applied.v1": 1,
		"socle.backup.completed.v1": 1, "socle.backup.proven.v1": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
}

// TestReplayOfLog: a webhook gets what was in the log before it existed, and what it had once more.
func TestReplayOfLog(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	first, later := newHookEndpoint(t), newHookEndpoint(t)
	createHookTable(a)
	path := "/projects/" + a.Project + "/webhooks"
	firstPath := path + "/" + a.Create(path,
		`{"name": "first", "endpoint": "`+first.URL+`", "tables": [{"table": "orders"}]}`)
	execSQL(a, `insert into orders select n, 'new', n from generate_series(1, 3) n`)
	ids := map[string]bool{}
	for _, r := range first.requests(3) {
		ids[r.header.Get("Webhook-Id")] = true
	}

	laterPath := path + "/" + a.Create(path, `{"name": "later", "endpoint": "`+later.URL+`",
		"tables": [{"table": "orders", "filter": "total=gt.1"}]}`)
	const whole = `{"from": "2020-01-01T00:00:00Z", "source": "log"}`
	a.Post(laterPath+"/replay", whole).Want(200).Content("deliveries", 2.0).Content("next", nil).
		Content("incomplete", false)
	for _, r := range later.requests(2) {
		if !ids[r.header.Get("Webhook-Id")] || strings.Contains(r.body, `"id":1,`) {
			t.Errorf("got %s %s, want an event that the first one had", r.header.Get("Webhook-Id"), r.body)
		}
	}

	a.Post(firstPath+"/replay", `{"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z", "source": "log"}`).Want(200).
		Content("deliveries", 0.0)
	a.Post(firstPath+"/replay", whole).Want(200).Content("deliveries", 3.0)
	first.requests(6)

	// Cursors: one that is none, and that of another database.
	cursor := func(text string) string {
		return `{"from": "2020-01-01T00:00:00Z", "source": "log", "cursor": "` + base64.RawURLEncoding.EncodeToString([]byte(text)) + `"}`
	}
	a.Post(firstPath+"/replay", cursor("nonsense")).Want(400)
	a.Post(firstPath+"/replay", cursor("00000001-1 1:1:")).Want(409).Code("events_removed")
}

// TestWebhooksOfRestores: a restored project has its webhooks, paused and without deliveries; the
// same project can resume them, a copy needs a new secret first.
func TestWebhooksOfRestores(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	e := newHookEndpoint(t)
	createHookTable(a)
	path := "/projects/" + a.Project + "/webhooks"
	id := a.Create(path, `{"name": "orders", "endpoint": "`+e.URL+`", "tables": [{"table": "orders"}]}`)
	execSQL(a, `insert into orders values (1)`)
	e.requests(1)

	backup := a.Create("/backups", `{}`)
	completed := func(path string) map[string]any {
		t.Helper()

		var content map[string]any
		until(t, path+" is completed", func() bool {
			content = a.Get(path).Want(200).Get("").(map[string]any)
			return content["status"] == "completed"
		})
		return content
	}
	completed("/backups/" + backup)

	completed("/restores/" + a.Create("/backups/"+backup+"/restore", `{"target": "in_place"}`))
	a.Get(path+"/"+id).Want(200).Content("paused", true).Content("pauseReason", "restore").Content("pending", 0)
	execSQL(a, `insert into orders values (2)`)
	a.Put(path+"/"+id, `{"paused": false}`).Want(200)
	execSQL(a, `insert into orders values (3)`)
	if r := e.requests(2)[1]; !strings.Contains(r.body, `"id":3`) {
		t.Errorf("after the restore: got %s", r.body)
	}

	restore := completed("/restores/" + a.Create("/backups/"+backup+"/restore", `{"target": "new", "name": "copy"}`))
	path = "/projects/" + restore["projectUuid"].(string) + "/webhooks/" + id
	a.Put(path, `{"paused": false}`).Want(409).Code("secrets_lost")
	a.Post(path+"/secret", "").Want(200)
	a.Put(path, `{"paused": false}`).Want(200).Content("paused", false)
}
