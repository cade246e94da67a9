package object

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Inconsistency is a file without valid bytes, or a blob without a file.
type Inconsistency struct {
	Key  string    // blob key
	File uuid.UUID // zero for a blob without a file
	What string    // description of the problem
}

// Verified holds counts from [Verify].
type Verified struct {
	Files   int
	Damaged int // files whose bytes are missing or damaged
	Orphans int // unreferenced blobs older than [projectdb.MinOrphanAge]
	Moving  int // blobs in an upload or deletion in progress
	Kept    int // picture variants, which can be rendered again
}

// verifyBatch is the row or blob count per statement.
const verifyBatch = 1000

// Verify compares a project's files with the blobs in store and calls report for each
// inconsistency. With sums it also verifies checksums. Concurrent changes are not reported. It uses
// a few hundred bytes per blob.
func Verify(
	ctx context.Context, p *projectdb.Project, store *blob.Store, sums bool, report func(Inconsistency),
) (Verified, error) {
	v := verifier{project: p, store: store, sums: sums, report: report, blobs: map[uuid.UUID]blob.Entry{}}
	for e, err := range store.List(ctx, filesFolder(p.UUID)) {
		if err != nil {
			return v.Verified, err
		}

		id, ok := blobOf(p.UUID, e.Key)
		if !ok {
			v.countOrphan(e)
			continue
		}

		v.blobs[id] = e
	}

	if err := v.checkFiles(ctx); err != nil {
		return v.Verified, err
	}

	return v.Verified, v.checkUnreferenced(ctx)
}

type verifier struct {
	Verified
	project *projectdb.Project
	store   *blob.Store
	sums    bool
	report  func(Inconsistency)
	blobs   map[uuid.UUID]blob.Entry // blobs without a known file so far
}

// fileBlob links a file to its blob.
type fileBlob struct {
	UUID     uuid.UUID
	BlobUUID uuid.UUID
	Size     int64
	SHA256   []byte
}

// checkFiles looks for each file's blob.
func (v *verifier) checkFiles(ctx context.Context) error {
	var after uuid.UUID
	for {
		files, err := pg.All[fileBlob](ctx, v.project.Trusted(), `
			select uuid, blob_uuid, size, sha256 from storage.files
			where blob_uuid > @after order by blob_uuid limit @batch`,
			pgx.StrictNamedArgs{"after": after, "batch": verifyBatch})
		if err != nil {
			return err
		}

		for _, f := range files {
			problem, err := v.checkFile(ctx, f)
			if err != nil {
				return err
			}

			if problem != "" {
				v.Damaged++
				v.report(Inconsistency{Key: blobKey(v.project.UUID, f.BlobUUID), File: f.UUID, What: problem})
			}
		}

		v.Files += len(files)

		if len(files) < verifyBatch {
			return nil
		}

		after = files[len(files)-1].BlobUUID
	}
}

// checkFile describes what is wrong with a file's bytes, or returns "". A file that was deleted
// meanwhile has none.
func (v *verifier) checkFile(ctx context.Context, f fileBlob) (string, error) {
	e, inStore := v.blobs[f.BlobUUID]
	delete(v.blobs, f.BlobUUID)

	var problem string
	switch {
	case inStore && e.Size != f.Size:
		problem = fmt.Sprintf("has %d of %d bytes", e.Size, f.Size)
	case inStore && !v.sums:
		return "", nil
	default:
		var err error
		if problem, err = v.checkBytes(ctx, f); problem == "" || err != nil {
			return "", err
		}
	}

	// Bytes are deleted after their row, so they must exist while the row does.
	exists, err := pg.Value[bool](ctx, v.project.Trusted(),
		`select exists (select from storage.files where blob_uuid = @blob)`,
		pgx.StrictNamedArgs{"blob": f.BlobUUID})
	if err != nil || !exists {
		return "", err
	}

	return problem, nil
}

