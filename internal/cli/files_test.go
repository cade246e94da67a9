package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
)

func TestVerifyFiles(t *testing.T) {
	t.Parallel()

	service := blobtest.New(t)
	for name, option := range map[string]apitest.Option{"folder": func(*config.Config) {}, "S3": service.Configure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			a := apitest.New(t, option)
			folder := a.Config.StorageDir()
			if name == "S3" {
				folder = filepath.Join(service.Dir, "some/prefix")
			}

			socle := func(args ...string) (string, int) {
				var out, log bytes.Buffer
				status := Run(t.Context(), args, []string{"SOCLE_DATA_DIR=" + a.Config.DataDir,
					"SOCLE_DATABASE_URL=" + string(a.Config.DatabaseURL),
					"SOCLE_STORAGE_URL=" + a.Config.StorageURL, "SOCLE_S3_ACCESS_KEY=" + string(a.Config.S3AccessKey),
					"AWS_SECRET_ACCESS_KEY=" + string(a.Config.S3SecretKey)}, &out, &log)

				return out.String() + log.String(), status
			}

			c := a.Create("/containers", `{"name": "reports"}`)
			file := a.Send("POST", "/containers/"+c+"/files",
				"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n",
				"Content-Type: multipart/form-data; boundary=b").Want(201).Get("uuid").(string)

			out, status := socle("files", "verify", "--sums")
			if status != 0 ||
				!strings.Contains(out,
					"project "+a.Project+": 1 files, 0 damaged, 0 orphans, 0 in flight\n") {
				t.Errorf("got status %d, %q", status, out)
			}

			if out, status := socle("doctor"); status != 0 {
				t.Errorf("doctor: got status %d, %q", status, out)
			}

			var path string
			err := filepath.WalkDir(filepath.Join(folder, "projects"), func(
				name string, d fs.DirEntry, err error,
			) error {
				if err == nil && !d.IsDir() {
					path = name
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, []byte("jello"), 0o600); err != nil {
				t.Fatal(err)
			}

			if out, status := socle("files", "verify"); status != 0 {
				t.Errorf("got status %d, %q", status, out)
			}

			out, status = socle("files", "verify", "--sums")
			if status != 1 || !strings.Contains(out, "file "+file+" does not match its checksum") {
				t.Errorf("got status %d, %q", status, out)
			}

			a.Post("/projects/"+a.Project+"/pause", "").Want(200)

			if out, status := socle("files", "verify", "--sums"); status != 1 ||
				!strings.Contains(out, "file "+file+" does not match its checksum") {
				t.Errorf("of a paused project: got status %d, %q", status, out)
			}

			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}

			out, status = socle("files", "verify")
			if status != 1 || !strings.Contains(out, "file "+file+" is missing its bytes") {
				t.Errorf("got status %d, %q", status, out)
			}

			if err := os.MkdirAll(filepath.Join(folder, "projects", apitest.MissingUUID), 0o700); err != nil {
				t.Fatal(err)
			}

			if out, _ := socle("files", "verify"); !strings.Contains(out, "orphan projects/"+apitest.MissingUUID) &&
				name == "folder" {
				t.Errorf("got %q", out)
			}
		})
	}
}
