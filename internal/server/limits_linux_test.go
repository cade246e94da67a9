package server_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/socle-dev/socle/internal/pgtest"
)

// setLimit sets the soft limit of a resource of a running process, such as file size or open files,
// and returns the previous one. It keeps the hard limit.
func setLimit(t *testing.T, pid, resource int, most uint64) (before uint64) {
	t.Helper()

	var old syscall.Rlimit

	call := func(set, get *syscall.Rlimit) {
		t.Helper()

		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
			uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
		if errno != 0 && errno != syscall.ESRCH { // the process has ended
			t.Fatalf("limit process %d: %v", pid, errno)
		}
	}

	call(nil, &old)
	call(&syscall.Rlimit{Cur: most, Max: old.Max}, nil)

	return old.Cur
}

// TestFullVolume fills the volume of PostgreSQL's WAL, so that it panics and can't recover. All
// acknowledged changes must be present, without intervention, once there is space again.
func TestFullVolume(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	made := 0
	write := func() int {
		status := c.send(t, "POST", "/containers", fmt.Sprintf(`{"name": "made-%d"}`, made+1)).status
		if status == 201 {
			made++
		}

		return status
	}

	b := p.inspect(t)
	defer b.close()

	b.exec(`select pg_switch_wal()`) // leaves space for most of a segment of 16 MiB

	for range 5 {
		write()
	}

	before := setLimit(t, p.cmd.Process.Pid, syscall.RLIMIT_FSIZE, 12<<20)

	// its successor inherits the limit
	if err := syscall.Kill(p.postmaster(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	c.waitUntilServing(t)
	first := p.postmaster()

	for range 5 {
		write()
	}

	if made != 10 {
		t.Errorf("%d of 10 were made while there was room", made)
	}

	eventually(t, "PostgreSQL has no room, and has given up", func() bool {
		// fails in the end, and on dead connections
		_, _ = b.database.Pool.Exec(t.Context(), `select pg_logical_emit_message(false, '', repeat('x', 1 << 20))`)
		return p.postmaster() != first
	})

	// Smaller and smaller records fill the rest, until not even recovery has room for its own. A
	// second attempt may find room that the first did not.
	size := 1 << 19
	eventually(t, "PostgreSQL can't recover", func() bool {
		if _, err := b.database.Pool.Exec(t.Context(),
			`select pg_logical_emit_message(false, '', repeat('x', $1))`, size); err != nil {
			size = max(size/2, 1)
		}

		log := p.log.String()
		since := log[strings.LastIndex(log, `msg="PostgreSQL restarted"`)+1:]

		return strings.Count(since, `msg="restart PostgreSQL"`) >= 3
	})

	for _, path := range []string{"/containers", "/tables"} {
		if a := c.send(t, "GET", path, ""); a.status != 500 && a.status != 503 {
			t.Errorf("%s without room: got %d %s", path, a.status, a.body)
		}
	}

	if status := write(); status != 500 && status != 503 {
		t.Errorf("a write without room: got %d", status)
	}
	if got := c.probe(t, "/readyz?full=1"); got != 503 {
		t.Errorf("the server says that it is ready: %d", got)
	}

	setLimit(t, p.cmd.Process.Pid, syscall.RLIMIT_FSIZE, before)
	c.waitUntilServing(t)

	if list := c.send(t, "GET", "/containers?limit=100", ""); strings.Count(string(list.body), `"made-`) != made {
		t.Errorf("%d were acknowledged, and there are: %s", made, list.body)
	}

	c.want(t, 201, "POST", "/containers", `{"name": "afterwards"}`)
}

// TestNoMoreOpenFiles exhausts the file descriptors of the server. Uploads must fail, and work
// again afterwards.
func TestNoMoreOpenFiles(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	url := pgtest.URL(t)
	p := serve(t, dir, "SOCLE_DATABASE_URL="+url)
	c := p.newClient()
	_, folder := c.container(t, "reports")
	conn := c.projectOf(t, url)

	count := func() (n int) {
		t.Helper()

		if err := conn.QueryRow(t.Context(), "select count(*) from storage.files").Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	put := func(name string) int {
		t.Helper()

		status, _, _ := c.do(t, "PUT", folder+name, bytes.Repeat([]byte("x"), 100_000), "Content-Type: text/plain")
		return status
	}

	acknowledged := 0
	for i := range 3 {
		if put(fmt.Sprint("before ", i)) == 200 {
			acknowledged++
		}
	}

	before := setLimit(t, p.cmd.Process.Pid, syscall.RLIMIT_NOFILE, 8) // more than 8 are open and stay open
	refused, unanswered := 0, 0
	for i := 0; i < 20 && unanswered == 0; i++ {
		switch status := put(fmt.Sprint("meanwhile ", i)); status {
		case 200:
			acknowledged++
		case 500, 503:
			refused++
		case 0: // the client has closed its connection after an early refusal, and gets no other
			unanswered++
		default:
			t.Errorf("without files to open: got %d", status)
		}
	}

	if refused == 0 {
		t.Error("no upload failed")
	}

	setLimit(t, p.cmd.Process.Pid, syscall.RLIMIT_NOFILE, before)
	c.waitUntilServing(t)

	if got := put("after"); got != 200 {
		t.Errorf("afterwards: got %d", got)
	}

	for i := range 3 {
		c.wantComplete(t, folder+fmt.Sprint("before ", i), bytes.Repeat([]byte("x"), 100_000), false)
	}

	if got := count(); got < acknowledged+1 || got > acknowledged+1+unanswered {
		t.Errorf("there are %d files, %d were acknowledged", got, acknowledged+1)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "storage/.unfinished/*")); len(left) > 0 {
		t.Errorf("unfinished are %v", left)
	}
}
