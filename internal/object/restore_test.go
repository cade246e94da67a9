package object

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// withoutTriggers runs f in a transaction in which triggers and foreign keys are disabled, as in a
// restore.
func withoutTriggers(t *testing.T, p *projectdb.Project, f func(tx pgx.Tx) error) {
	t.Helper()

	if err := pg.InTx(t.Context(), p.Trusted(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "set local session_replication_role = replica"); err != nil {
			return err
		}
		return f(tx)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPrepareRestored gives files new blobs and deletes uploads. All blobs are listed before.
func TestPrepareRestored(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	f := b.create("a.txt", "one")
	upload, discarded := projectdbtest.UUID(t), projectdbtest.UUID(t)
	b.record("uploads", upload)
	b.record("discarded", discarded)

	list := func() []uuid.UUID {
		t.Helper()

		blobs, err := listBlobs(t.Context(), b.project.Trusted())
		if err != nil {
			t.Fatal(err)
		}

		return blobs
	}

	before, err := contentsAfter(t.Context(), b.project.Trusted(), uuid.Nil, 10)
	if err != nil || len(before) != 1 {
		t.Fatalf("got contents %v, %v, want one", before, err)
	}

	old := before[0].BlobUUID
	if got := list(); len(got) != 3 || !slices.Contains(got, old) || !slices.Contains(got, upload) ||
		!slices.Contains(got, discarded) {
		t.Errorf("got blobs %v, want %s, %s and %s", got, old, upload, discarded)
	}

	withoutTriggers(t, b.project, func(tx pgx.Tx) error { return prepareRestored(t.Context(), tx) })

	if got := list(); len(got) != 1 || got[0] == old {
		t.Errorf("got blobs %v after the restore, want a new one", got)
	}

	name, err := nameOfBlob(t.Context(), b.project, list()[0])
	if err != nil || name != f.FullFileName {
		t.Errorf("got name %q, %v, want %q", name, err, f.FullFileName)
	}

	if slices.Contains(unrestoredTables, "files") || !slices.Contains(unrestoredTables, "uploads") {
		t.Error("the list of tables contradicts what was restored")
	}
}

// TestContents lists contents, each once or with all of its blobs.
func TestContents(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	b.create("a.txt", "one")
	b.create("b.txt", "one")
	b.create("c.txt", "three")

	var distinct []projectdb.Content
	if err := eachContent(t.Context(), b.project.Trusted(), func(c projectdb.Content) error {
		c.SHA256 = bytes.Clone(c.SHA256)
		distinct = append(distinct, c)
		return nil
	}); err != nil || len(distinct) != 2 {
		t.Fatalf("got contents %v, %v, want two", distinct, err)
	}

	for _, c := range distinct {
		blob, err := blobOfContent(t.Context(), b.project, c.Size, c.SHA256)
		if err != nil || (c.Size == 5 && blob != c.BlobUUID) {
			t.Errorf("got blob %s, %v of content %v", blob, err, c)
		}
	}

	all := map[uuid.UUID]bool{}
	for last := uuid.Nil; ; {
		some, err := contentsAfter(t.Context(), b.project.Trusted(), last, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}

		for _, c := range some {
			all[c.BlobUUID], last = true, c.BlobUUID
		}
	}

	if len(all) != 3 {
		t.Errorf("got %d blobs in batches, want 3", len(all))
	}
}

// TestRepair deletes files without a container and recomputes counters.
func TestRepair(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	b.create("a.txt", "one")
	other := newContainer(t, b.project, "other")
	if _, _, err := CreateFile(t.Context(), b.project, b.store, b.member, other.Ref(), NewFile{
		FullFileName: "b.txt", MimeType: "text/plain", Content: bytes.NewReader([]byte("three")),
	}); err != nil {
		t.Fatal(err)
	}

	withoutTriggers(t, b.project, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`update storage.usage set files = 70, bytes = 70, max_files = 9`,
			`update storage.containers set total_files = 80, total_size = 80`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}

		if _, err := tx.Exec(t.Context(), `delete from storage.containers where uuid = $1`, other.UUID); err != nil {
			return err
		}
		return repair(t.Context(), tx)
	})

	got, err := pg.Value[string](t.Context(), b.project.Trusted(), `
		select format('%s %s %s, %s %s, %s', u.files, u.bytes, u.max_files, c.total_files, c.total_size,
			(select sum(files) from storage.sorted_blocks where sort = k.sort))
		from storage.usage u, storage.containers c, lateral (select min(sort) as sort from storage.sorted_blocks) k`)
	if want := "1 3 9, 1 3, 1"; err != nil || got != want {
		t.Errorf("got counters %q, %v, want %q", got, err, want)
	}
}

// TestCopyQuota copies the quota of a project to another one.
func TestCopyQuota(t *testing.T) {
	t.Parallel()

	from, to := projectdbtest.New(t), projectdbtest.New(t)
	if _, err := pg.Exec(t.Context(), from.Trusted(), `update storage.usage set max_files = 7`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), to.Trusted(), `update storage.usage set max_bytes = 9`); err != nil {
		t.Fatal(err)
	}

	if err := copyQuota(t.Context(), from.Trusted(), to.Trusted()); err != nil {
		t.Fatal(err)
	}

	got, err := pg.Value[string](t.Context(), to.Trusted(),
		`select format('%s %s', max_files, coalesce(max_bytes::text, 'null')) from storage.usage`)
	if err != nil || got != "7 null" {
		t.Errorf("got quota %q, %v, want 7 null", got, err)
	}
}

// TestBlobTables lists every table with blobs. Of files alone the rows are restored.
func TestBlobTables(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	tables, err := pg.Values[string](t.Context(), b.project.Trusted(), `
		select c.relname::text from pg_attribute a join pg_class c on c.oid = a.attrelid
		where a.attname = 'blob_uuid' and c.relkind = 'r' and c.relnamespace = 'storage'::regnamespace
		  and c.relname <> 'objects'`)
	if err != nil {
		t.Fatal(err)
	}

	listed := slices.Sorted(slices.Values(blobTables))
	slices.Sort(tables)
	if diff := cmp.Diff(tables, listed); diff != "" {
		t.Errorf("tables with blobs -, listed +\n%s", diff)
	}

	for _, name := range tables {
		if got, want := slices.Contains(unrestoredTables, name), name != "files"; got != want {
			t.Errorf("%s: left out is %t, want %t", name, got, want)
		}
	}
}
