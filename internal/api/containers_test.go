package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestUpdateContainer(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	created := a.Post("/containers",
		`{"name": "reports", "description": "Monthly", "is_public": true, "max_file_size": 1000}`).Want(201)

	c := created.Get("uuid").(string)
	upload(a, c, "a.txt", "hello").Want(201)
	member := a.Member(4)

	r := member.Put("/containers/"+c, `{"name": "drawings"}`).Want(200).Content("uuid", c).
		Content("projectUuid", a.Project).Content("name", "drawings").
		Content("description", "Monthly").Content("isPublic", true).Content("maxFileSize", 1000).
		Content("totalFiles", 1).
		Content("url", created.Get("url")).Content("createdAt", created.Get("createdAt")).Content("createdBy", a.User).
		Content("updatedBy", member.User)
	if r.Get("updatedAt").(string) <= created.Get("updatedAt").(string) {
		t.Errorf("updatedAt is unchanged\n%s", r.Body)
	}

	a.Put("/containers/"+c, `{"description": ""}`).Want(200).Content("description", "").Content("name", "drawings")
	a.Put("/containers/"+c, `{"is_public": false}`).Want(200).Content("isPublic", false)
	a.Put("/containers/"+c, `{"max_file_size": 1}`).Want(200).Content("maxFileSize", 1).Content("totalFiles", 1)
	a.Put("/containers/"+c, `{"max_file_size": 5368709120, "projectUUID": "`+a.Project+`"}`).Want(200).
		Content("maxFileSize", "5368709120")

	a.Put("/containers/"+c, `{"name": "drawings"}`).Want(200)
	a.Put("/containers/"+c, `{"description": "`+strings.Repeat("é", 500)+`"}`).Want(200)

	before := a.Put("/containers/"+c,
		`{"name": "drawings", "isPublic": true, "uuid": "`+apitest.MissingUUID+
			`", "totalFiles": 7, "url": "x", "createdBy": "x",
		"projectUuid": "`+apitest.MissingUUID+
			`", "createdAt": "2000-01-01T00:00:00Z", "Is_Public": true, "maxFileSize": 5}`).Want(200)

	before.Content("isPublic", false).Content("uuid", c).Content("totalFiles", 1).Content("createdBy", a.User).
		Content("createdAt", created.Get("createdAt")).
		Content("maxFileSize", "5368709120")
}

func TestUpdateContainerRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	a.Create("/containers", `{"name": "taken"}`)
	before := databaseState(t, a)

	for body, fields := range containerFaults {
		a.Put("/containers/"+c, body).Want(422).Field(strings.Fields(fields)...)
	}

	a.Put("/containers/"+c, `{}`).Want(422)
	a.Put("/containers/"+c, `{"unknown": 1}`).Want(422)
	a.Put("/containers/"+c, `{"projectUUID": "`+a.Project+`"}`).Want(422)
	a.Put("/containers/"+c, `{"name": "taken"}`).Want(422).Code("already_exists").Field("name")

	for _, body := range malformed {
		a.Put("/containers/"+c, body).Want(400)
	}

	a.Put("/containers/garbage", `{"name": ""}`).Want(400).Field("containerUUID")
	a.Put("/containers/"+apitest.MissingUUID, `{"name": ""}`).Want(400).Code("not_found")
	a.Put("/containers/"+apitest.MissingUUID, `{}`).Want(400).Code("not_found")
	a.Anonymous().Put("/containers/garbage", `{`).Want(401)

	// The JSON syntax is checked before access to the project.
	a.OtherUser().Put("/containers/"+c, `{`).Want(400).Code("malformed_json")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

