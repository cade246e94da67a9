package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/audit"
)

func TestListAudit(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	log := "/projects/" + a.Project + "/audit"
	admin := a.Member(3)
	admin.Put("/containers/"+f.container, `{"description": "of an admin", "isPublic": true, "odd": 1}`).Want(200)
	r := a.Get(log + "?order=desc&limit=1").Want(200)
	for member, want := range map[string]string{"action": "updateContainer", "actor": admin.User, "client": "127.0.0.1",
		"target": "/containers/" + f.container, "project": a.Project} {
		if got := r.Get("0." + member); got != want {
			t.Errorf("%s: got %v, want %q", member, got, want)
		}
	}

	if body := string(r.Body); strings.Contains(body, "of an admin") ||
		!strings.Contains(body, `"fields":["description"]`) {
		t.Errorf("got %s", body)
	}

	a.Get(log+"?action=createContainer").Want(200).Content("0.created", f.container)
	a.Get(log + "?actor=" + admin.User).Want(200).Total(1)
	name := r.Get("0.actorName").(string)
	if r.Get("0.actorEmail") == nil || r.Get("0.projectName") == nil || r.Get("0.organizationName") == nil {
		t.Errorf("names are missing: %s", r.Body)
	}
	a.Get(log+"?limit=1").Want(200).Content("0.action", "updateContainer") // newest first
	a.Get(log+"?actor="+strings.ToUpper(name)).Want(200).Total(1).Content("0.actor", admin.User)
	a.Get(log + "?actor=" + r.Get("0.actorEmail").(string)).Want(200).Total(1)
	a.Get(log + "?action=deleteEnum").Want(200).Total(0)
	for _, action := range audit.OtherActions {
		a.Get(log + "?action=" + action).Want(200).Total(0)
	}
	for filter, field := range map[string]string{"actor=x" + name: "actor", "action=creatTable": "action"} {
		refused := a.Get(log + "?" + filter).Want(400).Field(field)
		if text := string(refused.Body); !strings.Contains(text, "did you mean") {
			t.Errorf("%s: got %s, want the nearest", filter, text)
		}
	}
	a.Get(log + "?actor=nobody&log=platform").Want(400).Field("actor")
	a.Get(log + "?from=2999-01-01T00:00:00Z").Want(200).Total(0)
	a.Get(log + "?to=2999-01-01T00:00:00Z&action=createTable").Want(200).Total(1)
	a.Get(log+"?log=platform&order=asc").Want(200).Content("0.action", "createProject").Content("0.created", a.Project)
	a.Get(log + "?from=yesterday").Want(400)
	a.Get(log + "?log=other").Want(400)
	a.Member(4).Get(log).Want(403)
	a.OtherUser().Get(log).Want(404)
}

func TestListInstanceAudit(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	administrator := a.SignUp("first")
	user := a.SignUp("user")
	administrator.Get("/admin/audit?order=desc&limit=1").Want(200).Content("0.action", "createUser").
		Content("0.created", user.User)

	administrator.Get("/admin/audit?action=createUser").Want(200).Total(2)
	administrator.Get("/admin/audit?page=0").Want(400)
	user.Get("/admin/audit").Want(403)
}

