package api_test

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestDownloadFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	path := "/containers/" + c + "/files/" + upload(a, c, "a/b.txt", "hello").Want(201).
		Get("uuid").(string) + "/download"

	r := a.Member(5).Get(path).Want(200)
	if string(r.Body) != "hello" {
		t.Errorf("got %q", r.Body)
	}

	for name, want := range map[string]string{"Content-Type": "text/plain", "Content-Length": "5",
		"Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": `inline; filename="b.txt"`} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}

	tag := r.Header.Get("ETag")
	if got := a.Send("GET", path, "", "If-None-Match: "+tag).Want(304); len(got.Body) > 0 {
		t.Errorf("got %q with a 304", got.Body)
	}

	a.Send("GET", path, "", `If-None-Match: "other"`).Want(200)
	head := a.Send("HEAD", path, "").Want(200)
	if head.Header.Get("Content-Length") != "5" || head.Header.Get("ETag") != tag || len(head.Body) > 0 {
		t.Errorf("got %v and %q for HEAD", head.Header, head.Body)
	}

	for span, want := range map[string]string{
		"bytes=0-0": "h", "bytes=1-3": "ell", "bytes=2-": "llo", "bytes=-2": "lo", "bytes=3-99": "lo",
		"bytes=-99": "hello", "Bytes=3-99999999999999999999": "lo",
	} {
		if got := a.Send("GET", path, "", "Range: "+span).Want(206); string(got.Body) != want {
			t.Errorf("%s: got %q, want %q", span, got.Body, want)
		}
	}

	a.Send("GET", path, "", "Range: bytes=1-3", `If-Range: "other"`).Want(200)

	if got := a.Send("HEAD", path, "", "Range: bytes=1-3").Want(200).Header.Get("Content-Length"); got != "5" {
		t.Errorf("got Content-Length %q for HEAD with a range", got)
	}

	// A replacement of a new file can get the same date, so the date validates nothing yet.
	execute(t, a, "update storage.files set updated_at = now() + interval '1 minute'")

	for _, method := range []string{"GET", "HEAD"} {
		young := a.Send(method, path, "").Want(200).Header.Get("Last-Modified")
		if at, err := http.ParseTime(young); err != nil || at.After(time.Now()) {
			t.Errorf("%s: got Last-Modified %q for a new file, want a date that has passed", method, young)
		}
		a.Send(method, path, "", "If-Modified-Since: "+young).Want(200)
	}

	execute(t, a, "update storage.files set updated_at = now() - interval '1 minute'")
	date := a.Get(path).Header.Get("Last-Modified")
	a.Send("GET", path, "", "Range: bytes=1-3", "If-Range: "+date).Want(206)
	a.Send("GET", path, "", "If-Modified-Since: "+date).Want(304)
	a.Send("GET", path, "", "If-Unmodified-Since: Sat, 21 Nov 2020 00:00:00 GMT").Want(412)

	for _, span := range []string{
		"bytes=5-", "bytes=99-100", "bytes=-0", "bytes=-00", "bytes=3-1", "bytes=a-b", "bytes=1-2-3",
		"bytes=99999999999999999999-",
	} {
		a.Send("GET", path, "", "Range: "+span).Want(416).Code("invalid_range")
	}

	for _, span := range []string{
		"bytes=" + strings.Repeat("0-1,", 10_000) + "0-1", "bytes=0-" + strings.Repeat("9", 50_000),
	} {
		a.Send("GET", path, "", "Range: "+span).Want(200) // too long to parse
	}

	for _, unit := range []string{"lines=1-2", "bytes", "bytes = 1-2"} {
		a.Send("GET", path, "", "Range: "+unit).Want(200) // unknown unit
	}

	if got := a.Send("GET", path, "", "Range: bytes=0-1,3-4").
		Want(206); !strings.HasPrefix(got.Header.Get("Content-Type"), "multipart/byteranges") {
		t.Errorf("got %v for two ranges", got.Header)
	}

	empty := "/containers/" + c + "/files/" + upload(a, c, "empty", "").Want(201).Get("uuid").(string) + "/download"
	for _, span := range []string{"bytes=-5", "bytes=0-", "bytes=-0", "bytes=0-0,-1"} {
		if got := a.Send("GET", empty, "", "Range: "+span).Want(200).Header; got.Get("Content-Range") != "" {
			t.Errorf("%s of an empty file: got %v", span, got)
		}
	}

	a.Get("/containers/" + c + "/files/garbage/download").Want(400).Field("fileUUID")
	a.Get("/containers/" + c + "/files/" + apitest.MissingUUID + "/download").Want(404).Code("not_found")
	a.Get("/containers/" + apitest.MissingUUID + strings.TrimPrefix(path, "/containers/"+c)).Want(404)
	a.Anonymous().Get(path).Want(401)
	a.OtherUser().Get(path).Want(401)
}

