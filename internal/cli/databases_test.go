package cli

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestDatabases(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	environ := []string{"SOCLE_DATA_DIR=" + t.TempDir(), "SOCLE_DATABASE_URL=" + url}
	list := func() string {
		t.Helper()

		var out, log bytes.Buffer
		if status := Run(t.Context(), []string{"databases"}, environ, &out, &log); status != 0 {
			t.Fatalf("got status %d, want 0: %s", status, log.String())
		}

		return out.String()
	}
	if got, want := list(), "PROJECT  UUID  STATUS  DATABASE\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	const project = `
		set session_replication_role = replica; -- a project without an organization
		insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ('01912b8c-0000-7000-8000-00000000abcd', gen_random_uuid(), 'shop', 'paused', gen_random_uuid(), gen_random_uuid())`
	if _, err := conn.Exec(t.Context(), project); err != nil {
		t.Fatal(err)
	}

	row := regexp.MustCompile(`(?m)^shop +01912b8c-0000-7000-8000-00000000abcd +paused +socle_[0-9a-f]{32}$`)
	if got := list(); !row.MatchString(got) {
		t.Errorf("got %s, want a row %s", got, row)
	}
}
