package storageapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/object/objecttest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestFailureOf checks that the true status is in the body.
func TestFailureOf(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		err    error
		status int
		want   failure
	}{
		"missing": {
			fault.New(fault.NotFound, "x"), 400,
			failure{"404", "not_found", "Object not found", "NoSuchKey"},
		},
		"bucket": {errNoBucket, 400, failure{"404", "Bucket not found", "Bucket not found", "NoSuchBucket"}},
		"denied": {fault.New(fault.Forbidden, "no"), 400, failure{"403", "Unauthorized", "no", "AccessDenied"}},
		"type": {
			fault.OnField(fault.Unprocessable, "file", "mime_type_not_allowed", "no"), 400,
			failure{"415", "invalid_mime_type", "the type of the object is not supported", "InvalidMimeType"},
		},
		"lock": {
			fault.New(fault.Conflict, "x").WithCode("busy"), 400,
			failure{"423", "ResourceLocked", "The resource is locked", "ResourceLocked"},
		},
		"paused": {
			fault.New(fault.Conflict, "paused").WithCode("project_paused"), 400,
			failure{"409", "ProjectPaused", "paused", "ProjectPaused"},
		},
		"token": {
			fault.New(fault.Invalid, "bad").WithCode("InvalidJWT"), 400,
			failure{"400", "InvalidJWT", "bad", "InvalidJWT"},
		},
		"unknown": {errors.New("secret"), 500, failure{"500", "internal", "Internal Server Error", "InternalError"}},
		"busy":    {fault.New(fault.TooMany, "slow"), 429, failure{"429", "too_many_requests", "slow", "SlowDown"}},
	} {
		if status, got := failureOf(c.err); status != c.status || got != c.want {
			t.Errorf("%s: got %d %+v, want %d %+v", name, status, got, c.status, c.want)
		}
	}
}

// TestReadForm reads the fields before the file, which has an empty name.
func TestReadForm(t *testing.T) {
	t.Parallel()

	const form = "--b\r\nContent-Disposition: form-data; name=\"contentType\"\r\n\r\ntext/csv\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"cacheControl\"\r\n\r\n60\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"\"; filename=\"blob\"\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n"
	var n object.NewFile
	metadata, err := readForm(multipart.NewReader(strings.NewReader(form), "b"), &n)
	if err != nil || string(metadata) != "{}" || n.CacheControl != "max-age=60" || n.MimeType != "text/csv" {
		t.Errorf("got %q, %+v, %v", metadata, n, err)
	}

	_, err = readForm(multipart.NewReader(strings.NewReader("--b--\r\n"), "b"), &n)
	if status, _ := failureOf(err); status != http.StatusBadRequest {
		t.Errorf("a form without a file: got %v", err)
	}
}

// TestVerify checks that a token permits the signed action on the signed object only.
func TestVerify(t *testing.T) {
	t.Parallel()

	c := &call{project: &project{&Config{SignKey: []byte("key")},
		&gateway.Project{Database: &projectdb.Project{UUID: uuid.New()}}}}
	valid := grant{Scope: scopeDownload, Name: "a/b", Expires: time.Now().Add(time.Hour).Unix()}
	sign := func(c *call, g grant) string {
		text, err := c.sign(g)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}

	other := &call{project: &project{&Config{SignKey: []byte("key")},
		&gateway.Project{Database: &projectdb.Project{UUID: uuid.New()}}}}
	upload, expired := valid, valid
	upload.Scope, expired.Expires = scopeUpload, time.Now().Add(-2*time.Second).Unix()
	text := sign(c, valid)
	for name, d := range map[string]struct{ text, path, want string }{
		"none":            {"", "files/a/b", "InvalidJWT"},
		"other project":   {sign(other, valid), "files/a/b", "InvalidJWT"},
		"changed":         {"A" + text[1:], "files/a/b", "InvalidJWT"},
		"without its MAC": {strings.Split(text, ".")[0] + ".", "files/a/b", "InvalidJWT"},
		"other scope":     {sign(c, upload), "files/a/b", "InvalidSignature"},
		"other object":    {text, "files/a/c", "InvalidSignature"},
		"expired":         {sign(c, expired), "files/a/b", "ExpiredToken"},
	} {
		_, _, err := c.verify(d.text, scopeDownload, d.path)
		if got := fault.Of(err).Code; got != d.want {
			t.Errorf("%s: got %v, want %s", name, err, d.want)
		}
	}
}