// TestAuditOmitsRefusals checks that refused and rolled-back requests leave no audit entry.
func TestAuditOmitsRefusals(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/containers", `{"name": "once"}`).Want(201)
	before := query[int64](t, a, "select count(*) from "+apitest.AuditLog)
	a.Post("/containers", `{"name": "once"}`).Want(409)
	a.Post("/containers", `{"name": ""}`).Want(422)
	a.Get("/tables").Want(200)
	a.Put("/tables/absent/rename", `{"name": "other"}`).Want(400)

	if after := query[int64](t, a, "select count(*) from "+apitest.AuditLog); after != before {
		t.Errorf("got %d audit entries before and %d after", before, after)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	send := func(caller *apitest.API, key, body string) *apitest.Reply {
		return caller.Send("POST", "/forms", body, "Idempotency-Key: "+key)
	}

	first := send(a, "one", `{"name": "Once"}`).Want(201)
	repeated := send(a, "one", `{"name": "Once"}`).Want(201)
	if got, want := string(repeated.Body), string(first.Body); got != want ||
		repeated.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s, want %s", got, want)
	}

	send(a, "one", `{"name": "Other"}`).Want(422).Code("idempotency_key_reused")
	send(a, "two", `{"name": "Once"}`).Want(201)
	send(a.Member(4), "one", `{"name": "Theirs"}`).Want(201)
	send(a, "three", `{"name": ""}`).Want(422)
	send(a, "three", `{"name": "Mended"}`).Want(201)
	send(a, strings.Repeat("k", 256), `{"name": "Long"}`).Want(400)

	if got := query[int](t, a, "select count(*) from forms.forms"); got != 4 {
		t.Errorf("got %d forms, want 4", got)
	}

	a.Anonymous().Send("POST", "/forms", `{"name": "Once"}`, "Idempotency-Key: one").Want(401)
}

// TestIdempotencyKeyConcurrently checks that one of many equal requests is executed, and that the
// others get its response or a retry error.
func TestIdempotencyKeyConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	counts := concurrently(20, func(int) *apitest.Reply {
		return a.Send("POST", "/forms", `{"name": "Once"}`, "Idempotency-Key: same")
	})
	if counts[201]+counts[422] != 20 || counts[201] == 0 {
		t.Errorf("got %v", counts)
	}

	if got := query[int](t, a, "select count(*) from forms.forms"); got != 1 {
		t.Errorf("got %d forms, want 1", got)
	}
}

// TestStoredResponsesEncrypted checks that a stored response with a key is encrypted.
func TestStoredResponsesEncrypted(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	send := func() string {
		return a.Send("POST", "/projects/"+a.Project+"/keys", `{"name": "k", "kind": "secret"}`, "Idempotency-Key: k").
			Want(201).Metadata("key").(string)
	}

	key := send()
	if repeated := send(); repeated != key {
		t.Errorf("got %s, want %s", repeated, key)
	}

	a.Exec(
		`do $$ begin assert (select bool_and(position('` + key +
			`'::bytea in answer) = 0) from platform.idempotency); end $$`,
	)
}

func TestETag(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	tag := a.Get("/tables").Want(200).Header.Get("ETag")
	if r := a.Send("GET", "/tables", "", `If-None-Match: "other", W/`+tag).Want(304); len(r.Body) > 0 {
		t.Errorf("304 with a body %q", r.Body)
	}

	a.CreateTable("orders")
	a.Send("GET", "/tables", "", "If-None-Match: "+tag).Want(200)
	a.Send("PUT", "/tables/orders/rename", `{"name": "sales"}`, "If-Match: "+tag).Want(400)
}

func TestIfMatch(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := a.CreateProject("short-lived")
	path := "/projects/" + project
	stale := a.Get(path).Want(200).Header.Get("ETag")
	a.Exec(`update platform.projects set description = 'other' where uuid = $1`, project)
	a.Send("DELETE", path, "", "If-Match: "+stale).Want(412).Code("changed")

	// Weak ETags never match.
	a.Send("DELETE", path, "", `If-Match: W/`+a.Get(path).Want(200).Header.Get("ETag")).Want(412)
	a.Send("DELETE", path, "", `If-Match: "old", `+a.Get(path).Want(200).Header.Get("ETag")).Want(200)
	a.Send("DELETE", path, "", `If-Match: *`).Want(404)
}

// TestAuditIsChained checks that entries of changes on either login are chained soon, and that a
// list of the log never lacks them.
func TestAuditIsChained(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	a.Post("/containers", `{"name": "drawings"}`).Want(201)

	path := "/projects/" + a.Project + "/audit?action="
	a.Get(path + "createTable").Want(200).Total(1)
	a.Get(path + "createContainer").Want(200).Total(1)

	a.CreateTable("customers")
	until(t, "the entry is chained", func() bool {
		return query[int](t, a, `select count(*) from socle.audit where entry::jsonb ->> 'action' = 'createTable'`) == 2
	})
}
