package server_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"mime/multipart"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"socle/internal/pgtest"
)

// TestFilesThatDoNotFit gives the server a limit on how large a file may become, which a write meets in the middle, as it meets the end
// of the disk: uploads that don't fit fail, and leave nothing; those that do succeed. FULL_DISK names a folder on a disk of about 4 MiB
// to use in its place, see make full.
func TestFilesThatDoNotFit(t *testing.T) {
	t.Parallel()
	dir, limit, says := t.TempDir(), `ulimit -f 2048; exec "$@"`, "file too large" // the limit is in units of 512 bytes
	if disk := os.Getenv("FULL_DISK"); disk != "" {
		dir, limit, says = filepath.Join(disk, "data"), `exec "$@"`, "no space left on device"
	}
	p := launchBy(t, dir, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", limit, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "SOCLE_DATABASE_URL="+pgtest.URL(t))
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
	const fits = 1 << 20
	for i, size := range []int{fits, 5 * fits, 100, 20 * fits} {
		want := 201
		if size > fits {
			want = 500
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
	if log := p.log.String(); !strings.Contains(log, says) {
		t.Errorf("the log does not say why: %s", log)
	}
}
