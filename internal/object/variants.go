package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/picture"
	"socle/internal/tenant"
)

// Limits of the variants of a project. Variants are a cache and do not count toward the quota.
// Beyond a limit the oldest are evicted until both are undercut by a tenth, so that eviction stays
// rare.
const (
	mostVariants     = 10_000
	mostVariantBytes = 1 << 30
)

// makeTime limits the rendering of a variant, which continues if the client disconnects, since
// other requests may wait for it.
const makeTime = 30 * time.Second

// Variants renders variants of pictures and caches them as blobs, shared by all servers. Its
// methods may be called concurrently.
type Variants struct {
	store   *blob.Store
	maker   *picture.Maker
	discard func(ctx context.Context, project uuid.UUID)
	flights singleflight.Group
}

// NewVariants returns Variants cached in store. It calls discard to schedule [Discard].
func NewVariants(store *blob.Store, discard func(ctx context.Context, project uuid.UUID)) *Variants {
	return &Variants{store: store, maker: picture.NewMaker(), discard: discard}
}

// Open is [OpenFile] for a variant of the file, which it renders unless it is cached. It also fails
// as [picture.Maker.Make] does.
func (v *Variants) Open(
	ctx context.Context, p *tenant.Project, container, file uuid.UUID, spec picture.Spec,
) (File, *Content, error) {
	return v.open(ctx, p, fileByUUID(ctx, p, container, file), spec)
}

// OpenByName is [OpenFileByName] for a variant of the file.
func (v *Variants) OpenByName(
	ctx context.Context, p *tenant.Project, container uuid.UUID, fullFileName string, member bool, spec picture.Spec,
) (File, *Content, error) {
	find, err := fileByName(ctx, p, container, fullFileName, member)
	if err != nil {
		return File{}, nil, err
	}

	return v.open(ctx, p, find, spec)
}

// variant is a cached variant.
type variant struct {
	BlobUUID uuid.UUID
	MimeType string
	Size     int64
	SHA256   []byte `db:"sha256"`
	unkept   []byte `db:"-"` // content of a variant that was not cached; else nil
}

const variantColumns = `blob_uuid, mime_type, size, sha256`

// errOvertaken reports that the source of a variant is gone or that another server cached the
// variant first.
var errOvertaken = errors.New("somebody was quicker")

