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

	"github.com/socle-dev/socle/internal/pgtest"
)

// interceptFsync intercepts fsync in all processes started by the test from now on. It calls asked
// with the path, and the fsync fails with the returned error. It needs no privileges. It holds for
// this thread and its child processes, and ends with the test.
func interceptFsync(t *testing.T, asked func(path string) syscall.Errno) {
	t.Helper()

	const (
		load, equal, answer    = 0x20, 0x15, 0x06 // BPF: load a word of the call; skip unless equal; return
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
				continue // the calling process has ended
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

// durableState models what survives a power cut in the worst case: the entries of each folder and
// the bytes of each file as of the last fsync.
type durableState struct {
	mu      sync.Mutex
	entries map[uint64][]string // by inode of the folder
	bytes   map[uint64]string
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()

	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return 0
	}

	return info.Sys().(*syscall.Stat_t).Ino
}

// synced records the current state of a file or folder.
func (d *durableState) synced(t *testing.T, path string) {
	t.Helper()

	d.mu.Lock()
	defer d.mu.Unlock()

	if all, err := os.ReadDir(path); err == nil {
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}

		d.entries[inode(t, path)] = names
		return
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}

	d.bytes[inode(t, path)] = string(text)
}

// check fails the test unless a file below a folder survives a power cut unchanged.
func (d *durableState) check(t *testing.T, folder, path string) {
	t.Helper()

	rest, err := filepath.Rel(folder, path)
	if err != nil {
		t.Fatal(err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	at := folder
	for part := range strings.SplitSeq(rest, "/") {
		if !slices.Contains(d.entries[inode(t, at)], part) {
			t.Errorf("a power cut leaves no %s in %s", part, at)
		}
		at = filepath.Join(at, part)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if kept, ok := d.bytes[inode(t, path)]; !ok || kept != string(text) {
		t.Errorf("a power cut leaves %d bytes of %s, want %d", len(kept), path, len(text))
	}
}

// TestPowerCut checks the order of fsyncs. Stored bytes must be durable when an upload, backup or
// restore is acknowledged, and a backup must show as completed only after that.
func TestPowerCut(t *testing.T) {
	t.Parallel()

	dir, url := t.TempDir(), pgtest.URL(t)
	storage := filepath.Join(dir, "storage")
	platform := connect(t, url)
	d := &durableState{entries: map[uint64][]string{}, bytes: map[uint64]string{}}
	of := map[string]int{} // numbers of files by kind

	interceptFsync(t, func(path string) syscall.Errno {
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

	id, _ := c.runBackup(t, "completed")
	c.restoreInPlace(t, "/backups/"+id)

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
		t.Errorf("fsyncs: got %v, want %v", of, want)
	}
}

// TestDiskLosesWrites lets fsync fail with EIO, as on a failing disk. Nothing may be acknowledged,
// and all must work again once the disk does.
func TestDiskLosesWrites(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	var broken atomic.Bool
	interceptFsync(t, func(path string) syscall.Errno {
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
	c.put(t, folder+"a", 503)
	c.put(t, folder+"b", 503)
	c.wantComplete(t, folder+"a", []byte(folder+"a"), false)

	if status, _, _ := c.do(t, "GET", folder+"b", nil); status != 404 {
		t.Errorf("unacknowledged file: got status %d", status)
	}
	if _, reason := c.runBackup(t, "failed"); reason != "the storage is unavailable" {
		t.Errorf("the reason is %q", reason)
	}
	if log := p.log.String(); !strings.Contains(log, "input/output error") {
		t.Errorf("the log has no reason: %s", failureLines(log))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "storage/projects/*/*/*/*")); len(left) != 1 {
		t.Errorf("got blobs %v, want one", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "storage/.unfinished/*")); len(left) > 0 {
		t.Errorf("got unfinished uploads %v, want none", left)
	}

	broken.Store(false)
	c.waitUntilServing(t)
	c.put(t, folder+"a", 200)
	c.runBackup(t, "completed")
}

// put uploads a file to a path and expects a status.
func (c client) put(t *testing.T, path string, want int) {
	t.Helper()

	if status, _, body := c.do(t, "PUT", path, []byte(path), "Content-Type: text/plain"); status != want {
		t.Errorf("%s: got %d, want %d: %s", path, status, want, body)
	}
}

// runBackup runs a backup and expects its final status.
func (c client) runBackup(t *testing.T, want string) (id, reason string) {
	t.Helper()

	id, _ = c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
	return id, c.waitForEnd(t, "/backups/"+id, want)
}

// restoreInPlace restores a backup in place.
func (c client) restoreInPlace(t *testing.T, backup string) {
	t.Helper()

	id, _ := c.want(t, 201, "POST", backup+"/restore", `{"target": "in_place"}`)["uuid"].(string)
	c.waitForEnd(t, "/restores/"+id, "completed")
}

// waitForEnd waits for the end of a backup or restore, expects its status and returns its error.
func (c client) waitForEnd(t *testing.T, path, want string) (reason string) {
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
