package server_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/build"
)

// storagePolicies give each end user a folder of the bucket avatars.
const storagePolicies = `
	create policy read on storage.objects for select to authenticated using (owner_id = (select auth.uid()::text));
	create policy write on storage.objects for insert to authenticated
		with check (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
	create policy change on storage.objects for update to authenticated using (owner_id = (select auth.uid()::text));
	create policy remove on storage.objects for delete to authenticated using (owner_id = (select auth.uid()::text))`

// TestStorageByClient has two end users use their files by supabase-js.
func TestStorageByClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	a.Post("/containers", `{"name":"avatars"}`).Want(201)
	owner := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner()
	if _, err := owner.Exec(t.Context(), storagePolicies); err != nil {
		t.Fatal(err)
	}

	root := a.URL + "/projects/" + a.Project
	node := exec.CommandContext(t.Context(), "node", "storage.mjs")
	node.Dir, node.Env = clients, append(os.Environ(), "SOCLE_PROJECT="+root,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"), "SOCLE_SECRET="+s.key("server", "secret"))
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}

	f := files{t, root + "/storage/v1", s.key("reader", "secret")}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/object/avatars/logo.txt", "Invalid Compact JWS"},
		{"GET", "/nothing", "Route GET:/nothing not found"},
		{"GET", "/bucket/avatars/empty", "Bucket not found"},
		{"POST", "/bucket/avatars", "Route POST:/bucket/avatars not found"},
		{"GET", "/object/public/none/x", "Bucket not found"},
		{"GET", "/object/sign/avatars/logo.txt?token=x", "invalid signature"},
		{"PUT", "/object/upload/sign/avatars/logo.txt", "invalid signature"},
	} {
		var headers []string
		if strings.HasPrefix(c.path, "/bucket") {
			headers = append(headers, "apikey: "+f.secret)
		}
		f.want(400, c.want, c.method, c.path, "", headers...)
	}

	f.want(200, "", "GET", "/status", "")
	f.want(200, "", "HEAD", "/status", "")
	f.want(200, build.Version(), "GET", "/version", "")
	f.checkReads()
	f.checkTokens()
	f.checkRefusals()

	s.Exec(`update platform.projects set max_database_bytes = 1 where uuid = $1`, s.Project)
	s.measure()
	f.wantSecret(400, "database has reached its quota", "POST", "/object/photos/more.txt", "1")
	f.wantSecret(413, "database has reached its quota", "POST", "/upload/resumable", "", "Tus-Resumable: 1.0.0",
		"Upload-Length: 5", "Upload-Metadata: bucketName cGhvdG9z,objectName YQ==")
	f.wantSecret(200, `{"message":"Successfully moved"}`, "POST", "/object/move",
		`{"bucketId": "photos", "sourceKey": "b.txt", "destinationKey": "c.txt"}`)
	f.wantSecret(200, `{"message":"Successfully moved"}`, "POST", "/object/move",
		`{"bucketId": "photos", "sourceKey": "c.txt", "destinationKey": "b.txt"}`)
	f.wantSecret(200, "Successfully deleted", "DELETE", "/object/photos/a.txt", "")

	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	f.wantSecret(400, "The project is paused", "GET", "/bucket", "")
	f.want(400, "The project is paused", "GET", "/object/public/photos/b.txt", "")
	f.want(400, "Invalid Compact JWS", "GET", "/bucket", "")
}

// files are the files of a project, as an application's server uses them.
type files struct {
	t      *testing.T
	root   string
	secret string
}

// send sends a request and returns the response and its body.
func (f files) send(method, path, body string, headers ...string) (*http.Response, string) {
	f.t.Helper()

	r, err := http.NewRequestWithContext(f.t.Context(), method, f.root+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}

	return resp, string(text)
}

// want sends a request and checks its status and a part of its body.
func (f files) want(status int, want, method, path, body string, headers ...string) (http.Header, string) {
	f.t.Helper()

	resp, text := f.send(method, path, body, headers...)
	if resp.StatusCode != status || !strings.Contains(text, want) {
		f.t.Errorf("%s %s: got %d %s, want %d %s", method, path, resp.StatusCode, text, status, want)
	}

	return resp.Header, text
}

// wantSecret is want with the secret key.
func (f files) wantSecret(status int, want, method, path, body string, headers ...string) (http.Header, string) {
	f.t.Helper()
	return f.want(status, want, method, path, body, append(headers, "apikey: "+f.secret)...)
}

