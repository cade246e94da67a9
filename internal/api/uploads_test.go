package api_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// wantFiles fails the test unless the project has this number of files, each with its bytes, and no
// other bytes are stored.
func wantFiles(t *testing.T, a *apitest.API, want int) {
	t.Helper()

	rows := query[int](t, a, "select count(*) from storage.files")
	if stored := len(blobs(t, a)); rows != want || stored != want {
		t.Errorf("got %d files and %d blobs, want %d", rows, stored, want)
	}

	if notes := query[int](t, a, "select count(*) from storage.uploads"); notes > 0 {
		t.Errorf("got %d unfinished uploads, want none", notes)
	}
}

func TestCreateFile(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	upload(a, c, "a/b/c.txt", "hello").Want(201).Content("containerUuid", c).Content("fullFileName", "a/b/c.txt").
		Content("mimeType", "text/plain").Content("size", 5).Content("createdBy", a.User).Content("updatedBy", a.User)
	uploadBody(a, c, filePart("", "hello")+end).Want(201).Content("fullFileName", "upload.bin").
		Content("mimeType", "text/plain; charset=utf-8")
	uploadBody(a, c, part(`form-data; name="file"; filename="../../etc/passwd"`, "", "")+end).Want(201).
		Content("fullFileName", "passwd").Content("size", 0)
	uploadBody(a, c,
		namePart("b")+part(`form-data; name="other"`, "", "ignored")+filePart("nonsense", "\x89PNG\r\n\x1a\n")+end).
		Want(201).Content("mimeType", "image/png")
	uploadBody(a, c, "a preamble\r\n"+namePart("c")+filePart("IMAGE/SVG+XML", "<svg/>")+end+"an epilogue").Want(201).
		Content("mimeType", "image/svg+xml")

	a.Get("/containers/" + c + "/files").Want(200)
	a.Put("/containers/"+c, `{"description": "x"}`).Want(200).Content("totalFiles", 5)
	wantFiles(t, a, 5)
}

func TestFileNames(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)

	inert := []string{"CON", "a.", "a ", " a", ".hidden", "...", "a:b", "a?b#c", "%2e%2e%2fetc", `"quoted"`, "é",
		"e\u0301", "É", "\u202etxt.exe", "😀.png", "a;b=c", "<img onerror=x>", "'; drop table x",
		strings.Repeat("a", 1024), "a/" + strings.Repeat("b/", 100) + "c", "*", "~", "$HOME", "a\u200bb", "{{x}}",
		"-rf", "+"}
	for i, name := range inert {
		upload(a, c, name, fmt.Sprint(i)).Want(201).Content("fullFileName", name)
		if got := a.Get(address(a, c, name)).Want(200); string(got.Body) != fmt.Sprint(i) {
			t.Errorf("%q: got %q, want %d", name, got.Body, i)
		}
	}

	wantFiles(t, a, len(inert))

	for _, name := range []string{"", "/x", "../x", "a/../../x", "a/..", ".", "..", "a/./b", "a//b", "a/", `..\x`,
		`a\b`, "a\x00b", "a\nb", "a\r\nSet-Cookie: x=y", "\xff", "\x7f", strings.Repeat("a", 1025),
		strings.Repeat("a", 5000), strings.Repeat("é", 513)} {
		if r := upload(a, c, name, "x"); r.Status != 422 {
			t.Errorf("%.40q: got %d, want 422\n%s", name, r.Status, r.Body)
		} else {
			r.Field("full_file_name")
		}
	}

	wantFiles(t, a, len(inert))
}

func TestCreateFileRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 100}`)
	upload(a, c, "taken", "kept").Want(201)
	upload(a, c, "taken", "other").Want(409).Code("already_exists").Field("full_file_name")

	for body, field := range map[string]string{
		end:                 "file",
		namePart("a") + end: "file",
		part(`form-data; name="other"`, "", "x") + end:                 "file",
		filePart("", "x") + namePart("a") + end:                        "full_file_name",
		namePart("a") + namePart("b") + filePart("", "x") + end:        "full_file_name",
		namePart("a") + filePart("", "x") + filePart("", "y") + end:    "file",
		part(`form-data; name="file"`, "", "no name of its own") + end: "full_file_name",
	} {
		uploadBody(a, c, body).Want(422).Field(field)
	}

	other := part(`form-data; name="other"`, "", "x")
	for name, body := range map[string]string{
		"nothing":                    "",
		"no boundary":                "hello",
		"no closing boundary":        namePart("a") + strings.TrimSuffix(filePart("", "x"), "\r\n"),
		"another boundary":           strings.ReplaceAll(multipartOf("a", "x"), boundary, "another"),
		"cut in the head":            namePart("a") + filePart("", "x")[:30],
		"cut before the end":         namePart("a") + filePart("", "x"),
		"many parts before the file": strings.Repeat(other, 100_000/20) + multipartOf("a", "x"),
		"many parts behind it":       namePart("a") + filePart("", "x") + strings.Repeat(other, 5_000) + end,
		"a long head": part(`form-data; name="file"; filename="`+strings.Repeat("a", 11<<20)+`"`,
			"", "x") + end,
		"many heads":             "--" + boundary + "\r\n" + strings.Repeat("A: b\r\n", 20_000) + "\r\nx\r\n" + end,
		"a head without a colon": "--" + boundary + "\r\nnonsense\r\n\r\nx\r\n" + end,
	} {
		if r := uploadBody(a, c, body); r.Status != 400 {
			t.Errorf("%s: got %d, want 400\n%s", name, r.Status, r.Body)
		}
	}

	for _, contentType := range []string{"", "application/json", "multipart/form-data",
		"multipart/form-data; boundary=", "multipart/mixed; boundary=" + boundary,
		"multipart/form-data; boundary=" + strings.Repeat("a", 71),
		"multipart/form-data; boundary=" + strings.Repeat("a", 50_000), "multipart/form-data; boundary=\"",
		"text/plain"} {
		a.Send("POST", "/containers/"+c+"/files", multipartOf("a", "x"), "Content-Type: "+contentType).Want(400).
			Field("Content-Type")
	}

	a.Send("POST", "/containers/"+c+"/files", multipartOf("a", "x"),
		"Content-Type: multipart/form-data; boundary="+boundary, "Content-Encoding: gzip").Want(400).
		Field("Content-Encoding")

	upload(a, apitest.MissingUUID, "a", "x").Want(404).Code("not_found")
	upload(a, apitest.MissingUUID, "", "x").Want(404).Code("not_found")
	upload(a, "garbage", "a", "x").Want(400).Field("containerUUID")
	upload(a.Anonymous(), c, "a", "x").Want(401)
	upload(a.OtherUser(), c, "a", "x").Want(401)
	upload(a.Member(5), c, "a", "x").Want(403)

	if got := query[string](t, a, "select full_file_name || ' ' || size from storage.files"); got != "taken 4" {
		t.Errorf("got file %q", got)
	}

	wantFiles(t, a, 1)
}

// TestFileSize checks that bytes are counted as they arrive, regardless of the declared length.
func TestFileSize(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 1000}`)
	upload(a, c, "just", strings.Repeat("x", 1000)).Want(201)
	upload(a, c, "over", strings.Repeat("x", 1001)).Want(413).Code("too_large").Field("file")

	// The response to an infinite body arrives while the client still sends.
	content, body := io.Pipe()
	request := a.Request("POST", "/containers/"+c+"/files", content,
		"Content-Type: multipart/form-data; boundary="+boundary)

	stopped := make(chan error, 1)

	go func() {
		_, err := fmt.Fprint(body, namePart("endless"), strings.TrimSuffix(filePart("", ""), "\r\n"))
		for err == nil {
			_, err = body.Write(bytes.Repeat([]byte("x"), 1<<10))
		}

		stopped <- err
	}()

	a.Do(request).Want(413).Code("too_large")
	content.Close()
	<-stopped
	a.Put("/containers/"+c, `{"description": "x"}`).Want(200).Content("totalFiles", 1)
	wantFiles(t, a, 1)
}