func (v *verifier) checkBytes(ctx context.Context, f fileBlob) (problem string, err error) {
	content, size, err := v.store.Open(ctx, blobKey(v.project.UUID, f.BlobUUID))
	if fault.Is(err, fault.NotFound) {
		return "is missing its bytes", nil
	}
	if err != nil {
		return "", err
	}

	defer content.Close()

	if size != f.Size {
		return fmt.Sprintf("has %d of %d bytes", size, f.Size), nil
	}
	if !v.sums {
		return "", nil
	}

	hash := sha256.New()
	for err == nil { // a large file takes long
		if _, err = io.CopyN(hash, content, 1<<20); err == nil {
			err = ctx.Err()
		}
	}

	if err != io.EOF {
		return "", fmt.Errorf("read file %s: %w", f.UUID, err)
	}
	if !bytes.Equal(hash.Sum(nil), f.SHA256) {
		return blob.ErrChecksumMismatch.Error(), nil
	}

	return "", nil
}

// checkUnreferenced checks the blobs without a file.
func (v *verifier) checkUnreferenced(ctx context.Context) error {
	for ids := range slices.Chunk(slices.Collect(maps.Keys(v.blobs)), verifyBatch) {
		variants, err := pg.Values[uuid.UUID](ctx, v.project.Trusted(),
			`select blob_uuid from storage.variants where blob_uuid = any(@blobs)`,
			pgx.StrictNamedArgs{"blobs": ids})
		if err != nil {
			return err
		}

		v.Kept += len(variants)
		v.Moving -= len(variants) // not in motion

		orphans, err := unreferencedBlobs(ctx, v.project, ids)
		if err != nil {
			return err
		}

		v.Moving += len(ids) - len(orphans)

		for _, id := range orphans {
			// A blob that was listed during deletion may be gone.
			content, _, err := v.store.Open(ctx, blobKey(v.project.UUID, id))
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return err
			}

			content.Close()
			v.countOrphan(v.blobs[id])
		}
	}

	return nil
}

func (v *verifier) countOrphan(e blob.Entry) {
	if time.Since(e.Modified) < projectdb.MinOrphanAge {
		v.Moving++
		return
	}

	v.Orphans++
	v.report(Inconsistency{Key: e.Key, What: fmt.Sprintf("%d bytes without a file", e.Size)})
}

// isReferenced is an SQL condition: a file, a variant or an upload part refers to blob b.
const isReferenced = `(
	exists (select from storage.files where blob_uuid = b)
	or exists (select from storage.variants where blob_uuid = b)
	or exists (select from storage.upload_parts where blob_uuid = b)
	or exists (select from storage.multipart_parts where blob_uuid = b))`

// unreferencedBlobs returns the blobs that are not referenced and belong to no upload or deletion
// in progress.
func unreferencedBlobs(ctx context.Context, p *projectdb.Project, blobs []uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, p.Trusted(), `
		select b from unnest(@blobs::uuid[]) b
		where not `+isReferenced+`
		  and not exists (select from storage.uploads where blob_uuid = b)
		  and not exists (select from storage.discarded where blob_uuid = b)`,
		pgx.StrictNamedArgs{"blobs": blobs})
}

// RemoveOrphans removes a project's unreferenced blobs older than age and returns their number.
// They remain when a storage reply was lost or the database was restored to an earlier state. It
// ignores keys in other forms.
func RemoveOrphans(ctx context.Context, p *projectdb.Project, store *blob.Store, age time.Duration) (int, error) {
	count := 0
	var batch []uuid.UUID
	remove := func() error {
		orphans, err := unreferencedBlobs(ctx, p, batch)
		batch = batch[:0]
		for _, id := range orphans {
			if err = errors.Join(err, store.Delete(ctx, blobKey(p.UUID, id))); err != nil {
				return err
			}
			count++
		}

		return err
	}

	for e, err := range store.List(ctx, filesFolder(p.UUID)) {
		if err != nil {
			return count, err
		}

		id, ok := blobOf(p.UUID, e.Key)
		if !ok || time.Since(e.Modified) < age {
			continue
		}

		if batch = append(batch, id); len(batch) == verifyBatch {
			if err := remove(); err != nil {
				return count, err
			}
		}
	}

	return count, remove()
}

// projectsFolder holds all projects' folders.
const projectsFolder = "projects"

// filesFolder returns the folder with the blobs of a project's files.
func filesFolder(project uuid.UUID) string { return projectsFolder + "/" + project.String() + "/files" }

// blobOf returns the blob UUID in a key, and whether key is a blob key.
func blobOf(project uuid.UUID, key string) (uuid.UUID, bool) {
	id, err := uuid.Parse(key[strings.LastIndexByte(key, '/')+1:])
	return id, err == nil && blobKey(project, id) == key
}
