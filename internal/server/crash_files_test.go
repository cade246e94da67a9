package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writerContent returns the content of change n of a writer: unique, and large enough to be in
// flight for a while.
func writerContent(kind string, n int) []byte {
	line := fmt.Appendf(nil, "%s %d\n", kind, n)
	return bytes.Repeat(line, (64<<10+n%7*100<<10)/len(line))
}

// do sends a body and headers, and returns status, headers and body. The status is 0 without a
// complete response.
func (c client) do(t *testing.T, method, path string, body []byte, headers ...string) (int, http.Header, []byte) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()

	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil, nil
	}

	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("X-Project", c.project)

	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, nil
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, nil
	}

	return res.StatusCode, res.Header, text
}

// container creates a container, and returns its UUID and the path of its files by name.
func (c client) container(t *testing.T, name string) (id, files string) {
	t.Helper()

	id, _ = c.want(t, 201, "POST", "/containers", fmt.Sprintf(`{"name": %q}`, name))["uuid"].(string)
	return id, "/files/" + c.project + "/" + id + "/"
}

// wantComplete checks that a file is complete, or absent if mayBeGone is set.
func (c client) wantComplete(t *testing.T, path string, want []byte, mayBeGone bool) (exists bool) {
	t.Helper()

	status, _, got := c.do(t, "GET", path, nil)
	if mayBeGone && status == 404 {
		return false
	}

	if status != 200 || sha256.Sum256(got) != sha256.Sum256(want) {
		t.Errorf("%s: status %d, %d bytes, want %d: %.60q", path, status, len(got), len(want), got)
	}

	return true
}

// rawWriter uploads files as raw bodies.
func rawWriter(t *testing.T, c client) *writer {
	t.Helper()

	_, files := c.container(t, "raw")
	return &writer{next: 1,
		write: func(c client, n int) bool {
			status, _, _ := c.do(t, "PUT", files+strconv.Itoa(n), writerContent("raw", n))
			return status == 201 || status == 200
		},
		check: func(c client, w *writer) {
			acknowledged := map[int]bool{}
			for _, n := range w.acknowledged {
				acknowledged[n] = true
			}

			for n := 1; n < w.next; n++ {
				c.wantComplete(t, files+strconv.Itoa(n), writerContent("raw", n), !acknowledged[n])
			}
		}}
}

// replacer replaces one file repeatedly.
func replacer(t *testing.T, c client) *writer {
	t.Helper()

	_, files := c.container(t, "replaced")
	now := 0 // acknowledged, or found after a crash; 0: no file

	return &writer{next: 1,
		write: func(c client, n int) bool {
			status, _, _ := c.do(t, "PUT", files+"same", writerContent("replaced", n))
			done := status == 201 || status == 200
			if done {
				now = n
			}

			return done
		},
		check: func(c client, w *writer) {
			tried := w.next - 1
			status, _, got := c.do(t, "GET", files+"same", nil)

			switch {
			case status == 404 && now == 0:
			case status == 200 && now > 0 && bytes.Equal(got, writerContent("replaced", now)):
			case status == 200 && bytes.Equal(got, writerContent("replaced", tried)):
				now = tried
			default:
				t.Errorf(
					"the file has neither the acknowledged content (%d) nor the last one sent (%d): status %d, %.40q",
					now, tried, status, got)
			}
		}}
}

const tusVersion = "Tus-Resumable: 1.0.0"

// resumer uploads files in parts by the platform API.
func resumer(t *testing.T, c client) *writer {
	t.Helper()

	id, files := c.container(t, "resumed")
	return tusWriter(t, files, []string{tusVersion}, func(c client, name, length string) (location string, ok bool) {
		status, h, _ := c.do(t, "POST", "/containers/"+id+"/tus", nil, tusVersion, length,
			"Upload-Metadata: filename "+base64.StdEncoding.EncodeToString([]byte(name)))
		_, location, _ = strings.Cut(h.Get("Location"), "/containers/")

		return "/containers/" + location, status == 201
	})
}

