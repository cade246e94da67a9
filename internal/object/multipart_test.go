package object

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

func (a *application) begin(name string) Multipart {
	a.t.Helper()

	u, err := CreateMultipart(a.t.Context(), a.project, a.container.UUID, NewFile{FullFileName: name})
	if err != nil {
		a.t.Fatal(err)
	}

	return u
}

func (a *application) part(u Multipart, number int, content string) (MultipartPart, error) {
	return PutPart(a.t.Context(), a.project, a.store, a.container.UUID, u, number, strings.NewReader(content), 0)
}

// count returns a number of the project's database.
func (a *application) count(sql string) int64 {
	a.t.Helper()

	n, err := pg.Value[int64](a.t.Context(), a.project.Trusted(), sql, pgx.StrictNamedArgs{})
	if err != nil {
		a.t.Fatal(err)
	}

	return n
}

// TestMultipartBytes checks that the bytes of replaced, aborted, expired and completed parts are
// discarded, and that parts count toward the quota while their upload is in progress.
func TestMultipartBytes(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	ctx := t.Context()
	u := a.begin("one")

	for _, content := range []string{"stale", "first"} {
		if _, err := a.part(u, 1, content); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.count(`select size from storage.multipart_uploads`); n != 5 {
		t.Errorf("got %d bytes of parts, want 5", n)
	}
	if n := a.count(`select count(*) from storage.discarded`); n != 1 {
		t.Errorf("got %d discarded blobs after a replaced part, want 1", n)
	}

	if _, err := a.project.Trusted().Exec(ctx, `update storage.usage set max_bytes = bytes + 8`); err != nil {
		t.Fatal(err)
	}
	if _, err := a.part(u, 2, "second"); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a part beyond the quota: got %v", err)
	}
	if _, err := a.part(u, 2, "abc"); err != nil {
		t.Errorf("a part within the quota: got %v", err)
	}
	if _, err := a.project.Trusted().Exec(ctx, `update storage.usage set max_bytes = null`); err != nil {
		t.Fatal(err)
	}

	parts, err := ListParts(ctx, a.project, u.UUID, 1, MaxParts)
	if err != nil || len(parts) != 1 {
		t.Fatalf("got %v, %v", parts, err)
	}
	named := []CompletedPart{{2, parts[0].Tag()}}
	f, _, err := CompleteMultipart(ctx, a.project, a.store, server, a.container.Ref(), u,
		Completion{Parts: named, Size: -1, Upsert: true})
	if err != nil || f.Size != 3 {
		t.Fatalf("got %+v, %v", f, err)
	}
	if n := a.count(`select count(*) from storage.multipart_parts`); n != 0 {
		t.Errorf("got %d parts after the end, want 0", n)
	}

	expired := a.begin("two")
	if _, err := a.part(expired, 1, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.project.Trusted().Exec(ctx,
		`update storage.multipart_uploads set expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	_, err = GetMultipart(ctx, a.project, a.container.UUID, "two", expired.UUID)
	if fault.Of(err).Code != "NoSuchUpload" {
		t.Errorf("an expired upload: got %v", err)
	}
	if _, err := a.part(expired, 2, "x"); fault.Of(err).Code != "NoSuchUpload" {
		t.Errorf("a part of an expired upload: got %v", err)
	}

	if _, err := Sweep(ctx, a.project, a.store, time.Hour); err != nil {
		t.Fatal(err)
	}
	aborted := a.begin("three")
	if _, err := a.part(aborted, 1, "x"); err != nil {
		t.Fatal(err)
	}
	if err := AbortMultipart(ctx, a.project, aborted); err != nil {
		t.Fatal(err)
	}
	if _, err := Discard(ctx, a.project, a.store); err != nil {
		t.Fatal(err)
	}

	if n := a.count(`select count(*) from storage.multipart_uploads`) +
		a.count(`select count(*) from storage.uploads`); n != 0 {
		t.Errorf("got %d uploads, want 0", n)
	}
	if blobs := a.blobs(); len(blobs) != 1 {
		t.Errorf("got blobs %v, want that of the object", blobs)
	}
}

// TestMultipartLimit checks that the number of uploads in progress is bounded.
func TestMultipartLimit(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	if _, err := a.project.Trusted().Exec(t.Context(), `
		insert into storage.multipart_uploads (uuid, container_uuid, full_file_name, mime_type, expires_at)
		select gen_random_uuid(), $1, 'x', '', now() + interval '1 day' from generate_series(1, $2::int)`,
		a.container.UUID, MaxMultipartUploads); err != nil {
		t.Fatal(err)
	}

	_, err := CreateMultipart(t.Context(), a.project, a.container.UUID, NewFile{FullFileName: "one more"})
	if !fault.Is(err, fault.TooMany) {
		t.Errorf("got %v, want TooMany", err)
	}

	_, err = CreateMultipart(t.Context(), a.project, uuid.New(), NewFile{FullFileName: "x"})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("no bucket: got %v, want NotFound", err)
	}
}

func TestPrefixEnd(t *testing.T) {
	t.Parallel()

	last := strings.Repeat("\U0010ffff", maxFileNameLength/4) // of all names
	for prefix, want := range map[string]string{
		"": last + "\U0010ffff", "a": "b", "a/": "a0", "é": "ê", "\ud7ff": "\ue000", "a\U0010ffff": "b",
		"\U0010ffff": last + "\U0010ffff",
	} {
		if got := prefixEnd(prefix); got != want || !IsNamePrefix(got) {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
}

// TestSmallParts checks that parts which cost little of the quota are few.
func TestSmallParts(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	u := a.begin("one")
	if _, err := a.project.Trusted().Exec(t.Context(), `
		insert into storage.multipart_parts (blob_uuid, upload_uuid, number, size, sha256)
		select gen_random_uuid(), $1, n, case when n > 99 then 5 << 20 else 0 end, '' from generate_series(1, 200) n`,
		u.UUID); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		number  int
		content string
		code    string
	}{
		{201, "", ""},
		{202, "", "EntityTooSmall"},
		{203, strings.Repeat("a", minPartSize-1), "EntityTooSmall"},
		{204, strings.Repeat("a", minPartSize), ""},
		{1, "again", ""},
		{100, "small now", "EntityTooSmall"},
	} {
		_, err := a.part(u, tt.number, tt.content)
		if (err == nil) != (tt.code == "") || (err != nil && fault.Of(err).Code != tt.code) {
			t.Errorf("part %d of %d bytes: got %v, want %q", tt.number, len(tt.content), err, tt.code)
		}
	}
}

// TestPartsAreNoOrphans keeps the bytes of parts of uploads in progress, which may take longer than
// the age of orphans.
func TestPartsAreNoOrphans(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	a.parts()

	if n, err := RemoveOrphans(t.Context(), a.project, a.store, 0); n != 0 || err != nil {
		t.Errorf("removed %d orphans, %v, want 0", n, err)
	}
	got, err := Verify(t.Context(), a.project, a.store, true, func(i Inconsistency) { t.Errorf("got %+v", i) })
	if want := (Verified{Moving: 2}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestDiscardPart settles a part whose commit succeeded but whose reply was lost: its bytes stay.
func TestDiscardPart(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, blob := range a.parts() {
		if referenced, err := discardBlob(t.Context(), a.project, a.store, blob); !referenced || err != nil {
			t.Errorf("got %t, %v, want a reference to blob %s", referenced, err, blob)
		}
	}

	if blobs := a.blobs(); len(blobs) != 2 {
		t.Errorf("got blobs %q, want 2", blobs)
	}
}

// parts stores a part of a multipart upload and one of a resumable upload, and returns their blobs.
func (a *application) parts() []uuid.UUID {
	a.t.Helper()

	if _, err := a.part(a.begin("one"), 1, "multipart"); err != nil {
		a.t.Fatal(err)
	}

	r, err := CreateResumable(a.t.Context(), a.project, a.member, a.container.Ref(),
		NewFile{FullFileName: "two", Length: 20})
	if err == nil {
		_, err = AppendResumable(a.t.Context(), a.project, a.store, a.member, &r,
			Part{Length: -1, Content: strings.NewReader("resumable")})
	}
	if err != nil {
		a.t.Fatal(err)
	}

	blobs, err := pg.Values[uuid.UUID](a.t.Context(), a.project.Trusted(), `
		select blob_uuid from storage.multipart_parts union all select blob_uuid from storage.upload_parts`)
	if err != nil || len(blobs) != 2 {
		a.t.Fatalf("got parts %v, %v, want 2", blobs, err)
	}

	return blobs
}
