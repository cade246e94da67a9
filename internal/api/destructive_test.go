package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// unprotected maps the DELETE operations in a project without a preceding backup to the reason.
var unprotected = map[string]string{
	"deleteProject": "it can be restored for days, and purge, which takes the backups along, is refused",
	"deleteBackup":  "a backup is no content of the project", "deleteBackupSchedule": "a setting",
	"deleteRestore": "what it lets go of is a copy that was kept for safety, and in no backup of the project as it is",
	"deleteFile":    "a single thing", "deleteResponse": "a single thing", "deleteField": "the answers stay",
	"unlinkForm": "a setting", "deleteKey": "a setting", "deleteJWTKey": "a setting",
	"deleteS3Key": "a setting", "deleteVaultSecret": "a setting", "deleteSchedule": "a setting",
	"deleteWebhook":      "a setting",
	"deleteEdgeFunction": "code, which is deployed again", "deleteEdgeFunctionSecret": "a setting",
	"deleteDatabaseCredential": "a setting", "deleteEndUser": "one user", "deleteEndUserSessions": "sessions",
	"deleteEndUserSession": "a session", "deleteEndUserFactor": "a factor", "deleteEndUserPasskey": "a passkey",
	"deleteSavedQuery": "a text",

	"deleteConstraint": "holds nothing", "deleteIndex": "holds nothing", "deletePolicy": "holds nothing",
	"deleteTrigger": "holds nothing", "deleteEnum": "holds nothing, and none that a column has is deleted",
	"deleteFunction": "holds nothing", "deleteExtension": "holds nothing, and none that a column has is deleted",
}

// destructive returns requests that destroy data of a populated project.
func destructive(t *testing.T, a *apitest.API, f fixture) []call {
	t.Helper()

	asOwner(t, a, "alter table public.orders add column amount numeric default 1.5, add column spare text")
	a.CreateTable("to_delete")

	return []call{
		{"updateColumn", "PUT", "/tables/orders/columns/amount", `{"type": "integer"}`, 4},
		{"deleteColumn", "DELETE", "/tables/orders/columns/spare", "", 4},
		{"deleteTable", "DELETE", "/tables/to_delete", "", 4},
		{"runSQL", "POST", "/sql", `{"query": "delete from public.orders", "read_only": false}`, 4},
		{"applyMigrations", "POST", "/migrations",
			`{"migrations": [{"version": "20261123101500", "name": "one", "sql": "select 1"}]}`, 4},
		{"deleteFolder", "DELETE", "/containers/" + f.container + "/folders/folder", "", 4},
		{"deleteForm", "DELETE", "/forms/" + f.form + "?force=true", "", 4},
		{"deleteContainer", "DELETE", "/containers/" + f.container + "?force=true", "", 4},
	}
}

// setBackupFirst turns backups before destructive operations on or off.
func setBackupFirst(t *testing.T, a *apitest.API, on string) {
	t.Helper()

	a.Put("/projects/"+a.Project, `{"backup_before_destructive": `+on+`}`).Want(200)
}

// backupsBefore returns the number of the project's backups before an operation.
func backupsBefore(t *testing.T, a *apitest.API, operation string) int {
	t.Helper()

	return apitest.Value[int](a, "select count(*) from platform.backups where project_uuid = $1 and made_before = $2",
		a.Project, operation)
}

// TestDestructiveIsDeclared checks that each DELETE operation in a project declares whether it is
// destructive.
func TestDestructiveIsDeclared(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	var declared, tested []string

	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Destructive bool `json:"x-destructive"`
		}
	}
	if err := json.Unmarshal(a.Get("/openapi.json").Want(200).Body, &document); err != nil {
		t.Fatal(err)
	}

	for path, methods := range document.Paths {
		for method, o := range methods {
			if o.Destructive {
				declared = append(declared, o.OperationID)
			}

			inProject := !slices.Contains([]string{"admin", "organizations", "sessions", "tokens", "users"},
				strings.Split(path, "/")[1])
			if _, ok := unprotected[o.OperationID]; method == "delete" && inProject && ok == o.Destructive {
				t.Errorf("%s: neither declared destructive nor listed as unprotected, or both", o.OperationID)
			}
		}
	}

	for _, c := range destructive(t, a, populate(t, a)) {
		tested = append(tested, c.id)
	}

	slices.Sort(declared)
	slices.Sort(tested)

	if !slices.Equal(declared, tested) {
		t.Errorf("got declared %q, tested %q", declared, tested)
	}
}

