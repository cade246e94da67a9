package api_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
)

// fixture is a project with one entity of every kind.
type fixture struct {
	*apitest.API
	t                                                                  *testing.T
	tableUUID, form, field, response, container, file, backup, restore string
	partial, token                                                     string // of a partial response
}

func populate(t *testing.T, a *apitest.API) fixture {
	t.Helper()

	a.DisableProofs()
	f := fixture{API: a, t: t}
	f.tableUUID = a.CreateTable("orders", "note text").Metadata("uuid").(string)
	a.Post("/functions/public",
		`{"name": "one", "language": "sql", "definition": "select 1", "return_type": "integer"}`).Want(201)

	addStructure(t, a)
	a.Post("/functions/public", stamp).Want(201)
	a.Post("/tables/orders/triggers", triggerBody("stamp")).Want(201)
	f.form = a.Create("/forms", `{"name": "Survey"}`)
	f.field = a.Create("/forms/"+f.form+"/fields", `{"label": "Name", "type": "text"}`)

	a.Put("/forms/"+f.form, `{"state": "open"}`).Want(200)
	f.response = a.Create("/forms/"+f.form+"/responses", `{"answers": {"`+f.field+`": "Ann"}}`)
	partial := a.Post("/forms/"+f.form+"/responses", `{"answers": {}, "partial": true}`).Want(201)
	f.partial, f.token = partial.Get("uuid").(string), partial.Metadata("token").(string)
	f.container = a.Create("/containers", `{"name": "reports"}`)
	f.file = upload(a, f.container, "a.txt", "hello").Want(201).Get("uuid").(string)
	f.backup = a.Create("/backups", `{}`)
	waitForBackup(t, a, f.backup).Content("status", "completed")
	f.restore = oldRestore(t, a, f.backup)

	return f
}

// call is a request that succeeds in a populated project.
type call struct {
	id, method, path, body string
	minRole                int // required role
}

// calls returns all operations in the project of X-Project.
func (f fixture) calls() []call {
	return append([]call{
		{"createTable", "POST", "/tables", `{"name": "more", "columns": [{"name": "id", "type": "integer"}]}`, 4},
		{"listTables", "GET", "/tables", "", 5},
		{"getTable", "GET", "/tables/orders", "", 5},
		{"renameTable", "PUT", "/tables/" + f.tableUUID + "/rename", `{"name": "orders"}`, 4},
		{"listColumns", "GET", "/tables/orders/columns", "", 5},
		{"createColumn", "POST", "/tables/orders/columns", `{"name": "more", "type": "text"}`, 4},
		{"createFunction", "POST", "/functions/public",
			`{"name": "two", "language": "sql", "definition": "select 2", "return_type": "integer"}`, 4},
		{"listFunctions", "GET", "/functions", "", 5},
		{"getFunction", "GET", "/functions/public/one", "", 5},
		{"listLanguages", "GET", "/languages", "", 5},
		{"createTrigger", "POST", "/tables/orders/triggers", triggerBody("more"), 4},
		{"listTriggers", "GET", "/tables/orders/triggers", "", 5},
		{"updateTrigger", "PUT", "/tables/orders/triggers/stamp", `{"enabled": true}`, 4},
		{"deleteTrigger", "DELETE", "/tables/orders/triggers/stamp", "", 4},
		{"deleteFunction", "DELETE", "/functions/public/one", "", 4},
		{"exportTable", "GET", "/tables/orders/export", "", 4},
		{"importTable", "POST", "/tables/import",
			part(`form-data; name="file"; filename="imported.csv"`, "", "id\n1\n") + end, 4},
		{"importRows", "POST", "/tables/orders/import",
			part(`form-data; name="file"; filename="rows.csv"`, "", "id\n1\n") + end, 4},
		{"runSQL", "POST", "/sql", `{"query": "select 1"}`, 4},
		{"listQueries", "GET", "/sql/history", "", 4},
		{"listMigrations", "GET", "/migrations", "", 5},
		{"applyMigrations", "POST", "/migrations", `{"migrations": []}`, 4},
		{"diffMigrations", "POST", "/migrations/diff", `{"migrations": []}`, 4},
		{"createForm", "POST", "/forms", `{"name": "More"}`, 4},
		{"listForms", "GET", "/forms", "", 5},
		{"createContainer", "POST", "/containers", `{"name": "more"}`, 4},
		{"updateContainer", "PUT", "/containers/" + f.container, `{"description": "more"}`, 4},
		{"listFiles", "GET", "/containers/" + f.container + "/files", "", 5},
		{"createFile", "POST", "/containers/" + f.container + "/files", multipartOf("b.txt", "more"), 4},
		{"downloadFile", "GET", "/containers/" + f.container + "/files/" + f.file + "/download", "", 5},
		{"createBackup", "POST", "/backups", `{}`, 4},
		{"getBackup", "GET", "/backups/" + f.backup, "", 5},
	}, f.structureCalls()...)
}