func TestContentDisposition(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)
	for _, name := range []string{
		`say "hi".txt`, "emoji 😀.txt", "\u202etxt.exe", "a;b=c.txt", "ünï.txt", "a%22b.txt", "'.txt",
		"folder/plain.txt",
	} {
		upload(a, c, name, "x").Want(201)

		values := a.Get(address(a, c, name)).Want(200).Header.Values("Content-Disposition")
		if len(values) != 1 {
			t.Errorf("%q: got the headers %q", name, values)
			continue
		}

		disposition, params, err := mime.ParseMediaType(values[0])
		if err != nil || disposition != "inline" || params["filename"] != name[strings.LastIndex(name, "/")+1:] ||
			len(params) != 1 {
			t.Errorf("%q: got %q (%v)", name, values[0], err)
		}
	}
}

// TestActiveContent checks that no stored file runs as a page of the server's origin.
func TestActiveContent(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)

	const page = "<html><script>alert(1)</script></html>"
	for claim, want := range map[string]string{
		"text/html": "attachment", "image/svg+xml": "attachment", "application/xml": "attachment",
		"application/xhtml+xml": "attachment", "text/javascript": "attachment",
		"multipart/x-mixed-replace": "attachment", "": "attachment", "image/png": "inline", "text/plain": "inline",
		"application/pdf": "inline", "video/mp4": "inline",
	} {
		name := "file of " + strings.ReplaceAll(claim, "/", " ")
		uploadBody(a, c, namePart(name)+filePart(claim, page)+end).Want(201)
		r := a.Anonymous().Get(address(a, c, name)).Want(200)
		if got := r.Header.Get("Content-Disposition"); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got Content-Disposition %q, want %s", claim, got, want)
		}
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") ||
			r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: got %v", claim, r.Header)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	created := a.Post("/containers", `{"name": "reports", "is_public": true}`).Want(201)
	c := created.Get("uuid").(string)
	upload(a, c, "a/b.txt", "hello").Want(201)

	path := strings.TrimPrefix(created.Get("url").(string), a.URL) + "/a/b.txt"
	anonymous, outsider := a.Anonymous().WithProject(""), a.OtherUser()
	for _, caller := range []*apitest.API{anonymous, outsider, a, a.Member(5)} {
		if r := caller.Get(path).Want(200); string(r.Body) != "hello" {
			t.Errorf("got %q", r.Body)
		}
	}

	anonymous.Get(path + "c").Want(404).Code("not_found")
	anonymous.Send("GET", path, "", "Range: bytes=1-2").Want(206)
	anonymous.Send("GET", path, "", "Range: bytes=9-").Want(416)

	tag := anonymous.Get(path).Header.Get("ETag")
	anonymous.Send("GET", path, "", "If-None-Match: "+tag).Want(304)
	// Invalid credentials are refused, even on a public file.
	anonymous.Send("GET", path, "", "Authorization: Bearer garbage").Want(401)

	a.Put("/containers/"+c, `{"is_public": false}`).Want(200)
	private := anonymous.Get(path).Want(404)
	anonymous.Send("GET", path, "", "If-None-Match: "+tag).Want(404)
	outsider.Get(path).Want(404)
	a.Get(path).Want(200)
	a.Member(5).Get(path).Want(200)

	// The responses do not reveal whether containers and files exist.
	wantEqual(t, private, anonymous.Get(strings.ReplaceAll(path, c, apitest.MissingUUID)))
	wantEqual(t, private, anonymous.Get(path+"c"))
	wantEqual(t, private, anonymous.Get(strings.ReplaceAll(path, a.Project, apitest.MissingUUID)))
	a.Get(strings.ReplaceAll(path, c, apitest.MissingUUID)).Want(404)
	anonymous.Get("/files/garbage/" + c + "/a").Want(400).Field("projectUUID")
	anonymous.Get("/files/" + a.Project + "/garbage/a").Want(400).Field("containerUUID")

	a.Put("/containers/"+c, `{"is_public": true}`).Want(200)
	anonymous.Get(path).Want(200)
}

// TestReadFilePaths checks that a path is taken as a literal file name.
func TestReadFilePaths(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)
	upload(a, c, "a.txt", "hello").Want(201)
	base := a.URL + "/files/" + a.Project + "/" + c
	for _, path := range []string{
		"/../a.txt", "/%2e%2e/a.txt", "/..%2fa.txt", "//a.txt", "/", "/a.txt/", "/%00", "/%ff", `/\a.txt`, "/./a.txt",
		"/..%5ca.txt", "/a.txt%0d%0aX-Evil:1",
	} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}

		res, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}

		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}

		res.Body.Close()

		if !slices.Contains([]int{400, 401, 404}, res.StatusCode) ||
			!strings.HasPrefix(string(body), `{"content":"null"`) {
			t.Errorf("%s: got %d %s", path, res.StatusCode, body)
		}
	}
}
