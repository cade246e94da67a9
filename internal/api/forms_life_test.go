package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestListForms(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Get("/forms").Want(200).Content("", "[]")

	for _, name := range []string{"b", "a", "c"} {
		a.Create("/forms", `{"name": "`+name+`"}`)
	}

	r := a.Get("/forms").Want(200)
	if got := values(r, "name"); !slices.Equal(got, []string{"b", "a", "c"}) || fmt.Sprint(r.Metadata("total")) != "3" {
		t.Errorf("got %q of %v", got, r.Metadata("total"))
	}

	if got := values(a.Get("/forms?sort=name&order=desc&limit=2&page=2").Want(200), "name"); !slices.Equal(got,
		[]string{"a"}) {
		t.Errorf("got second page %q", got)
	}

	a.Get("/forms?sort=link").Want(400).Field("sort")
}

func TestUpdateForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "answers"}`)
	id := a.Post("/forms", `{"name": "Survey", "description": "Yearly"}`).Want(201).Content("state", "draft").
		Content("version", 1).
		Content("totalResponses", 0).Content("link", nil).Get("uuid").(string)

	path := "/forms/" + id
	a = a.WithProject("")
	a.Put(path,
		`{"name": "Poll", "state": "open", "opens_at": "2026-01-01T00:00:00+01:00", "closes_at": "2099-01-01T00:00:00Z", "max_responses": 3,
		"success_message": "Thank you\n<b>", "honeypot": "web-site_2", "container_uuid": "`+c+`"}`).Want(200).
		Content("name", "Poll").Content("state", "open").
		Content("opensAt", "2025-12-31T23:00:00.000000Z").Content("closesAt", "2099-01-01T00:00:00.000000Z").
		Content("maxResponses", 3).
		Content("successMessage", "Thank you\n<b>").Content("honeypot", "web-site_2").Content("containerUuid", c).
		Content("description", "Yearly")

	a.Put(
		path,
		`{"opens_at": null, "closes_at": "", "max_responses": null, "success_message": "", "honeypot": null, "container_uuid": null, "description": null}`,
	).
		Want(200).Content("opensAt", nil).Content("closesAt", nil).Content("maxResponses", nil).
		Content("successMessage", nil).Content("honeypot", nil).
		Content("containerUuid", nil).Content("description", nil).Content("state", "open").Content("name", "Poll")

	a.Get(path).Want(200).Content("name", "Poll").Content("fields", "[]")

	before := a.Get(path).Want(200)

	for body, field := range map[string]string{
		`{}`: "", `{"name": null}`: "name", `{"name": ""}`: "name", `{"name": "a\nb"}`: "name",
		`{"state": "shut"}`: "state", `{"state": null}`: "state",
		`{"opens_at": "tomorrow"}`: "opens_at", `{"opens_at": 5}`: "opens_at",
		`{"closes_at": "2026-02-30T00:00:00Z"}`: "closes_at", `{"closes_at": "2026-02-01"}`: "closes_at",
		`{"opens_at": "2026-02-02T00:00:00Z", "closes_at": "2026-02-02T00:00:00Z"}`: "opens_at",
		`{"max_responses": 0}`: "max_responses", `{"max_responses": -1}`: "max_responses",
		`{"max_responses": 1.5}`: "max_responses", `{"max_responses": 1e2}`: "max_responses",
		`{"max_responses": "5"}`: "max_responses", `{"max_responses": 9223372036854775808}`: "max_responses",
		`{"success_message": "` + strings.Repeat("é", 1001) + `"}`: "success_message",
		`{"success_message": "a\u0000"}`:                           "success_message",
		`{"honeypot": "a b"}`:                                      "honeypot", `{"honeypot": "` +
			strings.Repeat("a", 51) + `"}`: "honeypot",
		`{"container_uuid": "x"}`: "container_uuid", `{"container_uuid": "` + apitest.MissingUUID +
			`"}`: "container_uuid",
		`{"description": "` + strings.Repeat("é", 501) + `"}`: "description", `{"projectUUID": "` +
			apitest.MissingUUID +
			`"}`: "projectUUID",
	} {
		r := a.Put(path, body)
		if r.Status != 422 {
			t.Errorf("%.80s: got %d, want 422\n%s", body, r.Status, r.Body)
			continue
		}

		r.Field(strings.Fields(field)...)
	}

	a.Put(path, `{`).Want(400)
	a.Put("/forms/"+apitest.MissingUUID, `{"state": "x"}`).Want(404)
	wantEqual(t, a.Get(path).Want(200), before)
}

func TestDeleteForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id, path := createForm(a, `{"label": "Name", "type": "text"}`)
	field := strings.TrimPrefix(path, "/forms/"+id+"/fields/")
	empty := a.Create("/forms", `{"name": "Empty"}`)
	a.Delete("/forms/"+empty).Want(200).Content("name", "Empty")
	a.Delete("/forms/" + empty).Want(404)

	if n := apitest.Value[int](a, `select count(*) from platform.forms where uuid = $1`, empty); n != 0 {
		t.Error("the platform still has the row of a deleted form")
	}

	a.Put("/forms/"+id, `{"state": "open"}`).Want(200)
	a.Post("/forms/"+id+"/responses", `{"answers": {"`+field+`": "Ann"}}`).Want(201)
	a.Delete("/forms/" + id + "?force=yes").Want(400).Field("force")
	a.Delete("/forms/" + id).Want(409).Code("in_use")
	a.Get("/forms/"+id).Want(200).Content("totalResponses", 1)

	got := concurrently(5, func(int) *apitest.Reply { return a.Delete("/forms/" + id + "?force=true") })
	wantCounts(t, got, map[int]int{200: 1, 404: 4})

	if n := query[int](t, a,
		`select (select count(*) from forms.responses) + (select count(*) from forms.definitions) + (select count(*) from forms.fields)`); n != 0 {
		t.Errorf("got %d rows of a deleted form, want none", n)
	}
}

func TestLinkForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id, _ := createForm(a, `{"label": "Name", "type": "text"}`)
	path := "/forms/" + id
	first := a.Post(path+"/link", "").Want(201).Get("link").(string)
	second := a.Post(path+"/link", "").Want(201).Get("link").(string)
	a.Put(path, `{"state": "open"}`).Want(200).Content("link", second)

	anonymous := a.Anonymous()
	anonymous.Get(path + "/public?link=" + first).Want(401)
	anonymous.Get(path+"/public?link="+second).Want(200).Content("name", "Survey").Content("isOpen", true).
		Content("fields.0.label", "Name")

	other := a.Create("/forms", `{"name": "Other"}`)
	anonymous.Get("/forms/" + other + "/public?link=" + second).Want(401)

	for _, link := range []string{"", "x", "%00", "null", strings.Repeat("a", 200)} {
		anonymous.Get(path + "/public?link=" + link).Want(401)
	}

	a.Delete(path+"/link").Want(200).Content("link", nil)
	a.Delete(path + "/link").Want(200)
	anonymous.Get(path + "/public?link=" + second).Want(401)

	if strings.Contains(a.Log.String(), second) {
		t.Error("the log contains the link")
	}
}

func TestFieldsOfForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id := a.Create("/forms", `{"name": "Survey"}`)
	path := "/forms/" + id + "/fields"
	created := a.Post(path,
		`{"fields": [{"label": "a", "type": "text"}, {"label": "b", "type": "text"}, {"label": "c", "type": "text"}]}`).
		Want(201)

	var ids []string
	for i := range 3 {
		ids = append(ids, created.Metadata(fmt.Sprintf("fields.%d.uuid", i)).(string))
	}

	order := func(ids ...string) string { return `{"fields": ["` + strings.Join(ids, `", "`) + `"]}` }

	a.Get(path+"/"+ids[1]).Want(200).Content("label", "b")
	a.Get(path + "/" + apitest.MissingUUID).Want(404)
	a.Get("/forms/" + apitest.MissingUUID + "/fields").Want(404)

	if got := values(a.Put(path+"/order", order(ids[2], ids[0], ids[1])).Want(200), "label"); !slices.Equal(got,
		[]string{"c", "a", "b"}) {
		t.Errorf("got order %q", got)
	}

	for body, field := range map[string]string{
		order(ids[0], ids[1]):         "fields",
		order(ids[0], ids[0], ids[1]): "fields.1", order(ids[0], ids[1], ids[2], apitest.MissingUUID): "fields.3",
		`{}`: "fields", `{"fields": []}`: "fields", `{"fields": ["x"]}`: "fields.0", `{"fields": null}`: "fields",
	} {
		a.Put(path+"/order", body).Want(422).Field(field)
	}

	a.Put(path+"/order", `{`).Want(400)
	a.Put("/forms/"+apitest.MissingUUID+"/fields/order", `{}`).Want(404)
	a.Delete(path+"/"+ids[0]).Want(200).Content("label", "a")
	a.Delete(path + "/" + ids[0]).Want(404)
	a.Create(path, `{"label": "d", "type": "text"}`)

	if got := values(a.Get(path).Want(200), "label"); !slices.Equal(got, []string{"c", "b", "d"}) {
		t.Errorf("got fields %q", got)
	}

	a.Get("/forms/"+id).Want(200).Content("fields.0.label", "c").Content("version", 5)

	// Concurrent changes of the order result in one of the requested orders, and each counts as a
	// version.
	all := values(a.Get(path), "uuid")
	counts := concurrently(10, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return a.Put(path+"/order", order(all[0], all[1], all[2]))
		}
		return a.Put(path+"/order", order(all[2], all[1], all[0]))
	})

	wantCounts(t, counts, map[int]int{200: 10})
	a.Get("/forms/"+id).Want(200).Content("version", 15).Content("fields.1.uuid", all[1])
}

// TestFormsQuota checks that the quota of forms is enforced.
func TestFormsQuota(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execute(t, a,
		`insert into forms.forms (uuid, name, created_by, updated_by) select gen_random_uuid(), 'x', gen_random_uuid(), gen_random_uuid() from generate_series(1, 999)`)

	wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post("/forms", `{"name": "Late"}`) }),
		map[int]int{201: 1, 422: 4})

	a.Post("/forms", `{"name": "One more"}`).Want(422).Code("quota_exceeded")
}

// TestFormPaths checks that every operation refuses a path parameter that is not a UUID.
func TestFormPaths(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id, path := createForm(a, `{"label": "Name", "type": "text"}`)
	for request, parameter := range map[string]string{
		"GET /forms/x": "formUUID", "DELETE /forms/x": "formUUID", "POST /forms/x/link": "formUUID",
		"DELETE /forms/x/link": "formUUID", "GET /forms/x/fields": "formUUID",
		"GET /forms/x/statistics":        "formUUID",
		"GET /forms/" + id + "/fields/x": "fieldUUID", "DELETE /forms/" + id + "/fields/x": "fieldUUID",
		"GET /forms/" + id + "/responses/x": "responseUUID", "DELETE /forms/" + id + "/responses/x": "responseUUID",
		"DELETE " + strings.ReplaceAll(path, id, "x"): "formUUID",
	} {
		method, path, _ := strings.Cut(request, " ")
		a.Send(method, path, "").Want(400).Field(parameter)
	}
}
