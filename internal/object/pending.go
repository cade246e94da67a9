package object

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/projectdb"
)

// PendingFile is an upload whose bytes are stored but whose file does not exist yet.
// [PendingFile.Create] creates it in the transaction that creates the record it belongs to. The
// caller must end every PendingFile with [PendingFile.Finish].
type PendingFile struct{ upload *upload }

// ReceiveFile stores a file's bytes for a container. It fails as [CreateFile] does and then leaves
// nothing behind.
func ReceiveFile(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, to ContainerRef, n NewFile,
) (PendingFile, error) {
	u, err := newUpload(p, store, a, to, n, nil)
	if err != nil {
		return PendingFile{}, err
	}

	limits, err := u.begin(ctx)
	if err != nil {
		return PendingFile{}, err
	}

	if err := u.receive(ctx, limits); err != nil {
		_, err = u.cleanUp(ctx, err)
		return PendingFile{}, err
	}

	return PendingFile{u}, nil
}

// Create creates the file in transaction tx if the container still exists and still accepts the
// file.
func (f PendingFile) Create(ctx context.Context, tx pgx.Tx) (File, error) {
	return f.upload.create(ctx, tx)
}

// Finish ends the upload after Create's transaction, with the transaction's error or nil. It
// removes the bytes unless the file was created. It reports whether the file exists, since a commit
// can succeed although the reply was lost.
func (f PendingFile) Finish(ctx context.Context, failure error) (exists bool, err error) {
	if failure == nil && f.upload.inserted {
		return true, nil
	}

	if failure == nil {
		failure = errNotCreated
	}

	_, err = f.upload.cleanUp(ctx, failure)
	if err == errNotCreated {
		return false, nil
	}

	return err == nil, err
}
