package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestRestIsExplained(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		args    []string
		environ []string
		status  int
		out     string
		log     string
	}{
		{args: []string{"rest", "--help"}, out: "PGRST_DB_URI"},
		{args: []string{"rest", "--example"}, out: "# db-uri = "},
		{args: []string{"rest", "a", "b"}, status: 2, log: `"b"`},
		{args: []string{"rest", "/nowhere/socle.conf"}, status: 2, log: "/nowhere/socle.conf"},
		{args: []string{"rest"}, environ: []string{"PGRST_DB_SCHEMAZ=x"},
			status: 2, log: "did you mean PGRST_DB_SCHEMAS"},
		{args: []string{"rest", "--ready"}, status: 1, log: "admin-server-port"},
		{args: []string{"rest", "--ready"}, environ: []string{"PGRST_ADMIN_SERVER_PORT=1", "PGRST_SERVER_HOST=!4"},
			status: 1, log: "http://localhost:1/ready does not respond"},
	} {
		out, log, status := run(t, test.environ, test.args...)
		if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(log, test.log) ||
			(test.status != 0) != (log != "") {
			t.Errorf("socle %v: got status %d, %q, %q", test.args, status, out, log)
		}
	}
}

// TestRest serves until canceled. A signal reloads the schema and does not end the command.
func TestRest(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	out, stdout := io.Pipe()
	ended := make(chan int, 1)

	var log strings.Builder
	socket := filepath.Join(t.TempDir(), "admin")
	environ := []string{
		"PGRST_DB_URI=" + url, "PGRST_SERVER_PORT=0", "PGRST_SERVER_HOST=127.0.0.1",
		"PGRST_ADMIN_SERVER_UNIX_SOCKET=" + socket,
	}

	go func() {
		ended <- Run(ctx, []string{"rest"}, environ, stdout, &log)
		_ = stdout.Close()
	}()

	buffer := make([]byte, 200)
	n, err := out.Read(buffer)
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "The rows are served at http://127.0.0.1:") {
		t.Fatalf("got stdout %q, %v", buffer[:n], err)
	}

	if n, err = out.Read(buffer); err != nil ||
		!strings.HasPrefix(string(buffer[:n]), "Health and metrics: unix:"+socket) {
		t.Fatalf("got stdout %q, %v", buffer[:n], err)
	}

	if told, log, status := run(t, environ, "rest", "--ready"); status != 0 || told != "OK: "+socket+"\n" {
		t.Errorf("ready: %q, %q, status %d", told, log, status)
	}

	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR1) // else a late signal would end the tests

	defer signal.Stop(arrived)

	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}

	<-arrived
	stop()

	if status := <-ended; status != 0 || log.Len() != 0 {
		t.Errorf("status %d, %q", status, log.String())
	}
}
