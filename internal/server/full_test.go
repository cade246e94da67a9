package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"mime/multipart"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// TestFilesThatDoNotFit limits the size of files, so that a write fails in the middle as on a full
// disk. Uploads and backups beyond the limit must fail without leftovers, the others must succeed.
// FULL_DISK names a folder on a disk of about 4 MiB to use instead, see make full.
func TestFilesThatDoNotFit(t *testing.T) {
	t.Parallel()

	dir, limit, says := t.TempDir(), `ulimit -f 2048; exec "$@"`, "file too large" // the unit of the limit is 512 bytes
	if disk := os.Getenv("FULL_DISK"); disk != "" {
		dir, limit, says = filepath.Join(disk, "data"), `exec "$@"`, "no space left on device"
	}

	url := pgtest.URL(t)
	p := launchWith(t, dir, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", limit, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "SOCLE_DATABASE_URL="+url)

	p.ready()
	c := p.newClient()
	a := c.want(t, 201, "POST", "/containers", `{"name": "reports", "max_file_size": 100000000}`)
	path := fmt.Sprintf("/containers/%s/files", a["uuid"])

	upload := func(name string, size int) int {
		t.Helper()

		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}

		part.Write(bytes.Repeat([]byte("x"), size))
		form.Close()

		return c.sendAs(t, "POST", path, form.FormDataContentType(), &body).status
	}

	stored := func() (sizes []int64) {
		t.Helper()

		err := filepath.WalkDir(filepath.Join(dir, "storage"), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}

			info, err := d.Info()
			if err == nil {
				sizes = append(sizes, info.Size())
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		return sizes
	}

	const fits = 15 << 16 // also when encrypted
	for i, size := range []int{fits, 5 * fits, 100, 20 * fits} {
		want := 201
		if size > fits {
			want = 503
		}

		if got := upload(fmt.Sprint(i), size); got != want {
			t.Errorf("upload of %d bytes: got %d, want %d", size, got, want)
		}
	}

	if got := stored(); len(got) != 2 {
		t.Errorf("there are blobs of %v bytes, want 2", got)
	}
	if list := c.send(t, "GET", path, ""); bytes.Count(list.body, []byte(`"uuid"`)) != 2 {
		t.Errorf("got %d files, want 2: %s", bytes.Count(list.body, []byte(`"uuid"`)), list.body)
	}

	const tus = "Tus-Resumable: 1.0.0"
	status, h, _ := c.do(t, "POST", "/containers/"+fmt.Sprint(a["uuid"])+"/tus", nil, tus,
		fmt.Sprintf("Upload-Length: %d", 5*fits), "Upload-Metadata: filename cmVzdW1lZA==")
	if status != 201 {
		t.Fatalf("begin an upload: %d", status)
	}

	location := h.Get("Location")
	location = location[strings.Index(location, "/containers/"):]
	part := func(at, size, want int) {
		t.Helper()

		if status, _, text := c.do(t, "PATCH", location, bytes.Repeat([]byte("x"), size), tus,
			"Content-Type: application/offset+octet-stream", fmt.Sprintf("Upload-Offset: %d", at)); status != want {
			t.Errorf("a part of %d bytes at %d: got %d, want %d: %s", size, at, status, want, text)
		}
	}

	part(0, 100, 204)
	part(100, 5*fits-100, 503) // not stored

	if _, h, _ := c.do(t, "HEAD", location, nil, tus); h.Get("Upload-Offset") != "100" {
		t.Errorf("the upload is at %q, want 100", h.Get("Upload-Offset"))
	}
	if got := stored(); len(got) != 3 {
		t.Errorf("there are blobs of %v bytes, want 3", got)
	}

	conn := c.projectOf(t, url)
	run := func(sql string) {
		t.Helper()

		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	run(`create table public.noise as select n, gen_random_uuid() as a, gen_random_uuid() as b from generate_series(1, 100000) n`)

	backup := func(want string) (id, reason string) {
		t.Helper()

		id, _ = c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
		eventually(t, "the backup is "+want, func() bool {
			b := c.send(t, "GET", "/backups/"+id, "").content
			reason, _ = b["error"].(string)
			if b["status"] == "failed" && want != "failed" {
				t.Fatalf("the backup failed: %q\n%s", reason, failureLines(p.log.String()))
			}

			return b["status"] == want
		})

		return id, reason
	}
	if _, reason := backup("failed"); reason != "the storage is unavailable" {
		t.Errorf("the reason is %q", reason)
	}

	run(`truncate public.noise`)

	if got := stored(); len(got) != 3 {
		t.Errorf("there are blobs of %v bytes, want 3: of a backup that failed nothing is kept", got)
	}

	id, _ := backup("completed")
	run(`insert into public.noise (n) values (1)`)
	restored := c.want(t, 201, "POST", "/backups/"+id+"/restore", `{"target": "in_place"}`)["uuid"].(string)

	eventually(t, "the restore is over", func() bool { // the outcome depends on the disk
		status := c.send(t, "GET", "/restores/"+restored, "").content["status"]
		return status == "completed" || status == "failed"
	})

	c.waitUntilServing(t)

	if list := c.send(t, "GET", path, ""); bytes.Count(list.body, []byte(`"uuid"`)) != 2 {
		t.Errorf("got %d files, want 2: %s", bytes.Count(list.body, []byte(`"uuid"`)), list.body)
	}
	if log := p.log.String(); !strings.Contains(log, says) {
		t.Errorf("the log does not say why: %s", log)
	}
}

// projectOf connects to the database of a client's project. url is that of the platform database.
func (c client) projectOf(t *testing.T, url string) *pgx.Conn {
	t.Helper()

	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	config.Database = databaseOf(t, url, c.project)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
