package api_test

import (
	"slices"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestListFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	path := "/containers/" + c + "/files"
	empty := a.Get(path).Want(200)
	if got := len(empty.Get("").([]any)); got != 0 || empty.Body[0] != '[' {
		t.Errorf("want an array that holds an envelope without files, got %s", empty.Body)
	}

	wantPage(t, empty, 1, 20, 0, "createdAt", "asc")

	for _, f := range []struct {
		name, content string
	}{{"b/c.txt", "333"}, {"a.txt", "4444"}, {"B.txt", "1"}, {"ä.txt", "22"}, {"same.txt", "22"}} {
		upload(a, c, f.name, f.content).Want(201)
	}

	r := a.Get(path).Want(200).Content("0.fullFileName", "b/c.txt").Content("0.containerUuid", c).
		Content("0.mimeType", "text/plain").
		Content("0.size", 3).Content("0.createdBy", a.User).Content("0.updatedBy", a.User)
	if r.Get("0.createdAt") != r.Get("0.updatedAt") {
		t.Errorf("got updatedAt after createdAt for a new file: %s", r.Body)
	}

	for query, want := range map[string][]string{
		"":                                {"b/c.txt", "a.txt", "B.txt", "ä.txt", "same.txt"},
		"?order=desc":                     {"same.txt", "ä.txt", "B.txt", "a.txt", "b/c.txt"},
		"?sort=fullFileName":              {"B.txt", "a.txt", "b/c.txt", "same.txt", "ä.txt"},
		"?sort=size&limit=2":              {"B.txt", "ä.txt"}, // equal sizes: the older file first
		"?sort=size&limit=2&page=2":       {"same.txt", "b/c.txt"},
		"?sort=size&order=desc&limit=1":   {"a.txt"},
		"?sort=mimeType&limit=3&page=2":   {"ä.txt", "same.txt"},
		"?sort=updatedAt&limit=2&page=99": nil,
	} {
		if got := values(a.Get(path+query).Want(200), "fullFileName"); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}

	wantPages(t, a, path, "createdAt", []string{"fullFileName", "size", "mimeType", "createdAt", "updatedAt"}, 5)
	a.Member(5).Get(path).Want(200)
}

func TestListFilesRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	a.Get("/containers/garbage/files").Want(400).Code("invalid_value").Field("containerUUID")
	a.Get("/containers/garbage/files?page=0").Want(400).Field("page", "containerUUID")
	a.Get("/containers/" + apitest.MissingUUID + "/files").Want(400).Code("not_found")
	a.Get("/containers/" + apitest.MissingUUID + "/files?sort=nope").Want(400).Field("sort")
	a.WithProject(apitest.MissingUUID).Get("/containers/" + c + "/files?page=0").Want(400).Field("page")
	a.WithProject(apitest.MissingUUID).Get("/containers/" + c + "/files").Want(401).Code("unknown_project")
	a.Anonymous().Get("/containers/garbage/files?page=0").Want(401)
	a.OtherUser().Get("/containers/" + c + "/files").Want(401)

	for _, r := range []*apitest.Reply{
		a.Get("/containers/garbage/files"), a.Anonymous().Get("/containers/" + c + "/files"),
	} {
		if r.Body[0] != '{' {
			t.Errorf("an error is a plain envelope, got %s", r.Body)
		}
	}
}