// backupCalls returns the operations on backups that have no other effect on the project, or end
// its running work.
func (f fixture) backupCalls() []call {
	return []call{
		{"listBackups", "GET", "/backups", "", 5},
		{"getRestore", "GET", "/restores/" + f.restore, "", 5},
		{"restoreBackup", "POST", "/backups/" + f.backup + "/restore", `{"target": "in_place"}`, 2},
		{"downloadBackup", "POST", "/backups/" + f.backup + "/download", `{"encryption": "none"}`, 3},
		{"importBackup", "POST", "/backups/import", "hello", 3},
		{"verifyBackup", "POST", "/backups/" + f.backup + "/verify", "", 4},
		{"getBackupRecipient", "GET", "/backups/recipient", "", 5},
		{"listRestores", "GET", "/restores", "", 5},
		{"undoRestore", "POST", "/restores/" + f.restore + "/undo", "", 2},
		{"deleteRestore", "DELETE", "/restores/" + f.restore, "", 2},
		{"deleteBackup", "DELETE", "/backups/" + oldBackup(f.t, f.API), "", 3},
	}
}

// formCalls returns the operations on forms.
func (f fixture) formCalls() []call {
	return []call{
		{"orderFields", "PUT", "/forms/" + f.form + "/fields/order", `{"fields": ["` + f.field + `"]}`, 4},
		{"createField", "POST", "/forms/" + f.form + "/fields", `{"label": "More", "type": "text"}`, 4},
		{"updateField", "PUT", "/forms/" + f.form + "/fields/" + f.field, `{"label": "Other", "type": "text"}`, 4},
		{"getForm", "GET", "/forms/" + f.form, "", 5},
		{"updateForm", "PUT", "/forms/" + f.form, `{"description": "more"}`, 4},
		{"linkForm", "POST", "/forms/" + f.form + "/link", "", 4},
		{"unlinkForm", "DELETE", "/forms/" + f.form + "/link", "", 4},
		{"listFields", "GET", "/forms/" + f.form + "/fields", "", 5},
		{"getField", "GET", "/forms/" + f.form + "/fields/" + f.field, "", 5},
		{"getPublicForm", "GET", "/forms/" + f.form + "/public", "", 5},
		{"listResponses", "GET", "/forms/" + f.form + "/responses", "", 5},
		{"getResponse", "GET", "/forms/" + f.form + "/responses/" + f.response, "", 5},
		{"exportResponses", "GET", "/forms/" + f.form + "/responses/export", "", 5},
		{"getFormStatistics", "GET", "/forms/" + f.form + "/statistics", "", 5},
		{"deleteResponse", "DELETE", "/forms/" + f.form + "/responses/" + f.response, "", 4},
		{"deleteField", "DELETE", "/forms/" + f.form + "/fields/" + f.field, "", 4},
		{"deleteForm", "DELETE", "/forms/" + f.form + "?force=true", "", 4},
	}
}

// visitorCalls returns the changes that a visitor of a form can make.
func (f fixture) visitorCalls() []call {
	return []call{
		{"createResponse", "POST", "/forms/" + f.form + "/responses", `{"answers": {}}`, 5},
		{"updateResponse", "PUT", "/forms/" + f.form + "/responses/" + f.partial,
			`{"token": "` + f.token + `", "partial": true}`, 5},
	}
}

// uploads are the operations with a file as input.
var uploads = []string{"createFile", "importTable", "importRows"}

// send sends the call.
func (c call) send(a *apitest.API, headers ...string) *apitest.Reply {
	if slices.Contains(uploads, c.id) {
		headers = append(headers, "Content-Type: multipart/form-data; boundary="+boundary)
	}
	return a.Send(c.method, c.path, c.body, headers...)
}

