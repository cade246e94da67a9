package object

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// path returns the path of a file's blob on the disk.
func (b *bucket) path(f File) string {
	b.t.Helper()

	id, err := pg.Value[uuid.UUID](b.t.Context(), b.project.Trusted(),
		`select blob_uuid from storage.files where uuid = $1`, f.UUID)
	if err != nil {
		b.t.Fatal(err)
	}

	return filepath.Join(b.folder, blobKey(b.project.UUID, id))
}

// putOrphan stores a blob of a given age that no file refers to, and returns its path and UUID.
func (b *bucket) putOrphan(age time.Duration) (string, uuid.UUID) {
	b.t.Helper()

	id := uuid.New()
	key := blobKey(b.project.UUID, id)
	path := filepath.Join(b.folder, key)

	_, err := b.store.Put(b.t.Context(), key, strings.NewReader("planted"), 100)
	if err := errors.Join(err, os.Chtimes(path, time.Time{}, time.Now().Add(-age))); err != nil {
		b.t.Fatal(err)
	}

	return path, id
}

func (b *bucket) record(table string, id uuid.UUID) {
	b.t.Helper()

	if _, err := b.project.Trusted().Exec(b.t.Context(), "insert into storage."+table+" (blob_uuid) values ($1)",
		id); err != nil {
		b.t.Fatal(err)
	}
}

const pastOrphanAge = projectdb.MinOrphanAge + time.Hour

func TestVerify(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	whole, missing, truncated, flipped := b.create("whole", "hello"), b.create("lost", "hello"), b.create("cut",
		"hello"), b.create("flipped", "hello")

	flippedPath := b.path(flipped)
	if err := errors.Join(os.Remove(b.path(missing)), os.WriteFile(b.path(truncated), []byte("hell"), 0o600),
		os.WriteFile(flippedPath, []byte("jello"), 0o600),
		os.Chtimes(b.path(whole), time.Time{}, time.Now().Add(-pastOrphanAge))); err != nil {
		t.Fatal(err)
	}

	orphan, _ := b.putOrphan(pastOrphanAge)
	b.putOrphan(time.Minute)
	_, arriving := b.putOrphan(pastOrphanAge)
	_, leaving := b.putOrphan(pastOrphanAge)

	b.record("uploads", arriving)
	b.record("discarded", leaving)

	foreign := filepath.Join(filepath.Dir(orphan), "stray")
	if err := errors.Join(os.WriteFile(foreign, []byte("x"), 0o600),
		os.Chtimes(foreign, time.Time{}, time.Now().Add(-pastOrphanAge))); err != nil {
		t.Fatal(err)
	}

	for sums, want := range map[bool]Verified{
		false: {Files: 4, Damaged: 2, Orphans: 2, Moving: 3}, true: {Files: 4, Damaged: 3, Orphans: 2, Moving: 3},
	} {
		var found []string
		got, err := Verify(t.Context(), b.project, b.store, sums, func(d Inconsistency) {
			found = append(found, fmt.Sprint(d.File, " ", d.What))
		})
		if err != nil || got != want {
			t.Errorf("sums %t: got %+v, %v, want %+v", sums, got, err, want)
		}

		noFile := uuid.Nil.String()
		expected := []string{noFile + " 1 bytes without a file", noFile + " 7 bytes without a file",
			missing.UUID.String() + " is missing its bytes", truncated.UUID.String() + " has 4 of 5 bytes"}

		if sums {
			expected = append(expected, flipped.UUID.String()+" does not match its checksum")
		}

		slices.Sort(found)
		slices.Sort(expected)

		if diff := cmp.Diff(expected, found); diff != "" {
			t.Errorf("sums %t: -want +got\n%s", sums, diff)
		}
	}

	n, err := RemoveOrphans(t.Context(), b.project, b.store, projectdb.MinOrphanAge)
	if n != 1 || err != nil {
		t.Errorf("removed %d orphans, %v, want 1", n, err)
	}

	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Errorf("got %v, want the orphan to be removed", err)
	}
	// Files with bytes, and the recent, arriving, leaving and foreign blobs.
	if remaining := len(b.blobs()); remaining != 3+4 {
		t.Errorf("%d blobs remain, want 7: %q", remaining, b.blobs())
	}
}

// TestVerifyMany spans several batches while files are created and deleted, which is no
// disagreement.
func TestVerifyMany(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	first := b.create("first", "x")
	if _, err := b.project.Trusted().Exec(t.Context(), `
		insert into storage.files
			(uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
		select gen_random_uuid(), container_uuid, 'lost ' || n, mime_type, size, sha256, gen_random_uuid(),
		       created_by, updated_by
		from storage.files, generate_series(1, 2 * $1) n`, verifyBatch); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		b.putOrphan(pastOrphanAge)
	}

	changed := false
	got, err := Verify(t.Context(), b.project, b.store, false, func(d Inconsistency) {
		if changed {
			return
		}

		changed = true
		b.create("meanwhile", "x")

		if _, err := DeleteFile(t.Context(), b.project, b.container.UUID, first.UUID); err != nil {
			t.Error(err)
		}
		if _, err := Discard(t.Context(), b.project, b.store); err != nil {
			t.Error(err)
		}
	})
	if err != nil || got.Damaged != 2*verifyBatch || got.Orphans != 3 {
		t.Errorf("got %+v, %v, want %d damaged and 3 orphans", got, err, 2*verifyBatch)
	}
}
