package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// closeDatabase ends all sessions in a database and refuses new ones until open is called.
func closeDatabase(t *testing.T, a *apitest.API, database string) (open func()) {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), pgtest.Server().URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })

	run := func(sql string, args ...any) {
		t.Helper()

		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}

	name := pgx.Identifier{database}.Sanitize()
	run("alter database " + name + " allow_connections false")
	run("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1", database)

	return func() {
		t.Helper()

		run("alter database " + name + " allow_connections true")
	}
}

// specified are the operations that answer 500 where others answer 503.
var specified = []string{"createColumn", "createUser", "deleteFunction", "getBackup", "listFiles", "login",
	"renameTable", "updateContainer", "updateField", "updateUser"}

// wantUnavailable fails the test unless the response says that a database is away, when to try
// again, and no internal details.
func wantUnavailable(t *testing.T, id string, r *apitest.Reply) {
	t.Helper()

	status := 503
	if slices.Contains(specified, id) {
		status = 500
	}
	r.Code("unavailable")
	text := strings.ToLower(string(r.Body))
	if r.Status != status || r.Header.Get("Retry-After") == "" || strings.Contains(text, "socle_") ||
		strings.Contains(text, "sqlstate") || strings.Contains(text, "/") {
		t.Errorf("%s: got %d %s", id, r.Status, r.Body)
	}
}

// TestDatabasesGone closes the databases of a server one after the other.
func TestDatabasesGone(t *testing.T) {
	t.Parallel()

	f := populate(t, apitest.New(t))
	t.Run("project", func(t *testing.T) { projectDatabaseGone(t, f.withT(t)) })
	t.Run("platform", func(t *testing.T) { platformDatabaseGone(t, f.withT(t)) })
}

// projectDatabaseGone checks that an unreachable project database does not affect the platform and
// other projects.
func projectDatabaseGone(t *testing.T, f fixture) {
	a := f.API
	other := a.WithProject(a.CreateProject("other"))
	open := closeDatabase(t, a, a.DatabaseName())

	for _, c := range slices.Concat(f.calls(), f.formCalls(), f.visitorCalls(), f.fileCalls()) {
		if c.id != "getBackup" && c.id != "createBackup" { // read from the platform database
			wantUnavailable(t, c.id, c.send(a))
		}
	}

	wantUnavailable(t, "getStatistics", a.Get("/projects/"+a.Project+"/statistics"))
	wantUnavailable(t, "getProjectOpenAPI", a.Get("/projects/"+a.Project+"/openapi.json"))
	wantUnavailable(t, "lintProject", a.Get("/projects/"+a.Project+"/lint"))
	wantUnavailable(t, "readFile", a.Anonymous().Get(address(a, f.container, "a.txt")))
	a.Get("/projects/" + a.Project).Want(200)
	a.Get("/projects").Want(200)
	a.Get("/readyz?full=1").Want(200)
	other.CreateTable("unharmed")
	open()
	until(t, "the project answers again", func() bool { return a.Get("/tables").Status == 200 })
	a.Get("/tables/orders").Want(200)

	if got := query[int](t, a, "select count(*) from storage.files"); got != 1 {
		t.Errorf("got %d files, want 1", got)
	}
}

