package server_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"socle/internal/pgtest"
)

// syncs has the system ask whenever a process that this test starts from here on calls fsync: that of what is asked, and fails as is answered. No right is needed
// for it. It holds for this thread and whoever it starts, and ends with the test.
func syncs(t *testing.T, asked func(path string) syscall.Errno) {
	t.Helper()

	const (
		load, equal, answer    = 0x20, 0x15, 0x06 // a word of the call; skip unless it is; the filter's answer
		ask, allow             = 0x7fc00000, 0x7fff0000
		noNewRights            = 38 // PR_SET_NO_NEW_PRIVS
		setFilter, newListener = 1, 8
		receive, send          = 0xc0502100, 0xc0182101 // SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
		goOn                   = 1
	)

	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	filter := []syscall.SockFilter{
		{Code: load}, {Code: equal, Jf: 1, K: syscall.SYS_FSYNC}, {Code: answer, K: ask}, {Code: answer, K: allow},
	}

	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()

	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewRights, 1, 0, 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}

	listener, _, errno := syscall.RawSyscall(seccomp, setFilter, newListener, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Fatal(errno)
	}

	go func() {
		for t.Context().Err() == nil {
			var call struct {
				id         uint64
				pid, flags uint32
				number     int32
				machine    uint32
				from       uint64
				arguments  [6]uint64
			}
			if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, listener, receive,
				uintptr(unsafe.Pointer(&call))); errno != 0 {
				continue // who called is gone
			}

			reply := struct {
				id          uint64
				value       int64
				fails, flag int32
			}{id: call.id}

			path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", call.pid, call.arguments[0]))
			if err != nil {
				path = ""
			}

			if why := asked(path); why != 0 {
				reply.fails = -int32(why)
			} else {
				reply.flag = goOn
			}

			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, listener, send, uintptr(unsafe.Pointer(&reply)))
		}
	}()
}

// durable is what a power cut leaves of a folder at the worst: the entries that a folder had when it was synced, and the bytes that a file had.
type durable struct {
	mu      sync.Mutex
	entries map[uint64][]string // by number of the folder's inode
	bytes   map[uint64]string
}

func number(t *testing.T, path string) uint64 {
	t.Helper()

	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return 0
	}

	return info.Sys().(*syscall.Stat_t).Ino
}

// synced notes what there is of a file or a folder.
func (d *durable) synced(t *testing.T, path string) {
	t.Helper()

	d.mu.Lock()
	defer d.mu.Unlock()

	if all, err := os.ReadDir(path); err == nil {
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}

		d.entries[number(t, path)] = names
		return
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}

	d.bytes[number(t, path)] = string(text)
}

