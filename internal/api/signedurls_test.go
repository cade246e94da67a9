package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// signedPath returns the path of a signed URL.
func signedPath(a *apitest.API, r *apitest.Reply) string {
	return strings.TrimPrefix(fmt.Sprint(r.Want(201).Get("url")), a.URL)
}

func TestCreateSignedURL(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "private"}`)
	file := fmt.Sprint(put(a, c, "a/ü \"1\"?.txt", "hello").Want(200).Get("uuid"))
	put(a, c, "b.txt", "other").Want(200)

	sign := "/containers/" + c + "/files/" + file + "/signed-url"
	viewer := a.Member(5)
	r := viewer.Post(sign, `{"expires_in": 60}`).Want(201).Content("method", "GET")
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("got Cache-Control %q", got)
	}

	path, anonymous := signedPath(a, r), a.Anonymous().WithProject("")
	if got := anonymous.Get(path).Want(200); string(got.Body) != "hello" ||
		got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got %q, %v", got.Body, got.Header)
	}

	anonymous.Send("HEAD", path, "").Want(200)
	anonymous.Send("GET", path, "", "Range: bytes=1-2").Want(206)

	plain, signature, _ := strings.Cut(path, "?")

	// It is valid for this file only.
	anonymous.Get(plain).Want(404)
	anonymous.Get(address(a, c, "b.txt") + "?" + signature).Want(401).Code("invalid_signature")
	anonymous.Get(strings.ReplaceAll(path, a.Project, a.CreateProject("other"))).Want(401).Code("invalid_signature")
	anonymous.Get(strings.ReplaceAll(path, c, a.Create("/containers", `{"name": "other"}`))).Want(401)
	anonymous.Send("PUT", path, "evil").Want(401).Code("invalid_signature")

	for _, wrong := range []string{
		"", "x", ".", "x.y", "%ff", "e30." + strings.Repeat("A", 43),
		signature[len("signature="):len(signature)-1] + "~", strings.Repeat("A", 10_000),
	} {
		anonymous.Get(plain + "?signature=" + wrong).Want(401).Code("invalid_signature")
	}

	anonymous.Get("/containers/" + c + "/files/" + file + "/download?" + signature).Want(401)

	// It survives a change of the file, and ends with the file, with the signer's rights, and at
	// its expiry.
	put(a, c, "a/ü \"1\"?.txt", "replaced").Want(200)
	a.Put("/containers/"+c+"/files/"+file, `{"full_file_name": "renamed"}`).Want(200)

	if got := anonymous.Get(path).Want(200); string(got.Body) != "replaced" {
		t.Errorf("got %q", got.Body)
	}

	a.Exec(`delete from platform.members where user_uuid = $1 and organization_uuid = $2`, viewer.User, a.Organization)
	anonymous.Get(path).Want(401).Code("invalid_signature")
	path = signedPath(a, a.Post(sign, `{"expires_in": 1}`))
	until(t, "it has expired", func() bool { return anonymous.Get(path).Status == 401 })
	anonymous.Get(path).Want(401).Code("signature_expired")
	path = signedPath(a, a.Post(sign, `{}`))
	anonymous.Get(path).Want(200)
	a.Delete("/containers/" + c + "/files/" + file).Want(200)
	put(a, c, "renamed", "another").Want(200)
	anonymous.Get(path).Want(404)

	for _, body := range []string{`{"expires_in": 0}`, `{"expires_in": 604801}`, `{"expires_in": "1"}`} {
		a.Post(sign, body).Want(404)
	}

	other := fmt.Sprint(put(a, c, "b.txt", "other").Want(200).Get("uuid"))
	a.Post("/containers/"+c+"/files/"+other+"/signed-url", `{"expires_in": 604801}`).Want(422).Field("expires_in")
	a.Post("/containers/"+c+"/files/garbage/signed-url", `{}`).Want(400)
}

func TestCreateSignedUpload(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "private"}`)
	sign, anonymous := "/containers/"+c+"/signed-uploads", a.Anonymous().WithProject("")
	dev := a.Member(4)
	path := signedPath(a, dev.Post(sign, `{"full_file_name": "in/a.txt", "max_size": 10}`).Content("method", "PUT"))
	anonymous.Send("PUT", path, strings.Repeat("x", 11)).Want(413).Code("too_large")
	anonymous.Send("GET", path, "").Want(401)
	anonymous.Send("PUT", strings.ReplaceAll(path, "a.txt", "b.txt"), "x").Want(401).Code("invalid_signature")

	if got := anonymous.Send("PUT", path, "hello", "Content-Type: text/plain").Want(200).Content("createdBy", dev.User).
		Content("fullFileName", "in/a.txt"); got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got %v", got.Header)
	}

	anonymous.Send("PUT", path, "again").Want(401).Code("signature_used")
	a.Delete("/containers/" + c + "/folders/in").Want(200)
	anonymous.Send("PUT", path, "again").Want(401).Code("signature_used")

	// A signed upload creates a file, and replaces none.
	path = signedPath(a, a.Post(sign, `{"full_file_name": "b.txt"}`))
	put(a, c, "b.txt", "taken").Want(200)
	anonymous.Send("PUT", path, "x").Want(409).Code("already_exists")
	a.Delete("/containers/" + c + "/files/" + a.Get("/containers/"+c+"/files").Get("0.uuid").(string)).Want(200)

	counts := concurrently(10, func(i int) *apitest.Reply { return anonymous.Send("PUT", path, fmt.Sprint(i)) })
	wantStatuses(t, counts, 200, 401, 409)

	if counts[200] != 1 {
		t.Errorf("got statuses %v, want one 200", counts)
	}

	path = signedPath(a, dev.Post(sign, `{"full_file_name": "c.txt"}`))
	a.Exec(`update platform.members set role = 5 where user_uuid = $1 and organization_uuid = $2`, dev.User,
		a.Organization)

	anonymous.Send("PUT", path, "x").Want(403)
	path = signedPath(a, a.Post(sign, `{"full_file_name": "c.txt", "expires_in": 1}`))
	until(t, "it has expired", func() bool {
		return anonymous.Send("PUT", path, "x", "Content-Type: multipart/form-data").Status == 401
	})

	anonymous.Send("PUT", path, "x").Want(401).Code("signature_expired")
	path = signedPath(a, a.Post(sign, `{"full_file_name": "c.txt"}`))

	a.Delete("/containers/" + c + "?force=true").Want(200)
	anonymous.Send("PUT", path, "x").Want(404)

	c = a.Create("/containers", `{"name": "rules"}`)
	sign = "/containers/" + c + "/signed-uploads"
	a.Post(sign, `{"full_file_name": "../x"}`).Want(422).Field("full_file_name")
	a.Post(sign, `{}`).Want(422).Field("full_file_name")
	a.Post(sign, `{"full_file_name": "x", "max_size": 0}`).Want(422).Field("max_size")
	a.Post("/containers/"+apitest.MissingUUID+"/signed-uploads", `{"full_file_name": "x"}`).Want(404)
	a.Post("/containers/"+apitest.MissingUUID+"/signed-uploads", `{}`).Want(404)
	a.Post("/containers/garbage/signed-uploads", `{}`).Want(400)
	a.Member(5).Post(sign, `{"full_file_name": "x"}`).Want(403)
}