// containerFaults maps invalid bodies to the fields at fault.
var containerFaults = map[string]string{
	`{"name": ""}`:   "name",
	`{"name": "ab"}`: "name",
	`{"name": "` + strings.Repeat("a", 64) + `"}`:                             "name",
	`{"name": "public"}`:                                                      "name",
	`{"name": "list-v2"}`:                                                     "name",
	`{"name": "a b c"}`:                                                       "name",
	`{"name": "../../x"}`:                                                     "name",
	`{"name": "résumé"}`:                                                      "name",
	`{"name": "abc\n"}`:                                                       "name",
	`{"name": "abc\u0000"}`:                                                   "name",
	`{"name": "abc'; drop table x"}`:                                          "name",
	`{"name": 7}`:                                                             "name",
	`{"name": null}`:                                                          "name",
	`{"name": []}`:                                                            "name",
	`{"name": {"$ne": ""}}`:                                                   "name",
	`{"name": "abc", "description": 7}`:                                       "description",
	`{"name": "abc", "description": "a\u0000"}`:                               "description",
	`{"name": "abc", "is_public": "true"}`:                                    "is_public",
	`{"name": "abc", "is_public": 1}`:                                         "is_public",
	`{"name": "abc", "is_public": null}`:                                      "is_public",
	`{"name": "abc", "max_file_size": 0}`:                                     "max_file_size",
	`{"name": "abc", "max_file_size": -1}`:                                    "max_file_size",
	`{"name": "abc", "max_file_size": 1.5}`:                                   "max_file_size",
	`{"name": "abc", "max_file_size": 1e2}`:                                   "max_file_size",
	`{"name": "abc", "max_file_size": 1.0}`:                                   "max_file_size",
	`{"name": "abc", "max_file_size": 1e400}`:                                 "max_file_size",
	`{"name": "abc", "max_file_size": "5"}`:                                   "max_file_size",
	`{"name": "abc", "max_file_size": 5368709121}`:                            "max_file_size",
	`{"name": "abc", "max_file_size": 9223372036854775807}`:                   "max_file_size",
	`{"name": "abc", "max_file_size": 9223372036854775808}`:                   "max_file_size",
	`{"name": "abc", "max_file_size": 18446744073709551617}`:                  "max_file_size",
	`{"name": "abc", "max_file_size": ` + strings.Repeat("9", 400) + `}`:      "max_file_size",
	`{"name": "abc", "description": "` + strings.Repeat("é", 501) + `"}`:      "description",
	`{"name": "a", "description": 7, "is_public": "x", "max_file_size": "x"}`: "description is_public max_file_size",
}

func TestCreateContainer(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	request := a.Request("POST", "/containers", strings.NewReader(`{"name": "reports"}`),
		"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher", "X-Original-URL: /evil",
		"Forwarded: host=evil.example")

	request.Host = "evil.example"
	r := a.Do(request).Want(201).Content("projectUuid", a.Project).Content("name", "reports").
		Content("description", "").Content("isPublic", false).
		Content("maxFileSize", 50<<20).Content("totalFiles", 0).Content("createdBy", a.User).
		Content("updatedBy", a.User)
	if got, want := r.Get("url"), a.URL+"/files/"+a.Project+"/"+r.Get("uuid").(string); got != want {
		t.Errorf("got url %v, want %v", got, want)
	}

	a.Post("/containers", `{"name": "Reports"}`).Want(201) // names are case-sensitive
	a.Post("/containers", `{"name": "reports"}`).Want(409).Code("already_exists").Field("name")
	a.WithProject(a.CreateProject("other")).Post("/containers", `{"name": "reports"}`).Want(201)
	before := databaseState(t, a)

	for body, fields := range containerFaults {
		a.Post("/containers", body).Want(422).Field(strings.Fields(fields)...)
	}

	a.Post("/containers", `{}`).Want(422).Field("name")
	a.Post("/containers", `[]`).Want(400)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestContainerNamesConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	wantCounts(t, concurrently(20, func(int) *apitest.Reply { return a.Post("/containers", `{"name": "same"}`) }),
		map[int]int{201: 1, 409: 19})

	remaining, right := a.Create("/containers", `{"name": "left"}`), a.Create("/containers", `{"name": "right"}`)
	counts := concurrently(2, func(i int) *apitest.Reply {
		return a.Put("/containers/"+[]string{remaining, right}[i], `{"name": "middle"}`)
	})

	wantCounts(t, counts, map[int]int{200: 1, 422: 1})
	counts = concurrently(10, func(i int) *apitest.Reply {
		return a.Put("/containers/"+remaining, fmt.Sprintf(`{"description": "number %d"}`, i))
	})

	wantCounts(t, counts, map[int]int{200: 10})
}
