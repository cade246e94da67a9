package object

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestResumableLimits reaches the maximum number of small parts of an upload, and of uploads in
// progress.
func TestResumableLimits(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	ctx := t.Context()
	start := func() (Resumable, error) {
		return CreateResumable(ctx, b.project, b.member, b.container.Ref(), NewFile{FullFileName: "a", Length: 1 << 20})
	}
	r, err := start()
	if err != nil {
		t.Fatal(err)
	}

	if _, err := pg.Exec(ctx, b.project.Trusted(), `
		insert into storage.upload_parts (blob_uuid, upload_uuid, first, size)
		select gen_random_uuid(), @id, n, 1 from generate_series(0, @small::int - 1) n`,
		pgx.StrictNamedArgs{"id": r.UUID, "small": maxSmallResumableParts}); err != nil {
		t.Fatal(err)
	}

	appended := func(content string) error {
		upload, err := GetResumable(ctx, b.project, r.UUID)
		if err != nil {
			return err
		}

		_, err = AppendResumable(ctx, b.project, b.store, b.member, &upload,
			Part{Offset: maxSmallResumableParts, Length: -1, Content: strings.NewReader(content)})
		return err
	}
	if err := appended("x"); fault.Of(err).Code != "too_many_parts" {
		t.Errorf("a further small part: got %v", err)
	}
	if err := appended(strings.Repeat("x", smallResumablePart)); err != nil {
		t.Errorf("a large part: got %v", err)
	}

	if _, err := pg.Exec(ctx, b.project.Trusted(), `
		insert into storage.resumable_uploads (uuid, container_uuid, full_file_name, mime_type, size)
		select gen_random_uuid(), @container, 'b', '', 0 from generate_series(2, @most::int)`,
		pgx.StrictNamedArgs{"container": b.container.UUID, "most": maxResumableUploads}); err != nil {
		t.Fatal(err)
	}
	if _, err := start(); fault.Of(err).Code != "too_many_uploads" {
		t.Errorf("one upload too many: got %v", err)
	}
}
