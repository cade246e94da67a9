package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/picture"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Variant limits per project. Variants are a cache and do not count toward the quota. Beyond a
// limit the oldest are evicted until both are undercut by a tenth, so that eviction stays rare.
const (
	maxVariants     = 10_000
	maxVariantBytes = 1 << 30
)

// renderTimeout limits rendering a variant, which continues if the client disconnects, since other
// requests may wait for it.
const renderTimeout = 30 * time.Second

// maxOpenAttempts limits the attempts to open a variant: the source may be replaced and the variant
// evicted meanwhile.
const maxOpenAttempts = 5

// Variants renders picture variants and caches them as blobs, shared by all servers. Its methods
// may be called concurrently.
type Variants struct {
	store    *blob.Store
	maker    *picture.Maker
	discard  func(ctx context.Context, project uuid.UUID)
	inFlight singleflight.Group
}

// NewVariants returns Variants cached in store. It calls discard to schedule [Discard].
func NewVariants(store *blob.Store, discard func(ctx context.Context, project uuid.UUID)) *Variants {
	return &Variants{store: store, maker: picture.NewMaker(), discard: discard}
}

type variant struct {
	BlobUUID uuid.UUID
	MimeType string
	Size     int64
	SHA256   []byte `db:"sha256"`
	content  []byte `db:"-"` // set if the variant was not cached; else nil
}

const variantColumns = `blob_uuid, mime_type, size, sha256`

// errLostRace reports that a variant's source is gone or that another server cached the variant
// first.
var errLostRace = errors.New("the source is gone, or another server stored the variant first")

