package object

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/picture"
	"github.com/socle-dev/socle/internal/projectdb"
)

// newPictureBucket returns a bucket with a picture, its Variants and a counter of scheduled
// discards.
func newPictureBucket(t *testing.T) (*bucket, *Variants, File, *int) {
	t.Helper()

	b := newBucket(t)
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}

	discards := 0
	return b, NewVariants(b.store, func(context.Context, uuid.UUID) {
		discards++
	}), b.create("a.png", out.String()), &discards
}

func (b *bucket) variant(v *Variants, f File, width int) []byte {
	b.t.Helper()

	_, content, err := v.Open(b.t.Context(), b.project, b.member, b.ref(f), picture.Spec{Width: width})
	if err != nil {
		b.t.Fatal(err)
	}
	defer content.Close()

	text, err := io.ReadAll(content)
	if err != nil {
		b.t.Fatal(err)
	}

	return text
}

// widths returns the widths of the cached variants, oldest first.
func (b *bucket) widths() []string {
	b.t.Helper()

	specs, err := pg.Values[string](b.t.Context(), b.project.Trusted(),
		`select split_part(split_part(spec, ':', 2), 'x', 1) from storage.variants order by created_at`)
	if err != nil {
		b.t.Fatal(err)
	}

	return specs
}

// TestEvict evicts the oldest variants until the limits are undercut by a tenth, with their bytes.
func TestEvict(t *testing.T) {
	t.Parallel()

	b, v, f, discards := newPictureBucket(t)
	for width := 1; width <= 10; width++ {
		b.variant(v, f, width)
	}

	evict := func(maxCount, maxBytes int64, want ...string) {
		t.Helper()

		if err := v.evict(t.Context(), b.project, maxCount, maxBytes); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, b.widths()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}

	evict(10, 1<<20, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")

	if *discards != 0 {
		t.Errorf("discarded %d times, want 0", *discards)
	}

	evict(9, 1<<20, "3", "4", "5", "6", "7", "8", "9", "10")

	sizes, err := pg.Values[int64](t.Context(), b.project.Trusted(),
		`select size from storage.variants order by created_at desc`)
	if err != nil {
		t.Fatal(err)
	}

	evict(100, (sizes[0]+sizes[1])*10/9+1, "9", "10")
	if _, err := Discard(t.Context(), b.project, b.store); err != nil {
		t.Error(err)
	}

	b.wantBlobs(3)

	if *discards != 2 {
		t.Errorf("discarded %d times, want 2", *discards)
	}
}

// wantBlobs checks the number of blobs and that no upload is recorded.
func (b *bucket) wantBlobs(want int) {
	b.t.Helper()

	if blobs := len(b.blobs()); blobs != want || b.uploads() != 0 {
		b.t.Errorf("%d blobs and %d uploads, want %d and 0", blobs, b.uploads(), want)
	}
}

// TestVariantsAreNoOrphans checks that verification and cleanup know the blobs of variants of any
// age.
func TestVariantsAreNoOrphans(t *testing.T) {
	t.Parallel()

	b, v, f, _ := newPictureBucket(t)
	b.variant(v, f, 10)
	b.variant(v, f, 20)

	var blobs []uuid.UUID
	for _, path := range b.blobs() {
		id := uuid.MustParse(filepath.Base(path))
		blobs = append(blobs, id)

		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-pastOrphanAge)); err != nil {
			t.Fatal(err)
		}
	}

	got, err := Verify(t.Context(), b.project, b.store, true, func(d Inconsistency) { t.Errorf("reported %+v", d) })
	if want := (Verified{Files: 1, Kept: 2}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}

	if n, err := RemoveOrphans(t.Context(), b.project, b.store, projectdb.MinOrphanAge); n != 0 || err != nil {
		t.Errorf("removed %d orphans, %v, want none", n, err)
	}

	// A leftover record of an upload does not delete the variant.
	for _, id := range blobs {
		if _, err := b.project.Trusted().Exec(t.Context(),
			`insert into storage.uploads (blob_uuid, started_at) values ($1, now() - interval '2 days')`,
			id); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := Sweep(t.Context(), b.project, b.store, projectdb.MinOrphanAge); err != nil {
		t.Error(err)
	}

	b.wantBlobs(3)
}

// TestVariantFails checks that a failed variant leaves nothing behind and that the next one
// succeeds.
func TestVariantFails(t *testing.T) {
	t.Parallel()

	b, v, f, _ := newPictureBucket(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	if _, _, err := v.Open(canceled, b.project, b.member, b.ref(f), picture.Spec{Width: 10}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}

	if err := os.Remove(b.path(f)); err != nil {
		t.Fatal(err)
	}

	if _, _, err := v.Open(t.Context(), b.project, b.member, b.ref(f), picture.Spec{Width: 10}); !fault.Is(err,
		fault.Internal) {
		t.Errorf("file without bytes: got %v, want Internal", err)
	}

	b.wantBlobs(0)

	f = b.create("text.png", "no picture")
	if _, _, err := v.Open(t.Context(), b.project, b.member, b.ref(f), picture.Spec{Width: 10}); !fault.Is(err,
		fault.Unprocessable) {
		t.Errorf("text file: got %v, want Unprocessable", err)
	}

	b.wantBlobs(1)
}
