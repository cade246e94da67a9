package object

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/projectdb"
)

// truncatingReader turns a content read error into EOF and keeps it in err.
type truncatingReader struct {
	content io.Reader
	err     error
}

// Read implements io.Reader.
func (b *truncatingReader) Read(to []byte) (int, error) {
	n, err := b.content.Read(to)
	if err != nil && err != io.EOF {
		b.err, err = err, io.EOF
	}

	return n, err
}

// blobsReader reads blobs one after the other and keeps one open at a time.
type blobsReader struct {
	open    func(uuid.UUID) (io.ReadCloser, error)
	parts   []uuid.UUID
	current io.ReadCloser
}

// openBlobs returns a reader over the blobs' bytes.
func openBlobs(ctx context.Context, p *projectdb.Project, store *blob.Store, blobs []uuid.UUID) *blobsReader {
	return &blobsReader{open: func(b uuid.UUID) (io.ReadCloser, error) {
		content, _, err := store.Open(ctx, blobKey(p.UUID, b))
		return content, err
	}, parts: blobs}
}

// Read implements io.Reader.
func (j *blobsReader) Read(to []byte) (int, error) {
	for {
		if j.current == nil {
			if len(j.parts) == 0 {
				return 0, io.EOF
			}

			var err error
			if j.current, err = j.open(j.parts[0]); err != nil {
				return 0, err
			}

			j.parts = j.parts[1:]
		}

		n, err := j.current.Read(to)
		if err == io.EOF {
			err = errors.Join(j.current.Close())
			j.current = nil
		}

		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close closes the current blob.
func (j *blobsReader) Close() error {
	if j.current == nil {
		return nil
	}
	return j.current.Close()
}