// check fails the test unless a power cut leaves a file below a folder as it is.
func (d *durable) check(t *testing.T, folder, path string) {
	t.Helper()

	rest, err := filepath.Rel(folder, path)
	if err != nil {
		t.Fatal(err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	at := folder
	for part := range strings.SplitSeq(rest, "/") {
		if !slices.Contains(d.entries[number(t, at)], part) {
			t.Errorf("a power cut leaves no %s in %s", part, at)
		}
		at = filepath.Join(at, part)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if kept, ok := d.bytes[number(t, path)]; !ok || kept != string(text) {
		t.Errorf("a power cut leaves %d bytes of %s, want %d", len(kept), path, len(text))
	}
}

// TestPowerCut looks at what the server has the system sync: whatever lies in the storage when an upload, a backup and a restore are acknowledged survives a power cut,
// and a backup shows that it is completed after that, not before.
func TestPowerCut(t *testing.T) {
	t.Parallel()

	dir, url := t.TempDir(), pgtest.URL(t)
	storage := filepath.Join(dir, "storage")
	platform := connect(t, url)
	d := &durable{entries: map[uint64][]string{}, bytes: map[uint64]string{}}
	of := map[string]int{} // files by what they are of

	syncs(t, func(path string) syscall.Errno {
		if !strings.HasPrefix(path, storage) {
			return 0
		}

		d.synced(t, path)

		if strings.Contains(path, "/backups") {
			done := -1
			if err := platform.QueryRow(t.Context(),
				"select count(*) from platform.backups where status = 'completed'").
				Scan(&done); err != nil || done != 0 {
				t.Errorf("%d backups are completed while %s is synced: %v", done, path, err)
			}
		}

		return 0
	})

	p := serve(t, dir, "SOCLE_DATABASE_URL="+url)
	c := p.newClient()
	_, folder := c.container(t, "reports")
	c.put(t, folder+"a", 200)
	c.put(t, folder+"b", 200)

	id, _ := c.backedUp(t, "completed")
	c.carried(t, "/backups/"+id)

	if err := filepath.WalkDir(storage, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}

		d.check(t, storage, path)
		of[map[bool]string{true: filepath.Ext(path), false: "file"}[strings.Contains(path, "/backups/")]]++

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if want := map[string]int{"file": 4, ".dump": 1, ".manifest": 1, "": 2}; !maps.Equal(of, want) {
		t.Errorf("there are %v, want %v", of, want)
	}
}

// TestDiskLosesWrites has fsync fail with EIO, as it does when a disk could not keep what was written to it: nothing is acknowledged, and all works again when the disk does.
func TestDiskLosesWrites(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	var broken atomic.Bool
	syncs(t, func(path string) syscall.Errno {
		if broken.Load() && strings.HasPrefix(path, filepath.Join(dir, "storage")) {
			return syscall.EIO
		}
		return 0
	})

	p := serve(t, dir, "SOCLE_DATABASE_URL="+pgtest.URL(t))
	c := p.newClient()
	_, folder := c.container(t, "reports")
	c.put(t, folder+"a", 200)
	broken.Store(true)
	c.put(t, folder+"a", 500)
	c.put(t, folder+"b", 500)
	c.whole(t, folder+"a", []byte(folder+"a"), false)

	if status, _, _ := c.do(t, "GET", folder+"b", nil); status != 404 {
		t.Errorf("what was not acknowledged: %d", status)
	}
	if _, reason := c.backedUp(t, "failed"); reason != "the storage is unavailable" {
		t.Errorf("the reason is %q", reason)
	}
	if log := p.log.String(); !strings.Contains(log, "input/output error") {
		t.Errorf("the log does not say why: %s", failures(log))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "storage/projects/*/*/*/*")); len(left) != 1 {
		t.Errorf("there are %v, want one blob", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "storage/.unfinished/*")); len(left) > 0 {
		t.Errorf("unfinished are %v", left)
	}

	broken.Store(false)
	c.works(t)
	c.put(t, folder+"a", 200)
	c.backedUp(t, "completed")
}

// put uploads a file, its path, which is to be answered so.
func (c client) put(t *testing.T, path string, want int) {
	t.Helper()

	if status, _, body := c.do(t, "PUT", path, []byte(path), "Content-Type: text/plain"); status != want {
		t.Errorf("%s: got %d, want %d: %s", path, status, want, body)
	}
}

// backedUp makes a backup, which ends as it is to.
func (c client) backedUp(t *testing.T, want string) (id, reason string) {
	t.Helper()

	id, _ = c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
	return id, c.over(t, "/backups/"+id, want)
}

// carried restores a backup in place.
func (c client) carried(t *testing.T, backup string) {
	t.Helper()

	id, _ := c.want(t, 201, "POST", backup+"/restore", `{"target": "in_place"}`)["uuid"].(string)
	c.over(t, "/restores/"+id, "completed")
}

// over waits until a backup or restore has ended, which is to be so, and returns its error.
func (c client) over(t *testing.T, path, want string) (reason string) {
	t.Helper()

	var status any
	eventually(t, path+" is over", func() bool {
		a := c.send(t, "GET", path, "").content
		status = a["status"]
		reason, _ = a["error"].(string)

		return status == "completed" || status == "failed"
	})

	if status != want {
		t.Fatalf("%s is %v, want %s: %q", path, status, want, reason)
	}

	return reason
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