// Open is [OpenFile] for a variant, which it renders unless it is cached. It also fails as
// [picture.Maker.Make] does.
func (v *Variants) Open(
	ctx context.Context, p *projectdb.Project, a actor.Actor, r FileRef, spec picture.Spec,
) (StoredFile, *Content, error) {
	for range maxOpenAttempts {
		f, err := GetFile(ctx, p, a, r)
		if err != nil {
			return StoredFile{}, nil, err
		}

		entry, err := findVariant(ctx, p, f.BlobUUID, spec)
		if fault.Is(err, fault.NotFound) {
			entry, err = v.renderOnce(ctx, p, f, spec)
		}

		if errors.Is(err, errLostRace) {
			continue
		}
		if err != nil {
			return StoredFile{}, nil, err
		}

		as := f.asVariant(entry)
		if entry.content != nil {
			content, err := newContent(as.File, memoryContent{bytes.NewReader(entry.content)}, nil)
			return as, content, err
		}

		reader, size, err := v.store.Open(ctx, blobKey(p.UUID, entry.BlobUUID))
		switch {
		case err == nil && size == entry.Size:
			content, err := newContent(as.File, reader, v.store.VerifiedFile(reader, as.SHA256))
			if !errors.Is(err, blob.ErrChecksumMismatch) {
				return as, content, err
			}
		case err == nil:
			reader.Close()
		case !fault.Is(err, fault.NotFound):
			return StoredFile{}, nil, fmt.Errorf("open variant of file %s: %w", f.UUID, err)
		}

		// The cached bytes are missing or damaged: render the variant again.
		if _, err := pg.Exec(ctx, p.Trusted(), `delete from storage.variants where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": entry.BlobUUID}); err != nil {
			return StoredFile{}, nil, err
		}
	}

	return StoredFile{}, nil, errContention
}

func findVariant(ctx context.Context, p *projectdb.Project, source uuid.UUID, spec picture.Spec) (variant, error) {
	return pg.One[variant](ctx, p.Trusted(),
		`select `+variantColumns+` from storage.variants where source_uuid = @source and spec = @spec`,
		pgx.StrictNamedArgs{"source": source, "spec": spec.CacheKey()})
}

// asVariant describes the variant as a file. The name's extension follows the media type.
func (f StoredFile) asVariant(entry variant) StoredFile {
	if f.MimeType != entry.MimeType {
		format := strings.TrimPrefix(entry.MimeType, "image/")
		if format == picture.JPEG {
			format = "jpg"
		}

		f.FullFileName = strings.TrimSuffix(f.FullFileName, path.Ext(path.Base(f.FullFileName))) + "." + format
	}

	f.MimeType, f.Size, f.SHA256, f.Headers = entry.MimeType, entry.Size, entry.SHA256, nil
	return f
}

// renderOnce renders a variant once for all concurrent requests.
func (v *Variants) renderOnce(
	ctx context.Context, p *projectdb.Project, f StoredFile, spec picture.Spec,
) (variant, error) {
	done := v.inFlight.DoChan(f.BlobUUID.String()+spec.CacheKey(), func() (value any, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renderTimeout)
		defer cancel()
		defer fault.Recover(&err)

		return v.render(ctx, p, f, spec)
	})
	select {
	case <-ctx.Done():
		return variant{}, ctx.Err()
	case result := <-done:
		value, _ := result.Val.(variant)
		return value, result.Err
	}
}

func (v *Variants) render(ctx context.Context, p *projectdb.Project, f StoredFile, spec picture.Spec) (variant, error) {
	// The previous flight may have just ended.
	if entry, err := findVariant(ctx, p, f.BlobUUID, spec); !fault.Is(err, fault.NotFound) {
		return entry, err
	}

	output, err := v.maker.Make(ctx, p.Key(ctx), f.Size, func(ctx context.Context) (io.ReadSeekCloser, error) {
		_, content, err := openContent(ctx, p, v.store, func() (StoredFile, error) { return f, nil })
		return content, err
	}, spec)
	if err != nil {
		return variant{}, v.explainFailure(ctx, p, f, err)
	}

	entry := variant{MimeType: "image/" + output.Format}
	if entry.BlobUUID, err = uuid.NewRandom(); err != nil {
		return entry, err
	}

	if _, err := pg.Exec(ctx, p.Trusted(), `insert into storage.uploads (blob_uuid) values (@blob)`,
		pgx.StrictNamedArgs{"blob": entry.BlobUUID}); err != nil {
		return entry, err
	}

	key, size := blobKey(p.UUID, entry.BlobUUID), int64(len(output.Bytes))
	object, err := v.store.Put(ctx, key, bytes.NewReader(output.Bytes), size)
	entry.Size, entry.SHA256 = object.Size, object.SHA256
	if err == nil {
		err = v.insert(ctx, p, f, spec, entry)
	}
	if err == nil {
		return entry, v.evict(ctx, p, maxVariants, maxVariantBytes)
	}

	cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()

	exists, discardErr := discardBlob(cleanupCtx, p, v.store, entry.BlobUUID)
	if exists { // the commit succeeded
		return entry, nil
	}

	if errors.Is(err, errLostRace) && discardErr == nil { // usable, although not cached
		entry.content = output.Bytes
		return entry, nil
	}

	return entry, errors.Join(err, discardErr)
}

// explainFailure returns errLostRace if a failure is due to a replaced or deleted source.
func (v *Variants) explainFailure(ctx context.Context, p *projectdb.Project, f StoredFile, failure error) error {
	if !fault.Is(failure, fault.Internal) {
		return failure
	}

	exists, err := pg.Value[bool](ctx, p.Trusted(), `select exists (select from storage.files where blob_uuid = @blob)`,
		pgx.StrictNamedArgs{"blob": f.BlobUUID})
	if err == nil && !exists {
		return errLostRace
	}

	return failure
}

// insert records a variant whose bytes are stored.
func (v *Variants) insert(
	ctx context.Context, p *projectdb.Project, f StoredFile, spec picture.Spec, entry variant,
) error {
	err := pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		rows, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": entry.BlobUUID})
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			insert into storage.variants (blob_uuid, source_uuid, spec, mime_type, size, sha256)
			values (@blob, @source, @spec, @type, @size, @sha256)
			on conflict on constraint variants_spec_key do nothing`,
			pgx.StrictNamedArgs{
				"blob": entry.BlobUUID, "source": f.BlobUUID, "spec": spec.CacheKey(), "type": entry.MimeType,
				"size": entry.Size, "sha256": entry.SHA256,
			})
		if err != nil {
			return err
		}
		if n == 0 || rows == 0 {
			return errLostRace
		}

		return nil
	})
	if pg.Violates(err, "variants_source") {
		return errLostRace
	}

	return err
}

// evict evicts the oldest variants if their number exceeds maxCount or their total size maxBytes.
func (v *Variants) evict(ctx context.Context, p *projectdb.Project, maxCount, maxBytes int64) error {
	n, err := pg.Exec(ctx, p.Trusted(), `
		with counted as (
			select blob_uuid, row_number() over newest as nth, sum(size) over newest as bytes
			from storage.variants window newest as (order by created_at desc, blob_uuid)
		), doomed as (
			select blob_uuid from counted
			where (nth > @count::bigint * 0.9 or bytes > @bytes::bigint * 0.9)
			  and exists (select from counted where nth > @count::bigint or bytes > @bytes::bigint)
		)
		delete from storage.variants where blob_uuid in (
			select blob_uuid from storage.variants where blob_uuid in (select blob_uuid from doomed)
			for update skip locked)`,
		pgx.StrictNamedArgs{"count": maxCount, "bytes": maxBytes})
	if n > 0 {
		v.discard(ctx, p.UUID)
	}

	return err
}