func (v *Variants) open(
	ctx context.Context, p *tenant.Project, find func() (storedFile, error), spec picture.Spec,
) (File, *Content, error) {
	for range 5 { // the source may be replaced and the variant evicted meanwhile
		f, err := find()
		if err != nil {
			return File{}, nil, err
		}

		kept, err := findVariant(ctx, p, f.BlobUUID, spec)
		if fault.Is(err, fault.NotFound) {
			kept, err = v.makeOnce(ctx, p, f, spec)
		}

		if errors.Is(err, errOvertaken) {
			continue
		}
		if err != nil {
			return File{}, nil, err
		}

		as := f.as(kept)
		if kept.unkept != nil {
			content, err := contentOf(as, inMemory{bytes.NewReader(kept.unkept)}, nil)
			return as, content, err
		}

		stored, size, err := v.store.Open(ctx, blobKey(p.UUID, kept.BlobUUID))
		switch {
		case err == nil && size == kept.Size:
			content, err := contentOf(as, stored, v.store.Witness(stored, as.SHA256))
			if !errors.Is(err, blob.ErrOther) {
				return as, content, err
			}
		case err == nil:
			stored.Close()
		case !fault.Is(err, fault.NotFound):
			return File{}, nil, fmt.Errorf("open a variant of file %s: %w", f.UUID, err)
		}

		// The cached bytes are missing or damaged: render the variant again.
		if _, err := pg.Exec(ctx, p.Trusted(), `delete from storage.variants where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": kept.BlobUUID}); err != nil {
			return File{}, nil, err
		}
	}

	return File{}, nil, errRestless
}

func findVariant(ctx context.Context, p *tenant.Project, source uuid.UUID, spec picture.Spec) (variant, error) {
	return pg.One[variant](ctx, p.Trusted(),
		`select `+variantColumns+` from storage.variants where source_uuid = @source and spec = @spec`,
		pgx.StrictNamedArgs{"source": source, "spec": spec.Key()})
}

// as describes the variant as a file. The extension of the name follows the media type.
func (f storedFile) as(kept variant) File {
	if f.MimeType != kept.MimeType {
		format := strings.TrimPrefix(kept.MimeType, "image/")
		if format == picture.JPEG {
			format = "jpg"
		}

		f.FullFileName = strings.TrimSuffix(f.FullFileName, path.Ext(path.Base(f.FullFileName))) + "." + format
	}

	f.MimeType, f.Size, f.SHA256 = kept.MimeType, kept.Size, kept.SHA256
	return f.File
}

// makeOnce renders a variant once for all concurrent requests.
func (v *Variants) makeOnce(ctx context.Context, p *tenant.Project, f storedFile, spec picture.Spec) (variant, error) {
	made := v.flights.DoChan(f.BlobUUID.String()+spec.Key(), func() (kept any, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTime)
		defer cancel()
		defer func() {
			if r := recover(); r != nil { // a panic in this goroutine would end the server
				err = fmt.Errorf("variant of file %s: %v\n%s", f.UUID, r, debug.Stack())
			}
		}()

		return v.make(ctx, p, f, spec)
	})
	select {
	case <-ctx.Done():
		return variant{}, ctx.Err()
	case result := <-made:
		kept, _ := result.Val.(variant)
		return kept, result.Err
	}
}

func (v *Variants) make(ctx context.Context, p *tenant.Project, f storedFile, spec picture.Spec) (variant, error) {
	// The previous flight may have just ended.
	if kept, err := findVariant(ctx, p, f.BlobUUID, spec); !fault.Is(err, fault.NotFound) {
		return kept, err
	}

	made, err := v.maker.Make(ctx, p.UUID, f.Size, func(ctx context.Context) (io.ReadSeekCloser, error) {
		_, content, err := open(ctx, p, v.store, func() (storedFile, error) { return f, nil })
		return content, err
	}, spec)
	if err != nil {
		return variant{}, v.stillThere(ctx, p, f, err)
	}

	kept := variant{MimeType: "image/" + made.Format}
	if kept.BlobUUID, err = uuid.NewRandom(); err != nil {
		return kept, err
	}

	if _, err := pg.Exec(ctx, p.Trusted(), `insert into storage.uploads (blob_uuid) values (@blob)`,
		pgx.StrictNamedArgs{"blob": kept.BlobUUID}); err != nil {
		return kept, err
	}

	stored, err := v.store.Put(ctx, blobKey(p.UUID, kept.BlobUUID), bytes.NewReader(made.Bytes), int64(len(made.Bytes)))
	kept.Size, kept.SHA256 = stored.Size, stored.SHA256
	if err == nil {
		err = v.keep(ctx, p, f, spec, kept)
	}
	if err == nil {
		return kept, v.trim(ctx, p, mostVariants, mostVariantBytes)
	}

	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()

	there, discarded := discard(settling, p, v.store, kept.BlobUUID)
	if there { // its commit succeeded
		return kept, nil
	}

	if errors.Is(err, errOvertaken) && discarded == nil { // usable, although not cached
		kept.unkept = made.Bytes
		return kept, nil
	}

	return kept, errors.Join(err, discarded)
}

// stillThere returns errOvertaken if a failure is due to the replacement or deletion of the source.
func (v *Variants) stillThere(ctx context.Context, p *tenant.Project, f storedFile, failure error) error {
	if !fault.Is(failure, fault.Internal) {
		return failure
	}

	there, err := pg.Value[bool](ctx, p.Trusted(), `select exists (select from storage.files where blob_uuid = @blob)`,
		pgx.StrictNamedArgs{"blob": f.BlobUUID})
	if err == nil && !there {
		return errOvertaken
	}

	return failure
}

// keep records a variant whose bytes are stored.
func (v *Variants) keep(ctx context.Context, p *tenant.Project, f storedFile, spec picture.Spec, kept variant) error {
	err := pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		noted, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
			pgx.StrictNamedArgs{"blob": kept.BlobUUID})
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			insert into storage.variants (blob_uuid, source_uuid, spec, mime_type, size, sha256)
			values (@blob, @source, @spec, @type, @size, @sha256)
			on conflict on constraint variants_spec_key do nothing`,
			pgx.StrictNamedArgs{
				"blob": kept.BlobUUID, "source": f.BlobUUID, "spec": spec.Key(), "type": kept.MimeType,
				"size": kept.Size, "sha256": kept.SHA256,
			})
		if err == nil && (n == 0 || noted == 0) {
			err = errOvertaken
		}

		return err
	})
	if pg.Violates(err, "variants_source") {
		return errOvertaken
	}

	return err
}

// trim evicts the oldest variants if their number exceeds most or their total size mostBytes.
func (v *Variants) trim(ctx context.Context, p *tenant.Project, most, mostBytes int64) error {
	n, err := pg.Exec(ctx, p.Trusted(), `
		with counted as (
			select blob_uuid, row_number() over newest as nth, sum(size) over newest as bytes
			from storage.variants window newest as (order by created_at desc, blob_uuid)
		), doomed as (
			select blob_uuid from counted
			where (nth > @most::bigint * 0.9 or bytes > @bytes::bigint * 0.9)
			  and exists (select from counted where nth > @most::bigint or bytes > @bytes::bigint)
		)
		delete from storage.variants where blob_uuid in (
			select blob_uuid from storage.variants where blob_uuid in (select blob_uuid from doomed) for update skip locked)`,
		pgx.StrictNamedArgs{"most": most, "bytes": mostBytes})
	if n > 0 {
		v.discard(ctx, p.UUID)
	}

	return err
}
