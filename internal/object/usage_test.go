package object

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestCreateFileCounts uploads into two containers at once, more files than the quota allows. The
// counts of both and of the project are exact, as are those of the lists after a thousand changes.
func TestCreateFileCounts(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	other := newContainer(t, b.project, "others")
	const clients, quota = 24, 17
	most, noLimit := int64(quota), DefaultQuotaFiles
	limit := func(files *int64) {
		t.Helper()

		if err := b.project.InTx(t.Context(), func(tx pgx.Tx) error {
			_, err := UpdateQuota(t.Context(), tx, files, nil)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(&most)

	var group sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		group.Go(func() {
			container := []Container{b.container, other}[i%2]
			_, _, errs[i] = CreateFile(t.Context(), b.project, b.store, b.member, container.Ref(),
				NewFile{FullFileName: fmt.Sprint(i), MimeType: "text/plain", Content: strings.NewReader("12345")})
		})
	}

	group.Wait()

	created := 0
	for _, err := range errs {
		switch {
		case err == nil:
			created++
		case !fault.Is(err, fault.TooLarge):
			t.Errorf("got %v, want TooLarge", err)
		}
	}

	usage, err := GetUsage(t.Context(), b.project)
	if want := (Usage{Count: quota, Bytes: 5 * quota}); err != nil || usage != want || created != quota {
		t.Errorf("got %d files and %+v (%v), want %d and %+v", created, usage, err, quota, want)
	}

	if blobs, uploads := len(b.blobs()), b.uploads(); blobs != quota || uploads != 0 {
		t.Errorf("got %d blobs and %d uploads, want %d and 0", blobs, uploads, quota)
	}

	type counts struct{ Counted, Size, Files, Pending, Noted, Placed int64 }
	count := func() counts {
		t.Helper()

		c, err := pg.One[counts](t.Context(), b.project.Trusted(), `
			select sum(total_files)::bigint as counted, sum(total_size)::bigint as size,
				(select count(*) from storage.files) as files, sum(pending_changes)::bigint as pending,
				(select count(*) from storage.sorted_pending) as noted,
				(select sum(files)::bigint from storage.sorted_blocks) as placed
			from storage.containers`)
		if err != nil {
			t.Fatal(err)
		}

		return c
	}

	if got, want := count(), (counts{quota, 5 * quota, quota, quota, quota, 0}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	limit(&noLimit)
	if _, err := pg.Exec(t.Context(), b.project.Trusted(),
		`update storage.containers set pending_changes = 999`); err != nil {
		t.Fatal(err)
	}

	const sorts = 5
	b.create("thousandth", "12345")
	got := count()
	want := counts{quota + 1, 5*quota + 5, quota + 1, 999, got.Noted, sorts * (quota + 1 - got.Noted)}
	if got != want || got.Noted >= quota {
		t.Errorf("got %+v, want %+v with notes of one container", got, want)
	}
}