// TestBackupFirst calls all destructive operations. Without a completed backup, none changes
// anything.
func TestBackupFirst(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	f := populate(t, a)
	upload(a, f.container, "folder/b.txt", "hello").Want(201)

	calls := destructive(t, a, f)
	asOwner(t, a, "insert into public.orders (id, note) values (1, 'kept')")
	a.Get("/projects/"+a.Project).Want(200).Content("backupBeforeDestructive", false)
	setBackupFirst(t, a, "true")
	a.Get("/projects/"+a.Project).Want(200).Content("backupBeforeDestructive", true)

	before := databaseState(t, a) + query[string](t, a, "select string_agg(o::text, ' ') from public.orders o")
	backups := filepath.Join(a.Config.StorageDir(), "projects", a.Project, "backups")
	moved := backups + " that were there"
	if err := os.Rename(backups, moved); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(backups, nil, 0o600); err != nil { // a file in the place of the folder: backups fail
		t.Fatal(err)
	}

	for _, c := range calls {
		if r := c.send(a).Want(409).Code("backup_failed"); !strings.Contains(string(r.Body), "Nothing was changed") {
			t.Errorf("%s: got %s", c.id, r.Body)
		}
	}

	if after := databaseState(t, a) +
		query[string](t, a, "select string_agg(o::text, ' ') from public.orders o"); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}

	if err := os.Remove(backups); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(moved, backups); err != nil {
		t.Fatal(err)
	}

	// Requests without effect, refused requests and requests for other projects create no backup.
	created := apitest.Value[int](a, "select count(*) from platform.backups")
	a.Post("/sql", `{"query": "select 1"}`).Want(200)
	a.Put("/tables/orders/columns/amount", `{"comment": "rounded"}`).Want(200)
	a.Put("/tables/orders/columns/amount", `{"type": 1}`).Want(422)
	a.Delete("/tables/nowhere").Want(404)
	a.Delete("/containers/" + apitest.MissingUUID).Want(404)
	a.Send("DELETE", "/tables/to_delete", "", `If-Match: "of old"`).Want(412)
	a.Member(5).Delete("/tables/to_delete").Want(403)
	a.OtherUser().Delete("/tables/to_delete").Want(401)

	other := a.WithProject(a.CreateProject("other"))
	other.CreateTable("theirs")
	other.Delete("/tables/theirs").Want(200)

	if n := apitest.Value[int](a, "select count(*) from platform.backups"); n != created {
		t.Errorf("got %d backups, want none", n-created)
	}

	for _, c := range calls {
		n := backupsBefore(t, a, c.id)
		c.send(a).Want(200)

		if backupsBefore(t, a, c.id) != n+1 {
			t.Errorf("%s: no backup was made before it", c.id)
		}
	}

	last := apitest.Value[string](a,
		"select uuid::text from platform.backups where made_before = 'deleteTable' and status = 'completed'")
	a.Get("/backups/"+last).Want(200).Content("status", "completed")

	if before := a.Get("/backups/" + last).Want(200).Metadata("before"); before != "deleteTable" {
		t.Errorf("got madeBefore %v", before)
	}
	if n := apitest.Value[int](a, "select count(*) from platform.awaited_backups"); n != 0 {
		t.Errorf("got %d awaited backups, want none", n)
	}

	a.Delete("/projects/" + a.Project + "?purge=true").Want(409).Code("backup_first")
	a.Delete("/projects/" + a.Project).Want(200)
	a.Delete("/projects/" + a.Project + "?purge=true").Want(409).Code("backup_first")
	a.Post("/projects/"+a.Project+"/restore", "").Want(200)
	setBackupFirst(t, a, "false")
	a.Delete("/tables/orders").Want(200)
	a.Delete("/projects/" + a.Project + "?purge=true").Want(200)
}

// TestBackupFirstIsShared sends destructive requests while a backup is blocked: none has an effect.
// After its completion, that one backup is enough for all of them, whether they waited or retried.
func TestBackupFirstIsShared(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	for _, table := range []string{"held", "one", "two", "three", "four"} {
		a.CreateTable(table)
	}

	setBackupFirst(t, a, "true")
	holder := lockTables(t, a) // blocks pg_dump
	early := a.Create("/backups", `{}`)
	until(t, "a backup is running", func() bool {
		return a.Get("/backups/"+early).Want(200).Get("status") == "running"
	})

	a.Send("DELETE", "/tables/one", "", "Prefer: wait=0").Want(409).Code("backup_under_way")
	a.Get("/tables/one").Want(200)
	release(t, holder)
	waitForBackup(t, a, early)

	if n := backupsBefore(t, a, "deleteTable"); n != 0 {
		t.Fatalf("got %d backups in the meantime, want none", n)
	}

	holder = lockTables(t, a)

	for range 2 { // the second request waits for the same backup
		for _, table := range []string{"one", "two"} {
			a.Send("DELETE", "/tables/"+table, "", "Prefer: respond-async, wait=0").Want(409).Code("backup_under_way")
		}
	}

	id := apitest.Value[string](a, "select uuid::text from platform.backups where made_before = 'deleteTable'")
	release(t, holder)
	waitForBackup(t, a, id).Content("status", "completed")
	a.Send("DELETE", "/tables/one", "", "Prefer: wait=0").Want(200)

	if n := backupsBefore(t, a, "deleteTable"); n > 2 {
		t.Errorf("got %d backups for two repeated requests, want at most 2", n)
	}

	a.CreateTable("one") // a backup covers only the operations that waited for it
	wantCounts(t, concurrently(4, func(i int) *apitest.Reply {
		return a.Send("DELETE", "/tables/"+[]string{"one", "two", "three", "four"}[i], "", "Prefer: wait=25")
	}), map[int]int{200: 4})

	if n := backupsBefore(t, a, "deleteTable"); n > 5 {
		t.Errorf("got %d backups for six requests, want at most 5", n)
	}
	if got := query[int](t, a, "select count(*) from pg_tables where schemaname = 'public'"); got != 1 {
		t.Errorf("got %d tables, want 1", got)
	}

	wantCounts(t, concurrently(4, func(i int) *apitest.Reply {
		return a.Post("/sql", `{"query": "create table t`+[]string{"1", "2", "3", "4"}[i]+` ()", "read_only": false}`)
	}), map[int]int{200: 4})

	if n := backupsBefore(t, a, "runSQL"); n > 3 {
		t.Errorf("got %d backups for four concurrent requests, want at most 3", n)
	}
}

// lockTables blocks pg_dump on the project's tables until the transaction ends.
func lockTables(t *testing.T, a *apitest.API) pgx.Tx {
	t.Helper()

	tx, err := a.ConnectProject().Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "lock table public.held in access exclusive mode")
	}
	if err != nil {
		t.Fatal(err)
	}

	return tx
}

func release(t *testing.T, tx pgx.Tx) {
	t.Helper()

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
