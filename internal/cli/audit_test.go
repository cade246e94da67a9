package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestVerifyAudit(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	environ := []string{"SOCLE_DATA_DIR=" + t.TempDir(), "SOCLE_DATABASE_URL=" + url}
	socle := func(args ...string) (string, int) {
		var out, log bytes.Buffer
		status := Run(t.Context(), args, environ, &out, &log)

		return out.String() + log.String(), status
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	if out, status := socle("admin", "rotate-key"); status != 0 {
		t.Fatal(out)
	}

	out, status := socle("audit", "verify")
	if status != 0 || !strings.Contains(out, "platform: 1 entries, the last one 1 ") {
		t.Errorf("got status %d, %q", status, out)
	}

	if _, err := conn.Exec(t.Context(), `update socle.audit set entry = '{"action": "nothing"}'`); err != nil {
		t.Fatal(err)
	}

	out, status = socle("audit", "verify")
	if status != 1 || !strings.Contains(out, "entry 1 does not match its hash") {
		t.Errorf("got status %d, %q", status, out)
	}
}
