package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"socle/internal/pgtest"
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
		{args: []string{"rest"}, environ: []string{"PGRST_DB_SCHEMAZ=x"}, status: 2, log: "the nearest is PGRST_DB_SCHEMAS"},
	} {
		out, log, status := run(t, test.environ, test.args...)
		if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(log, test.log) || (test.status != 0) != (log != "") {
			t.Errorf("socle %v: got status %d, %q, %q", test.args, status, out, log)
		}
	}
}

// TestRest serves until it is told to stop, and reads the schema again on a signal, which does not end it.
func TestRest(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, stdout := io.Pipe()
	ended := make(chan int, 1)
	var log strings.Builder
	go func() {
		ended <- Run(ctx, []string{"rest"}, []string{"PGRST_DB_URI=" + url, "PGRST_SERVER_PORT=0", "PGRST_SERVER_HOST=127.0.0.1"}, stdout, &log)
		_ = stdout.Close()
	}()
	buffer := make([]byte, 200)
	n, err := out.Read(buffer)
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "The rows are served at http://127.0.0.1:") {
		t.Fatalf("it says %q, %v", buffer[:n], err)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR1) // or it could come after the command has ended, and end the tests
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
