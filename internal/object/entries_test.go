package object

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// TestListReadsEntriesOnly checks that a list under policies reads its own entries with the index,
// and no other files of the container.
func TestListReadsEntriesOnly(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for i := range 5 {
		a.mustPut(a.ann, fmt.Sprintf("%s/%d/a.txt", a.ann.Subject, i), "1")
	}
	if _, err := a.project.Trusted().Exec(t.Context(), `
		insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
		select gen_random_uuid(), container_uuid, n || '/b.txt', mime_type, size, sha256, gen_random_uuid(), created_by, updated_by
		from storage.files, unnest('{!,~}'::text[]) side, lateral (select side || i as n from generate_series(1, 20) i) names
		where full_file_name like '%/0/a.txt'`); err != nil {
		t.Fatal(err)
	}

	tx, err := a.project.Trusted().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()

	if _, err := tx.Exec(t.Context(), `
		select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)`,
		string(a.ann.Claims)); err != nil {
		t.Fatal(err)
	}

	for _, descending := range []bool{false, true} {
		l := EntryListing{Prefix: a.ann.Subject + "/", Delimiter: "/", Descending: descending, Limit: 100}
		first, last := l.bounds()
		args := pgx.NamedArgs{"container": a.container.UUID, "first": first, "last": last, "skip": len(l.Prefix) + 1,
			"search": "", "offset": 0, "delimiter": "/", "most": 100, "behind": prefixEnd("/")}

		plan, err := pg.Values[string](t.Context(), tx,
			"explain (analyze, costs off, timing off, summary off) "+l.byEntry("storage.objects"), args)
		got := strings.Join(plan, "\n")
		if err != nil || !strings.Contains(got, "rows=5 loops=1") || strings.Contains(got, "Rows Removed by Filter") {
			t.Errorf("descending %t: got %s (%v), want 5 rows and none removed", descending, got, err)
		}
	}
}
