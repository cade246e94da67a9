package api_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// fileCalls returns the operations on containers and files with an effect on other calls.
func (f fixture) fileCalls() []call {
	container, file := "/containers/"+f.container, "/containers/"+f.container+"/files/"+f.file
	return []call{
		{"listContainers", "GET", "/containers", "", 5},
		{"getContainer", "GET", container, "", 5},
		{"getFile", "GET", file, "", 5},
		{"getQuota", "GET", "/projects/" + f.Project + "/quota", "", 5},
		{"createSignedURL", "POST", file + "/signed-url", `{}`, 5},
		{"createSignedUpload", "POST", container + "/signed-uploads", `{"full_file_name": "signed.txt"}`, 4},
		{"writeFile", "PUT", "/files/" + f.Project + "/" + f.container + "/a.txt", "other", 4},
		{"updateFile", "PUT", file, `{"full_file_name": "b.txt"}`, 4},
		{"deleteFile", "DELETE", file, "", 4},
		{"deleteFolder", "DELETE", container + "/folders/a", "", 4},
		{"deleteContainer", "DELETE", container, "", 4},
	}
}

func TestListContainers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for i := range 3 {
		a.Create("/containers", fmt.Sprintf(`{"name": "c-%d"}`, i))
	}

	a.Get("/containers?sort=name&order=desc&limit=2").Want(200).Total(3).Content("0.name", "c-2").
		Content("1.name", "c-1")

	a.Get("/containers?sort=size").Want(400)
	a.WithProject(a.CreateProject("other")).Get("/containers").Want(200).Total(0)
}

func TestGetContainer(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id := a.Create("/containers", `{"name": "reports"}`)
	r := a.Get("/containers/"+id).Want(200).Content("name", "reports").Content("totalFiles", 0)
	path := "/containers/" + id
	stale := r.Header.Get("ETag")
	a.Send("PUT", path, `{"description": "first"}`, "If-Match: "+stale).Want(200)
	a.Send("PUT", path, `{"description": "second"}`, "If-Match: "+stale).Want(422).Code("changed")
	a.Send("DELETE", path, "", "If-Match: "+stale).Want(412)
	a.Get(path).Want(200).Content("description", "first")
	a.Get("/containers/" + apitest.MissingUUID).Want(404)
	a.Get("/containers/x").Want(400)

	for _, method := range []string{"GET", "DELETE", "PUT"} {
		a.Send(method, path+"/files/x", `{"full_file_name": "y"}`).Want(400)
	}
}

// TestIfMatchConcurrently checks that one of many concurrent changes with the same ETag succeeds.
func TestIfMatchConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/containers/" + a.Create("/containers", `{"name": "reports"}`)
	tag := a.Get(path).Want(200).Header.Get("ETag")
	counts := concurrently(10, func(i int) *apitest.Reply {
		return a.Send("PUT", path, fmt.Sprintf(`{"description": "of %d"}`, i), "If-Match: "+tag)
	})

	wantCounts(t, counts, map[int]int{200: 1, 422: 9})
}

func TestAllowedMimeTypes(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Post("/containers", `{"name": "pictures", "allowed_mime_types": ["image/*", "Application/PDF", "image/*"]}`).
		Want(201)
	if got := fmt.Sprint(r.Metadata("allowedMimeTypes")); got != "[image/* application/pdf]" {
		t.Errorf("got %s", got)
	}

	id := r.Get("uuid").(string)
	for _, wrong := range []string{
		`["*/*"]`, `["image"]`, `["image/"]`, `["/png"]`, `["image/p*"]`, `["text/plain; charset=utf-8"]`,
		`["image/\u0000"]`, `[""]`,
	} {
		a.Put("/containers/"+id, `{"allowed_mime_types": `+wrong+`}`).Want(422)
	}

	a.Put("/containers/"+id, `{"allowed_mime_types": []}`).Want(200)
	file := upload(a, id, "a.txt", "hello").Want(201).Get("uuid").(string)
	a.Put("/containers/"+id, `{"allowed_mime_types": ["image/*"]}`).Want(200)
	upload(a, id, "b.txt", "hello").Want(422).Code("mime_type_not_allowed").Field("file")
	a.Get("/containers/"+id).Want(200).Content("totalFiles", 1)

	other := a.Create("/containers", `{"name": "pdfs", "allowed_mime_types": ["application/pdf"]}`)
	a.Put("/containers/"+id+"/files/"+file, `{"container_uuid": "`+other+`"}`).Want(422).Code("mime_type_not_allowed").
		Field("container_uuid")
}

func TestUpdateFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	path := "/containers/" + f.container + "/files/" + f.file
	upload(a, f.container, "taken.txt", "other").Want(201)

	before := blobs(t, a)
	a.Put(path, `{"full_file_name": "folder/new.txt"}`).Want(200).Content("fullFileName", "folder/new.txt").
		Content("uuid", f.file)

	a.Get(address(a, f.container, "folder/new.txt")).Want(200)
	a.Get(address(a, f.container, "a.txt")).Want(404)
	a.Put(path, `{"full_file_name": "taken.txt"}`).Want(409).Field("full_file_name")
	a.Put(path, `{"full_file_name": "../x"}`).Want(422).Field("full_file_name")
	a.Put(path, `{}`).Want(422)
	a.Put(path, `{"full_file_name": 1}`).Want(422)
	a.Put("/containers/"+f.container+"/files/"+apitest.MissingUUID, `{"full_file_name": 1}`).Want(404)

	other := a.Create("/containers", `{"name": "other"}`)
	small := a.Create("/containers", `{"name": "small", "max_file_size": 1}`)
	a.Put(path, `{"container_uuid": "`+small+`"}`).Want(422).Code("too_large")
	a.Put(path, `{"container_uuid": "`+apitest.MissingUUID+`"}`).Want(422).Code("not_found")

	theirs := a.WithProject(a.CreateProject("second")).Create("/containers", `{"name": "theirs"}`)
	a.Put(path, `{"container_uuid": "`+theirs+`"}`).Want(422).Code("not_found")
	a.Put(path, `{"container_uuid": "`+other+`", "full_file_name": "moved.txt"}`).Want(200).
		Content("containerUuid", other)

	a.Get(path).Want(404)
	a.Get("/containers/" + other + "/files/" + f.file + "/download").Want(200)
	a.Get("/containers/"+f.container).Want(200).Content("totalFiles", 1)

	if after := blobs(t, a); len(after) != len(before) {
		t.Errorf("bytes were copied: got %q and %q", before, after)
	}
}

// waitForBlobs waits until n blobs are left.
func waitForBlobs(t *testing.T, a *apitest.API, n int) {
	t.Helper()

	until(t, "the bytes are deleted", func() bool { return len(blobs(t, a)) == n })

	if remaining := query[int](t, a, "select count(*) from storage.discarded") +
		query[int](t, a, "select count(*) from storage.containers where deleting"); remaining > 0 {
		until(t, "the queue is empty", func() bool {
			return query[int](t, a,
				"select (select count(*) from storage.discarded) + (select count(*) from storage.containers where deleting)") == 0
		})
	}
}

func TestDeleteFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "reports"}`)
	file := upload(a, container, "a.txt", "hello").Want(201).Get("uuid").(string)
	path := "/containers/" + container + "/files/" + file
	a.Get(path).Want(200).Content("size", 5)
	a.Delete(path).Want(200).Content("fullFileName", "a.txt")
	a.Delete(path).Want(404)
	a.Get(path).Want(404)
	waitForBlobs(t, a, 0)
	upload(a, container, "a.txt", "again").Want(201)
}

func TestDeleteFileConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "reports"}`)
	file := upload(a, container, "a.txt", "hello").Want(201).Get("uuid").(string)
	counts := concurrently(10, func(int) *apitest.Reply {
		return a.Delete("/containers/" + container + "/files/" + file)
	})
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})
}

func TestDeleteFolder(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "reports"}`)
	other := a.Create("/containers", `{"name": "other"}`)

	for _, name := range []string{"a/1.txt", "a/b/2.txt", "a/é.txt", "a.txt", "ab/3.txt", "A/4.txt"} {
		upload(a, container, name, name).Want(201)
	}

	upload(a, other, "a/1.txt", "kept").Want(201)
	a.Delete("/containers/"+container+"/folders/a/b/").Want(200).Content("files", 1)
	a.Delete("/containers/"+container+"/folders/a").Want(200).Content("files", 2)
	a.Delete("/containers/" + container + "/folders/a").Want(404)
	a.Delete("/containers/" + container + "/folders/%2e%2e").Want(400)
	a.Delete("/containers/" + apitest.MissingUUID + "/folders/a").Want(404)
	a.Get("/containers/"+container).Want(200).Content("totalFiles", 3)
	waitForBlobs(t, a, 4)
}

func TestDeleteContainer(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	empty := a.Create("/containers", `{"name": "empty"}`)
	a.Delete("/containers/"+empty).Want(200).Content("name", "empty")
	a.Delete("/containers/" + empty).Want(404)

	full := a.Create("/containers", `{"name": "full", "is_public": true}`)
	for i := range 3 {
		upload(a, full, fmt.Sprintf("%d.txt", i), "hello").Want(201)
	}

	a.Delete("/containers/" + full).Want(409).Code("in_use")
	a.Delete("/containers/" + full + "?force=perhaps").Want(400)
	a.Delete("/containers/"+full+"?force=true").Want(200).Content("totalFiles", 3)
	a.Get("/containers/" + full).Want(404)
	a.Get("/containers").Want(200).Total(0)
	a.Get("/containers/" + full + "/files").Want(400)
	a.Get(address(a, full, "0.txt")).Want(404)
	upload(a, full, "late.txt", "late").Want(404)
	a.Create("/containers", `{"name": "full"}`) // the name is free
	waitForBlobs(t, a, 0)
}

// TestDeleteContainerDuringUploads checks that a concurrent upload completes before the deletion or
// fails, and that no bytes are left.
func TestDeleteContainerDuringUploads(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "full"}`)
	counts := concurrently(12, func(i int) *apitest.Reply {
		if i == 6 {
			return a.Delete("/containers/" + container + "?force=true")
		}
		return upload(a, container, fmt.Sprintf("%d.txt", i), "hello")
	})
	if counts[200] != 1 || counts[201]+counts[404] != 11 {
		t.Errorf("got %v", counts)
	}

	waitForBlobs(t, a, 0)
}