// TestCheckHeaders checks that changes refuse headers that they would ignore.
func TestCheckHeaders(t *testing.T) {
	t.Parallel()

	for _, r := range routes {
		for _, name := range slices.Concat(unsupportedHeaders, unsupportedTusHeaders) {
			request := httptest.NewRequest(r.method, "/", nil)
			request.Header.Set(name, "x")

			reads := r.method == http.MethodGet || r.method == http.MethodHead
			other := slices.Contains(unsupportedTusHeaders, name) && !strings.HasPrefix(r.prefix, tusPath)
			if err := (&call{r: request}).checkHeaders(r); (err == nil) != (reads || other) {
				t.Errorf("%s %s with %s: got %v", r.method, r.prefix, name, err)
			}
		}
	}
}

// TestReservedNames checks that no bucket can have the name of a word in its place in a path.
func TestReservedNames(t *testing.T) {
	t.Parallel()

	for _, r := range routes {
		after, ok := strings.CutPrefix(r.prefix, "/object/")
		word, _, _ := strings.Cut(after, "/")
		if ok && word != "" && !object.IsReserved(word) {
			t.Errorf("%s %s: a bucket can have the name %s", r.method, r.prefix, word)
		}
	}
}

// TestSignedURL checks that a URL opens as printed and as Supabase's clients escape it again, for
// every name.
func TestSignedURL(t *testing.T) {
	t.Parallel()

	for _, name := range objecttest.HostileNames {
		printed := signedURL("/object/sign/", object.Container{ID: "a?b +&"}, name, "to.ken")
		for _, text := range []string{printed, encodeURI(printed)} {
			at, err := url.Parse("http://localhost" + text)
			if err != nil || at.Query().Get("token") != "to.ken" || at.Fragment != "" {
				t.Errorf("%q: got %s, %v", name, text, err)
				continue
			}

			want, path := "/object/sign/a?b +&/"+name, at.Path
			again, err := url.PathUnescape(path)
			if path != want && (err != nil || again != want) {
				t.Errorf("%q: %s leads to %q", name, text, path)
			}
		}
	}
}

// encodeURI is that of JavaScript, for text that has been escaped.
func encodeURI(text string) string { return strings.ReplaceAll(text, "%", "%25") }

// slowBody is a body below the minimum rate.
type slowBody struct{ io.Reader }

func (slowBody) Read([]byte) (int, error) { return 0, httpx.ErrTooSlow }

// TestUploadedBody checks that a slow or truncated body is the client's failure.
func TestUploadedBody(t *testing.T) {
	t.Parallel()

	for want, body := range map[string]io.Reader{
		"408": slowBody{}, "400": iotest.ErrReader(io.ErrUnexpectedEOF),
	} {
		_, err := uploadedBody{body}.Read(nil)
		if status, f := failureOf(err); status != http.StatusBadRequest || f.StatusCode != want {
			t.Errorf("got %d %+v, want %s", status, f, want)
		}
	}
}

// TestParseSize reads the forms of a size limit.
func TestParseSize(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]int64{
		"null": object.MaxFileSize, "0": object.MaxFileSize, "10": 10, `"10b"`: 10, `"20MB"`: 20e6, `"1.5kb"`: 1500,
		`"1GB"`: 1e9, `"10 MB"`: 0, `"-1b"`: 0, "-1": 0, "true": 0, `"9GB"`: 0, "1e99": 0,
	} {
		if got, err := parseSize(json.RawMessage(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestTransformHeader(t *testing.T) {
	t.Parallel()

	for want, in := range map[string]transform{
		"": {},
		"height:200,width:100,resizing_type:fill,quality:60": {Width: 100, Height: 200, Quality: 60},
		"width:100,resizing_type:fit":                        {Width: 100, Resize: "contain"},
		"height:9,resizing_type:force":                       {Height: 9, Resize: "fill", Format: "origin"},
		"quality:80":                                         {Quality: 80},
	} {
		if got := in.header(); got != want {
			t.Errorf("%+v: got %q, want %q", in, got, want)
		}
	}
}