// platformDatabaseGone checks that every operation reports an unreachable platform database and
// recovers afterwards.
func platformDatabaseGone(t *testing.T, f fixture) {
	a := f.API
	renewal := refreshBody(a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200).
		Metadata("refreshToken"))

	resetting, confirming := createLink(t, a, account.PasswordReset), createLink(t, a, account.EmailChange)
	previewing := createLink(t, a, account.Invitation)

	url, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}

	backups := f.backupCalls()
	open := closeDatabase(t, a, url.Database)
	calls := slices.Concat(f.calls(), f.formCalls(), f.visitorCalls(), f.fileCalls(), backups)

	calls = append(calls,
		call{
			id:     "createUser",
			method: "POST",
			path:   "/users",
			body:   `{"username": "late", "email": "late@example.com", "password": "` + apitest.Password + `"}`,
		},
		call{
			id:     "login",
			method: "POST",
			path:   "/users/login",
			body:   `{"email": "` + a.Email + `", "password": "` + apitest.Password + `"}`,
		},
		call{id: "updateUser", method: "PUT", path: "/users/" + a.User, body: `{"bio": "late"}`},
		call{id: "getAccount", method: "GET", path: "/users/me"},
		call{id: "refreshSession", method: "POST", path: "/users/refresh", body: renewal},
		call{
			id:     "forgetPassword",
			method: "POST",
			path:   "/users/password/forgot",
			body:   `{"email": "` + a.Email + `"}`,
		},
		call{
			id:     "resetPassword",
			method: "POST",
			path:   "/users/password/reset",
			body:   resetBody(resetting, newPassword),
		},
		call{
			id:     "changeEmail",
			method: "POST",
			path:   "/users/me/email",
			body:   `{"email": "late@example.com", "password": "` + apitest.Password + `"}`,
		},
		call{id: "confirmEmail", method: "POST", path: "/users/email/confirm", body: `{"token": "` + confirming + `"}`},
		call{id: "deleteAccount", method: "DELETE", path: "/users/me", body: passwordBody},
		call{id: "deleteUser", method: "DELETE", path: "/users/" + apitest.MissingUUID},
		call{
			id:     "createToken",
			method: "POST",
			path:   "/tokens",
			body:   `{"name": "late", "role_id": 4, "expires_at": "` + tomorrow() + `"}`,
		},
		call{id: "listTokens", method: "GET", path: "/tokens"},
		call{id: "deleteToken", method: "DELETE", path: "/tokens/" + apitest.MissingUUID},
		call{id: "getSecondFactor", method: "GET", path: "/users/me/totp"},
		call{id: "createSecondFactor", method: "POST", path: "/users/me/totp", body: passwordBody},
		call{id: "confirmSecondFactor", method: "POST", path: "/users/me/totp/confirm", body: `{"code": "123456"}`},
		call{id: "deleteSecondFactor", method: "DELETE", path: "/users/me/totp", body: passwordBody},
		call{id: "logout", method: "POST", path: "/users/logout"},
		call{id: "listSessions", method: "GET", path: "/sessions"},
		call{id: "deleteSession", method: "DELETE", path: "/sessions/" + apitest.MissingUUID},
		call{id: "deleteOtherSessions", method: "DELETE", path: "/sessions"},
		call{id: "createProject", method: "POST", path: "/projects", body: `{"name": "Late"}`},
		call{id: "listProjects", method: "GET", path: "/projects"},
		call{id: "getProject", method: "GET", path: "/projects/" + a.Project},
		call{id: "updateProject", method: "PUT", path: "/projects/" + a.Project, body: `{"name": "Late"}`},
		call{id: "deleteProject", method: "DELETE", path: "/projects/" + a.Project},
		call{id: "restoreProject", method: "POST", path: "/projects/" + a.Project + "/restore"},
		call{id: "pauseProject", method: "POST", path: "/projects/" + a.Project + "/pause"},
		call{id: "resumeProject", method: "POST", path: "/projects/" + a.Project + "/resume"},
		call{id: "listRequests", method: "GET", path: "/projects/" + a.Project + "/requests"},
		call{id: "explainRequest", method: "GET",
			path: "/projects/" + a.Project + "/requests/" + apitest.MissingUUID + "/explanation"},
		call{id: "getProjectOpenAPI", method: "GET", path: "/projects/" + a.Project + "/openapi.json"},
		call{id: "getStatistics", method: "GET", path: "/projects/" + a.Project + "/statistics"},
		call{id: "listRequestSeries", method: "GET", path: "/projects/" + a.Project + "/request-series"},
		call{id: "getRealtimeActivity", method: "GET", path: "/projects/" + a.Project + "/realtime-activity"},
		call{id: "getRealtimeLimits", method: "GET", path: "/projects/" + a.Project + "/realtime-limits"},
		call{id: "updateRealtimeLimits", method: "PUT", path: "/projects/" + a.Project + "/realtime-limits",
			body: `{"sockets": 500}`},
		call{id: "createSavedQuery", method: "POST", path: "/projects/" + a.Project + "/saved-queries",
			body: `{"name": "late", "query": "select 1"}`},
		call{id: "listSavedQueries", method: "GET", path: "/projects/" + a.Project + "/saved-queries"},
		call{id: "updateSavedQuery", method: "PUT",
			path: "/projects/" + a.Project + "/saved-queries/" + apitest.MissingUUID, body: `{"query": "select 1"}`},
		call{id: "deleteSavedQuery", method: "DELETE",
			path: "/projects/" + a.Project + "/saved-queries/" + apitest.MissingUUID},
		call{
			id:     "createKey",
			method: "POST",
			path:   "/projects/" + a.Project + "/keys",
			body:   `{"name": "late", "kind": "secret"}`,
		},
		call{id: "listKeys", method: "GET", path: "/projects/" + a.Project + "/keys"},
		call{id: "deleteKey", method: "DELETE", path: "/projects/" + a.Project + "/keys/" + apitest.MissingUUID},
		call{id: "createS3Key", method: "POST", path: "/projects/" + a.Project + "/s3-keys", body: `{"name": "late"}`},
		call{id: "listS3Keys", method: "GET", path: "/projects/" + a.Project + "/s3-keys"},
		call{id: "deleteS3Key", method: "DELETE", path: "/projects/" + a.Project + "/s3-keys/" + apitest.MissingUUID},
		call{id: "deployEdgeFunction", method: "PUT", path: "/projects/" + a.Project + "/edge-functions/late",
			body: `{"code": "Deno.serve(() => new Response());"}`},
		call{id: "listEdgeFunctions", method: "GET", path: "/projects/" + a.Project + "/edge-functions"},
		call{id: "listEdgeFunctionVersions", method: "GET",
			path: "/projects/" + a.Project + "/edge-functions/late/versions"},
		call{id: "updateEdgeFunction", method: "PUT", path: "/projects/" + a.Project + "/edge-functions/late/settings",
			body: `{"verify_jwt": false}`},
		call{id: "deleteEdgeFunction", method: "DELETE", path: "/projects/" + a.Project + "/edge-functions/late"},
		call{id: "listEdgeFunctionLog", method: "GET", path: "/projects/" + a.Project + "/edge-function-log"},
		call{id: "setEdgeFunctionSecret", method: "PUT", path: "/projects/" + a.Project + "/edge-function-secrets/LATE",
			body: `{"value": "s3cret"}`},
		call{id: "listEdgeFunctionSecrets", method: "GET", path: "/projects/" + a.Project + "/edge-function-secrets"},
		call{id: "getEdgeFunctionLimits", method: "GET", path: "/projects/" + a.Project + "/edge-function-limits"},
		call{id: "updateEdgeFunctionLimits", method: "PUT", path: "/projects/" + a.Project + "/edge-function-limits",
			body: `{"memory_mb": 512}`},
		call{id: "listEdgeFunctionMetrics", method: "GET", path: "/projects/" + a.Project + "/edge-function-metrics"},
		call{id: "deleteEdgeFunctionSecret", method: "DELETE",
			path: "/projects/" + a.Project + "/edge-function-secrets/LATE"},
		call{id: "createVaultSecret", method: "POST", path: "/projects/" + a.Project + "/vault-secrets",
			body: `{"name": "late", "secret": "s3cret"}`},
		call{id: "listVaultSecrets", method: "GET", path: "/projects/" + a.Project + "/vault-secrets"},
		call{id: "updateVaultSecret", method: "PUT", body: `{"secret": "s3cret"}`,
			path: "/projects/" + a.Project + "/vault-secrets/" + apitest.MissingUUID},
		call{id: "deleteVaultSecret", method: "DELETE",
			path: "/projects/" + a.Project + "/vault-secrets/" + apitest.MissingUUID},
		call{id: "createSchedule", method: "POST", path: "/projects/" + a.Project + "/schedules",
			body: `{"name": "late", "cron": "@yearly", "command": "select 1"}`},
		call{id: "listSchedules", method: "GET", path: "/projects/" + a.Project + "/schedules"},
		call{id: "getSchedule", method: "GET", path: "/projects/" + a.Project + "/schedules/late"},
		call{id: "updateSchedule", method: "PUT", path: "/projects/" + a.Project + "/schedules/late",
			body: `{"active": false}`},
		call{id: "deleteSchedule", method: "DELETE", path: "/projects/" + a.Project + "/schedules/late"},
		call{id: "runSchedule", method: "POST", path: "/projects/" + a.Project + "/schedules/late/run"},
		call{id: "listScheduleRuns", method: "GET", path: "/projects/" + a.Project + "/schedules/late/runs"},
		call{id: "connectDatabase", method: "GET", path: tunnelPath(a)},
		call{
			id:     "createDatabaseCredential",
			method: "POST",
			path:   "/projects/" + a.Project + "/database-credentials",
			body:   `{"name": "late", "access": "owner"}`,
		},
		call{id: "listDatabaseCredentials", method: "GET", path: "/projects/" + a.Project + "/database-credentials"},
		call{
			id:     "deleteDatabaseCredential",
			method: "DELETE",
			path:   "/projects/" + a.Project + "/database-credentials/" + apitest.MissingUUID,
		},
		call{id: "getTypes", method: "GET", path: "/projects/" + a.Project + "/types"},
		call{id: "listAudit", method: "GET", path: "/projects/" + a.Project + "/audit"},
		call{id: "getJWTSecret", method: "GET", path: "/projects/" + a.Project + "/jwt-secret"},
		call{id: "lintProject", method: "GET", path: "/projects/" + a.Project + "/lint"},
		call{id: "getDefaultPrivileges", method: "GET", path: "/projects/" + a.Project + "/default-privileges"},
		call{
			id:     "updateDefaultPrivileges",
			method: "PUT",
			path:   "/projects/" + a.Project + "/default-privileges",
			body:   `{"mode": "closed"}`,
		},
		call{
			id:     "createJWTKey",
			method: "POST",
			path:   "/projects/" + a.Project + "/jwt-keys",
			body:   rights["createJWTKey"].body,
		},
		call{id: "listJWTKeys", method: "GET", path: "/projects/" + a.Project + "/jwt-keys"},
		call{id: "deleteJWTKey", method: "DELETE", path: "/projects/" + a.Project + "/jwt-keys/" + apitest.MissingUUID},
		call{id: "getRestSettings", method: "GET", path: "/projects/" + a.Project + "/rest-settings"},
		call{
			id:     "updateRestSettings",
			method: "PUT",
			path:   "/projects/" + a.Project + "/rest-settings",
			body:   `{"schemas": ["public"]}`,
		},
		call{id: "getBackupSchedule", method: "GET", path: "/projects/" + a.Project + "/backup-schedule"},
		call{
			id:     "updateBackupSchedule",
			method: "PUT",
			path:   "/projects/" + a.Project + "/backup-schedule",
			body:   `{"cron": "0 3 * * *"}`,
		},
		call{id: "deleteBackupSchedule", method: "DELETE", path: "/projects/" + a.Project + "/backup-schedule"},
		call{id: "updateQuota", method: "PUT", path: "/projects/" + a.Project + "/quota", body: `{"max_files": 1}`},
		call{id: "readFile", method: "GET", path: address(a, f.container, "a.txt")})

	calls = append(calls, endUserCalls(a)...)
	calls = append(calls, organizationCalls(a)...)
	calls = append(calls, call{
		id:     "previewInvitation",
		method: "GET",
		path:   "/invitations/preview?token=" + previewing,
	})
	for _, c := range calls {
		wantUnavailable(t, c.id, c.send(a))
	}

	a.Get("/readyz?full=1").Want(503)
	a.Get("/healthz").Want(200)
	a.Anonymous().Get("/tables").Want(401) // needs no database
	open()
	until(t, "the platform answers again", func() bool {
		return a.Get("/readyz?full=1").Status == 200 && a.Get("/projects").Status == 200
	})

	a.Get("/projects/" + a.Project).Want(200)
	a.Post("/users/login", `{"email": "`+a.Email+`", "password": "`+apitest.Password+`"}`).Want(200)
}