// tusWriter uploads files in parts by the tus protocol, with headers of every request, into the
// folder at a path. It resumes an interrupted upload at the server's offset. begin begins an
// upload.
func tusWriter(
	t *testing.T, files string, headers []string,
	begin func(c client, name, length string) (location string, ok bool),
) *writer {
	const parts = 4

	// of upload n: its location, and its acknowledged bytes
	locations, kept := map[int]string{}, map[int]int{}

	send := func(c client, n, at int) bool {
		content := writerContent("resumed", n)
		for at < len(content) {
			end := min(at+len(content)/parts+1, len(content))
			status, h, _ := c.do(t, "PATCH", locations[n], content[at:end], append(headers,
				"Content-Type: application/offset+octet-stream", "Upload-Offset: "+strconv.Itoa(at))...)
			if status != 204 {
				return false
			}

			if at = end; h.Get("Upload-Offset") != strconv.Itoa(at) {
				t.Errorf("got Upload-Offset %s, want %d", h.Get("Upload-Offset"), at)
			}

			kept[n] = at
		}

		return true
	}

	return &writer{next: 1,
		write: func(c client, n int) bool {
			length := "Upload-Length: " + strconv.Itoa(len(writerContent("resumed", n)))
			location, ok := begin(c, strconv.Itoa(n), length)
			if !ok {
				return false
			}

			locations[n] = location
			return send(c, n, 0)
		},
		check: func(c client, w *writer) {
			n := w.next - 1
			if w.lastAcked() != n && locations[n] != "" { // the upload was interrupted
				status, h, text := c.do(t, "HEAD", locations[n], nil, headers...)
				at, err := strconv.Atoi(h.Get("Upload-Offset"))
				if status != 200 || err != nil || at < kept[n] {
					t.Errorf("upload %d goes on at %q, %d bytes were acknowledged: status %d %s", n,
						h.Get("Upload-Offset"), kept[n], status, text)
				} else if !send(c, n, at) {
					t.Errorf("upload %d does not go on from %d", n, at)
				}

				w.acknowledged = append(w.acknowledged, n)
			}

			for _, n := range w.acknowledged {
				c.wantComplete(t, files+strconv.Itoa(n), writerContent("resumed", n), false)
			}
		}}
}

// deleter uploads three files into a folder and deletes them: file by file, by folder, or with
// their container.
func deleter(t *testing.T, c client, what string) *writer {
	t.Helper()

	type folder struct {
		container, files string
		uuids            []string
		begun            bool // deletion requested
	}

	folders := map[int]*folder{}
	var id, files string
	if what != "container" {
		id, files = c.container(t, "deleted-"+what)
	}

	name := func(n, i int) string { return fmt.Sprintf("%d/%d", n, i) }
	return &writer{next: 1,
		write: func(c client, n int) bool {
			f := &folder{container: id, files: files}
			if what == "container" {
				a := c.send(t, "POST", "/containers", fmt.Sprintf(`{"name": "deleted-%d"}`, n))
				if a.status != 201 {
					return false
				}

				f.container, _ = a.content["uuid"].(string)
				f.files = "/files/" + c.project + "/" + f.container + "/"
			}

			for i := range 3 {
				a := c.sendAs(t, "PUT", f.files+name(n, i), "text/plain",
					bytes.NewReader(writerContent("deleted", n+i)))
				if a.status != 201 && a.status != 200 {
					return false
				}

				of, _ := a.content["uuid"].(string)
				f.uuids = append(f.uuids, of)
			}

			folders[n], f.begun = f, true

			switch what {
			case "folder":
				return c.send(t, "DELETE", fmt.Sprintf("/containers/%s/folders/%d", f.container, n), "").status == 200
			case "container":
				return c.send(t, "DELETE", "/containers/"+f.container+"?force=true", "").status == 200
			}

			for _, of := range f.uuids {
				if c.send(t, "DELETE", "/containers/"+f.container+"/files/"+of, "").status != 200 {
					return false
				}
			}

			return true
		},
		check: func(c client, w *writer) {
			acknowledged := map[int]bool{}
			for _, n := range w.acknowledged {
				acknowledged[n] = true
			}

			for n, f := range folders {
				remaining := 0
				for i := range 3 {
					if c.wantComplete(t, f.files+name(n, i), writerContent("deleted", n+i), true) {
						remaining++
					}
				}

				partial := what != "file" && remaining != 0 && remaining != 3
				if (acknowledged[n] && remaining > 0) || partial {
					t.Errorf("deleting %s %d: acknowledged: %t, and %d of 3 files are there", what, n,
						acknowledged[n], remaining)
				}
			}
		}}
}

// fileWriters returns writers for every kind of change to files.
func fileWriters(t *testing.T, c client) []*writer {
	t.Helper()

	return []*writer{
		rawWriter(t, c), replacer(t, c), resumer(t, c), deleter(t, c, "file"),
		deleter(t, c, "folder"), deleter(t, c, "container"), objectWriter(t, c), multipartWriter(t, c),
		objectResumer(t, c),
	}
}

// waitForUpload waits until more than half a file has arrived, or until a timeout.
func (p *process) waitForUpload() {
	deadline := time.After(time.Second)
	for {
		names, _ := filepath.Glob(filepath.Join(p.dir, "storage", ".unfinished", "*"))
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.Size() > 100<<10 {
				return
			}
		}

		select {
		case <-deadline:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// waitUntilServing waits until requests succeed again: pools can still hold dead connections.
func (c client) waitUntilServing(t *testing.T) {
	t.Helper()

	eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz?full=1") == 200 })
	inARow := 0
	eventually(t, "requests succeed again", func() bool {
		if inARow++; c.send(t, "GET", "/tables", "").status != 200 {
			inARow = 0
		}
		return inARow == 10
	})
}