// TestFileStreamed uploads five megabytes without a length and downloads them.
func TestFileStreamed(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	bytesSent := make([]byte, 5<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(bytesSent) // never fails
	content := io.MultiReader(strings.NewReader(namePart("big.bin")+strings.TrimSuffix(filePart("", ""), "\r\n")),
		bytes.NewReader(bytesSent), strings.NewReader("\r\n"+end))

	r := a.Do(
		a.Request("POST", "/containers/"+c+"/files", struct {
			io.Reader
		}{content}, "Content-Type: multipart/form-data; boundary="+boundary),
	).
		Want(201).Content("size", 5<<20).Content("mimeType", "application/octet-stream")

	got := a.Get("/containers/" + c + "/files/" + r.Get("uuid").(string) + "/download").Want(200)
	if !bytes.Equal(got.Body, bytesSent) {
		t.Errorf("got %d bytes, different from the upload", len(got.Body))
	}
}

// TestUploadAborted checks that an aborted upload leaves nothing, and keeps the existing file.
func TestUploadAborted(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	upload(a, c, "kept", "kept").Want(201)

	content, body := io.Pipe()
	request := a.Request("POST", "/containers/"+c+"/files", content,
		"Content-Type: multipart/form-data; boundary="+boundary)

	aborted := make(chan error, 1)

	go func() {
		res, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			err = res.Body.Close()
		}

		aborted <- err
	}()

	fmt.Fprint(body, namePart("half"), strings.TrimSuffix(filePart("", strings.Repeat("x", 1<<20)), "\r\n"))
	until(t, "the upload is running", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == 1
	})

	body.CloseWithError(io.ErrUnexpectedEOF)

	if err := <-aborted; err == nil {
		t.Error("the upload was answered")
	}

	until(t, "it is removed completely", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == 0 && len(blobs(t, a)) == 1
	})

	wantFiles(t, a, 1)
	upload(a, c, "half", "whole").Want(201)
}

func TestUploadConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)
	contents := map[string]bool{}
	for i := range 5 {
		contents[strings.Repeat(fmt.Sprint(i), 1000+i)] = true
	}

	counts := concurrently(5, func(i int) *apitest.Reply {
		return upload(a, c, "same", strings.Repeat(fmt.Sprint(i), 1000+i))
	})
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
	got := a.Get(address(a, c, "same")).Want(200)
	size := query[int](t, a, "select size from storage.files")
	if !contents[string(got.Body)] || size != len(got.Body) {
		t.Errorf("got a file of %d bytes that equals none of the uploads: %d bytes", size,
			len(got.Body))
	}

	wantFiles(t, a, 1)
}

// TestPlantedLinks checks that a symbolic or hard link planted in the data folder is not read.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	file := upload(a, c, "a", "hello").Want(201).Get("uuid").(string)

	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}

	blob := blobs(t, a)[0]
	for _, link := range []func(from, to string) error{os.Symlink, os.Link} {
		if err := os.Remove(blob); err != nil {
			t.Fatal(err)
		}
		if err := link(secret, blob); err != nil {
			t.Fatal(err)
		}

		a.Get("/containers/" + c + "/files/" + file + "/download").Want(500)
	}

	a.Get("/containers/"+c+"/files").Want(200).Content("0.uuid", file)
}

// TestLargePartHeads checks the size limits of the headers and parts around the file.
func TestLargePartHeads(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/containers/" + a.Create("/containers", `{"name": "heads"}`) + "/files"
	large := "X-Large: " + strings.Repeat("x", 1<<20) + "\r\n"
	part := func(head, body string) string {
		return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + body + "\r\n"
	}
	for _, body := range []string{
		part("name=\"note\"\r\n"+large, "x") + part(`name="file"; filename="x"`, "x") + "--b--\r\n",
		part(`name="file"; filename="x"`, "x") + part("name=\"note\"\r\n"+large, "x") + "--b--\r\n",
		part(`name="note"`, strings.Repeat("x", 1<<20)) + part(`name="file"; filename="x"`, "x") + "--b--\r\n",
	} {
		a.Send("POST", path, body, "Content-Type: multipart/form-data; boundary=b").Want(400).
			Code("malformed_multipart")
	}

	a.Send("POST", path, part(`name="file"; filename="x"`, strings.Repeat("x", 1<<20))+"--b--\r\n",
		"Content-Type: multipart/form-data; boundary=b").Want(201)

	if total := a.Get(path).Want(200).Metadata("total"); fmt.Sprint(total) != "1" {
		t.Errorf("got %v files, want 1", total)
	}
}
