package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// TestReadOnlyStorage makes the storage read-only. No write may be acknowledged, stored files must
// remain readable, and all must work again once it is writable. It removes the permissions of the
// folders. With FULL_DISK, see make full, it remounts a file system, as the kernel does after
// finding damage.
func TestReadOnlyStorage(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	storage := filepath.Join(dir, "storage")
	writable := func(yes bool) {
		t.Helper()

		mode := map[bool]fs.FileMode{true: 0o700, false: 0o500}[yes]
		if err := filepath.WalkDir(storage, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			return os.Chmod(name, mode)
		}); err != nil {
			t.Fatal(err)
		}
	}

	says := "permission denied"
	if os.Getenv("FULL_DISK") != "" {
		mount := func(flags uintptr, data string) {
			t.Helper()

			if err := syscall.Mount("socle-read-only", storage, "tmpfs", flags, data); err != nil {
				t.Fatal(err)
			}
		}

		if err := os.Mkdir(storage, 0o700); err != nil {
			t.Fatal(err)
		}

		mount(0, "size=16m,mode=700")
		t.Cleanup(func() { _ = syscall.Unmount(storage, syscall.MNT_DETACH) })

		writable = func(yes bool) {
			t.Helper()

			mount(map[bool]uintptr{true: syscall.MS_REMOUNT, false: syscall.MS_REMOUNT | syscall.MS_RDONLY}[yes], "")
		}

		says = "read-only file system"
	}

	// permissions bind root too without CAP_DAC_OVERRIDE: drop it for this thread and its children,
	// until the test ends
	runtime.LockOSThread()

	const capabilityDrop, passRights = 24, 1 // PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, capabilityDrop, passRights, 0)
	p := serve(t, dir, "SOCLE_DATABASE_URL="+proxyTo(t, pgtest.URL(t)))
	c := p.newClient()
	id, folder := c.container(t, "reports")

	put := func(name, text string, want int) {
		t.Helper()

		if status, _, body := c.do(t, "PUT", folder+name, []byte(text), "Content-Type: text/plain"); status != want {
			t.Errorf("%s: got %d, want %d: %s", name, status, want, body)
		}
	}

	put("a", "as it was", 200)
	put("b", "to be deleted", 200)

	of := "/containers/" + id + "/files"
	_, _, list := c.do(t, "GET", of+"?sort=fullFileName&order=asc", nil)

	var files []struct{ Content []struct{ UUID string } }
	if err := json.Unmarshal(list, &files); err != nil {
		t.Fatal(err)
	}

	writable(false)
	put("a", "changed", 503)
	put("c", "new", 503)
	c.wantComplete(t, folder+"a", []byte("as it was"), false)
	c.want(t, 200, "DELETE", of+"/"+files[0].Content[1].UUID, "") // its bytes are deleted later

	if got := c.probe(t, "/readyz?full=1"); got != 503 {
		t.Errorf("/readyz: got %d", got)
	}
	if _, reason := c.runBackup(t, "failed"); reason != "the storage is unavailable" {
		t.Errorf("the reason is %q", reason)
	}
	if log := p.log.String(); !strings.Contains(log, says) {
		t.Errorf("the log has no reason: %s", failureLines(log))
	}

	writable(true)
	c.waitUntilServing(t)
	put("a", "changed", 200)
	put("c", "new", 200)
	c.runBackup(t, "completed")

	for name, want := range map[string]string{"a": "changed", "c": "new"} {
		c.wantComplete(t, folder+name, []byte(want), false)
	}

	if status, _, _ := c.do(t, "GET", folder+"b", nil); status != 404 {
		t.Errorf("deleted file: got status %d", status)
	}
}

// proxyTo returns an address that proxies to another one. It makes a socket in a folder of
// PostgreSQL's own user reachable for other users.
func proxyTo(t *testing.T, address string) string {
	t.Helper()

	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}

	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	q := u.Query()
	if q.Get("host") != config.Host {
		return address
	}

	socket, dir := fmt.Sprintf(".s.PGSQL.%d", config.Port), t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })

	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}

			go func() {
				defer in.Close()

				out, err := net.Dial("unix", filepath.Join(config.Host, socket))
				if err != nil {
					return
				}
				defer out.Close()

				go func() {
					_, _ = io.Copy(out, in)
					out.Close()
				}()

				_, _ = io.Copy(in, out)
			}()
		}
	}()

	q.Set("host", dir)
	u.RawQuery = q.Encode()

	return u.String()
}