// checkReads reads objects of a public bucket by ranges and conditions.
func (f files) checkReads() {
	f.t.Helper()

	f.wantSecret(200, "photos", "POST", "/bucket", `{"name": "photos", "public": true, "file_size_limit": "10B"}`)
	for _, name := range []string{"a.txt", "b.txt"} {
		f.wantSecret(200, "photos/"+name, "POST", "/object/photos/"+name, "0123456789", "Content-Type: text/plain",
			"Cache-Control: max-age=60")
	}
	f.wantSecret(200, "photos/x.html", "POST", "/object/photos/x.html", "<b>x</b>", "Content-Type: text/html")
	f.wantSecret(400, "exceeded the maximum allowed size", "POST", "/object/photos/c", "0123456789a")
	f.wantSecret(400, "Invalid key: ../c", "POST", "/object/photos/%2e%2e/c", "1")
	f.wantSecret(400, "cache-control must be", "POST", "/object/photos/c", "1",
		"Cache-Control: "+strings.Repeat("x", 300))

	const path = "/object/public/photos/a.txt"
	header, _ := f.want(200, "0123456789", "GET", path, "")
	etag := header.Get("ETag")
	for name, want := range map[string]string{"Cache-Control": "max-age=60", "Content-Disposition": "inline",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"} {
		if got := header.Get(name); got != want {
			f.t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}

	f.want(206, "234", "GET", path, "", "Range: bytes=2-4")
	f.want(416, "InvalidRange", "GET", path, "", "Range: bytes=20-")
	f.want(304, "", "GET", path, "", "If-None-Match: "+etag)
	f.want(412, "PreconditionFailed", "GET", path, "", `If-Match: "x"`)
	if resp, body := f.send("HEAD", path, ""); resp.ContentLength != 10 || body != "" {
		f.t.Errorf("HEAD: got %d bytes %q, want 10", resp.ContentLength, body)
	}

	for query, want := range map[string]string{"?download": "attachment", "?download=é.txt": `attachment; filename="_.txt"; filename*=UTF-8''%C3%A9.txt`} {
		if header, _ := f.want(200, "", "GET", path+query, ""); header.Get("Content-Disposition") != want {
			f.t.Errorf("%s: got %q, want %q", query, header.Get("Content-Disposition"), want)
		}
	}
	header, _ = f.want(200, "", "GET", "/object/public/photos/x.html", "")
	if got := header.Get("Content-Disposition"); got != "attachment" {
		f.t.Errorf("a page: got %q, want attachment", got)
	}

	header, _ = f.wantSecret(200, "", "GET", "/object/authenticated/photos/a.txt", "")
	if got := header.Get("Cache-Control"); got != "private, max-age=60" {
		f.t.Errorf("with a key: got %q, want private", got)
	}
	f.want(200, `"content_type":"text/plain"`, "GET", "/object/info/public/photos/a.txt", "")
	f.want(400, "Bucket not found", "GET", "/object/info/public/avatars/logo.txt", "")
	if header, _ := f.wantSecret(200, "", "HEAD", "/object/info/photos/a.txt", ""); header.Get("ETag") != etag {
		f.t.Errorf("info: got ETag %q, want %q", header.Get("ETag"), etag)
	}
}

// checkTokens checks that tokens of signed URLs count for their bucket only, and not for a later
// one with the same id.
func (f files) checkTokens() {
	f.t.Helper()

	f.wantSecret(200, "once", "POST", "/bucket", `{"name": "once"}`)
	f.wantSecret(200, "once/a", "POST", "/object/once/a", "secret", "Content-Type: text/plain")

	var signed struct{ SignedURL, URL string }
	// Supabase's client for Python sends a string.
	_, text := f.wantSecret(200, "token=", "POST", "/object/sign/once/a", `{"expiresIn": "60"}`)
	if err := json.Unmarshal([]byte(text), &signed); err != nil {
		f.t.Fatal(err)
	}
	_, text = f.wantSecret(200, "token=", "POST", "/object/upload/sign/once/b", "")
	if err := json.Unmarshal([]byte(text), &signed); err != nil {
		f.t.Fatal(err)
	}

	_, download, _ := strings.Cut(signed.SignedURL, "?")
	_, upload, _ := strings.Cut(signed.URL, "?")
	header, _ := f.want(200, "secret", "GET", signed.SignedURL, "")
	if got := header.Get("Cache-Control"); got != "private, no-cache" {
		f.t.Errorf("a signed URL: got Cache-Control %q, want private, no-cache", got)
	}
	f.want(400, "Invalid signature", "GET", "/object/sign/photos/a?"+download, "")
	f.want(400, "Invalid signature", "GET", "/object/sign/none/a?"+download, "")
	f.want(400, "Token is not scoped for download", "GET", "/object/sign/once/b?"+upload, "")
	f.want(400, "Token is not scoped for upload", "PUT", "/object/upload/sign/once/a?"+download, "1")
	f.want(200, "once/b", "PUT", signed.URL, "1", "Content-Type: text/plain")
	f.want(400, "The resource already exists", "PUT", signed.URL, "2")
	f.wantSecret(400, "expiresIn", "POST", "/object/sign/once/a", `{"expiresIn": 0}`)

	f.wantSecret(400, "The bucket you tried to delete is not empty", "DELETE", "/bucket/once", "")
	f.wantSecret(200, "has been queued", "POST", "/bucket/once/empty", "")
	f.wantSecret(200, "Successfully deleted", "DELETE", "/bucket/once", "")
	f.wantSecret(200, "once", "POST", "/bucket", `{"name": "once"}`)
	f.wantSecret(200, "once/a", "POST", "/object/once/a", "new", "Content-Type: text/plain")
	f.want(400, "Invalid signature", "GET", signed.SignedURL, "")
}

// checkRefusals sends invalid values.
func (f files) checkRefusals() {
	f.t.Helper()

	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/bucket", `{"name": "photos"}`, "BucketAlreadyExists"},
		{"POST", "/bucket", `{"name": "a/b"}`, "InvalidBucketName"},
		{"POST", "/bucket", `{"name": "x", "file_size_limit": "10 apples"}`, "Invalid file size format"},
		{"POST", "/bucket", `{"name": "x", "file_size_limit": "10GB"}`, "EntityTooLarge"},
		{"POST", "/bucket", `{"name": "x", "allowed_mime_types": ["*"]}`, "InvalidRequest"},
		{"POST", "/bucket", `[]`, "The body must be a JSON object"},
		{"POST", "/bucket", `{"name": 5}`, "body/name must be a string"},
		{"POST", "/bucket", `{"name": "x", "public": "true"}`, "body/public must be a boolean"},
		{"POST", "/object/sign/photos/a.txt", `{"expiresIn": 1.5}`, "body/expiresIn must be an integer from 1 to"},
		{"POST", "/object/sign/photos/a.txt", `{"expiresIn": "soon"}`, "body/expiresIn must be an integer from 1 to"},
		{"POST", "/object/sign/photos/a.txt", `{}`, "body/expiresIn must be an integer from 1 to"},
		{"DELETE", "/object/photos", `{"prefixes": ["a", 5]}`, "body/prefixes/1 must be a string"},
		{"GET", "/bucket?limit=x", "", "querystring/limit"},
		{"GET", "/bucket?sortColumn=owner", "", "querystring/sortColumn"},
		{"GET", "/bucket?sortOrder=up", "", "querystring/sortOrder"},
		{"GET", "/bucket/none", "", "Bucket not found"},
		{"PUT", "/bucket/none", "{}", "Bucket not found"},
		{"POST", "/object/list/photos", `{"sortBy": {"column": "owner"}}`, "sortBy"},
		{"POST", "/object/list/photos", `{"sortBy": {"order": "up"}}`, "sortBy/order"},
		{"POST", "/object/list-v2/photos", `{"cursor": "!"}`, "InvalidParameter"},
		{"POST", "/object/list-v2/photos", `{"cursor": "e30"}`, "InvalidParameter"},
		{"POST", "/object/list-v2/photos", `{"limit": 0}`, "body/limit must be at least 1"},
		{"POST", "/object/list/photos", `{"limit": 0}`, "body/limit must be at least 1"},
		{"POST", "/object/list/photos", `{"offset": -1}`, "body/offset must be from 0 to 100000"},
		{"POST", "/object/list/photos", `{"offset": 100001}`, "body/offset must be from 0 to 100000"},
		{"POST", "/object/sign/photos", `{"expiresIn": 1, "paths": []}`, "paths"},
		{"DELETE", "/object/photos", `{"prefixes": []}`, "body/prefixes must have 1 to 1000 items"},
		{"DELETE", "/object/photos", `{}`, "body/prefixes must have 1 to 1000 items"},
		{"POST", "/object/sign/photos/none", `{"expiresIn": 1}`, "NoSuchKey"},
		{"POST", "/object/copy", `{"bucketId": "photos", "sourceKey": "a.txt", "destinationKey": "a//b"}`, "Invalid key: a//b"},
		{"POST", "/object/move", `{"bucketId": "photos", "sourceKey": "none", "destinationKey": "b"}`, "NoSuchKey"},

		// Texts that PostgreSQL can't store.
		{"GET", "/object/photos/%00", "", "InvalidKey"},
		{"GET", "/object/photos/%ff", "", "InvalidKey"},
		{"POST", "/object/sign/photos/%00", `{"expiresIn": 1}`, "InvalidKey"},
		{"GET", "/bucket/%00", "", "InvalidKey"},
		{"GET", "/bucket?search=%00", "", "querystring must be UTF-8"},
		{"POST", "/object/list/photos", `{"prefix": "\u0000"}`, "must be UTF-8"},
		{"POST", "/object/list/photos", `{"search": "\ud800"}`, "must be UTF-8"},
		{"POST", "/object/copy", `{"bucketId": "\u0000", "sourceKey": "a", "destinationKey": "b"}`, "must be UTF-8"},
		{"POST", "/object/sign/photos", `{"expiresIn": 1, "paths": ["\u0000"]}`, "must be UTF-8"},
		{"DELETE", "/object/photos", `{"prefixes": ["\u0000"]}`, "must be UTF-8"},
	} {
		f.wantSecret(400, c.want, c.method, c.path, c.body)
	}

	nul := base64.StdEncoding.EncodeToString([]byte(`{"a": "\u0000"}`))
	f.wantSecret(400, "metadata must be", "POST", "/object/photos/n", "x", "x-metadata: "+nul)
	f.wantSecret(400, "Upload-Metadata must be", "POST", "/upload/resumable", "", "Tus-Resumable: 1.0.0",
		"Upload-Length: 1", "Upload-Metadata: bucketName "+base64.StdEncoding.EncodeToString([]byte("\x00")))
}