// databaseState returns the whole content of the project's database as text.
func databaseState(t *testing.T, a *apitest.API) string {
	t.Helper()

	return query[string](t, a, `
		select jsonb_pretty(jsonb_build_object(
			'containers', (select jsonb_agg(c order by uuid) from storage.containers c),
			'files', (select jsonb_agg(f order by uuid) from storage.files f),
			'uploads', (select jsonb_agg(u order by blob_uuid) from storage.uploads u),
			'forms', (select jsonb_agg(f order by uuid) from forms.forms f),
			'fields', (select jsonb_agg(f order by uuid) from forms.fields f),
			'responses', (select jsonb_agg(r order by uuid) from forms.responses r),
			'functions', (select jsonb_agg(p.oid::regprocedure::text order by p.oid) from pg_proc p
				where p.pronamespace = 'public'::regnamespace),
			'columns', (select jsonb_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) order by c.oid, a.attnum)
				from pg_attribute a join pg_class c on c.oid = a.attrelid
				where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0)))`)
}

// query returns the value of a query on the project's database, bypassing the server.
func query[T any](t *testing.T, a *apitest.API, sql string, args ...any) T {
	t.Helper()

	rows, err := a.ProjectPool().Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return v
}

// execute runs a statement on the project's database, bypassing the server.
func execute(t *testing.T, a *apitest.API, sql string) {
	t.Helper()

	conn, err := a.ProjectPool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if err := pg.Reset(t.Context(), conn.Conn()); err != nil {
		t.Fatal(err)
	}
}

// asOwner runs a statement on the project's database as its owner.
func asOwner(t *testing.T, a *apitest.API, sql string) {
	t.Helper()

	execute(t, a, "set role "+pgx.Identifier{a.DatabaseName() + "_owner"}.Sanitize()+"; "+sql)
}

// wantEqual fails the test unless two responses are equal except for request IDs.
func wantEqual(t *testing.T, got, want *apitest.Reply) {
	t.Helper()

	if diff := cmp.Diff(withoutRequestID(want), withoutRequestID(got)); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

func withoutRequestID(r *apitest.Reply) string {
	return fmt.Sprint(r.Status, " ", string(requestID.ReplaceAll(r.Body, nil)))
}

// concurrently sends n requests concurrently, and again while the server is overloaded, and returns
// the number of responses by status.
func concurrently(n int, send func(i int) *apitest.Reply) map[int]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	counts := map[int]int{}
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			r := send(i)
			for tries := 0; overloaded(r) && tries < maxTries; tries++ {
				r = send(i)
			}

			mu.Lock()
			defer mu.Unlock()

			counts[r.Status]++
		})
	}

	close(start)
	wg.Wait()

	return counts
}

// maxTries is the maximum number of times that a client repeats a request to an overloaded server.
const maxTries = 10

// overloaded reports whether a request waited too long for a password hash, a connection, a lock or
// a backup, as happens on a busy machine. The client should retry.
func overloaded(r *apitest.Reply) bool {
	switch r.Status {
	case http.StatusTooManyRequests:
		return strings.Contains(string(r.Body), "Too many password checks are in progress")
	case http.StatusInternalServerError:
		return r.Metadata("code") == "unavailable"
	case http.StatusConflict:
		return r.Metadata("code") == "backup_under_way"
	}

	return false
}

// wantCounts fails the test unless the numbers of responses by status are equal.
func wantCounts(t *testing.T, got, want map[int]int) {
	t.Helper()

	if !maps.Equal(got, want) {
		t.Errorf("got statuses %v, want %v", got, want)
	}
}

// until polls a condition until it holds.
func until(t *testing.T, description string, condition func() bool) {
	t.Helper()

	apitest.Until(t, description, condition)
}

// blobs returns the files in [apitest.API.BlobDir], unfinished ones included.
func blobs(t *testing.T, a *apitest.API) []string {
	t.Helper()

	var found []string
	err := filepath.WalkDir(a.BlobDir(), func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // an upload ended during the walk
			return nil
		}

		if err == nil && !d.IsDir() {
			found = append(found, name)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// values returns a member of each item of the content, as text.
func values(r *apitest.Reply, member string) []string {
	var all []string
	for _, item := range r.Get("").([]any) {
		all = append(all, fmt.Sprint(item.(map[string]any)[member]))
	}

	return all
}

// quoted returns text as a JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}

	return string(b)
}

// wantStatuses fails the test if a response has a status that is not allowed.
func wantStatuses(t *testing.T, got map[int]int, allowed ...int) {
	t.Helper()

	for status, n := range got {
		if !slices.Contains(allowed, status) {
			t.Errorf("got %d responses of status %d, want only %v", n, status, allowed)
		}
	}
}
