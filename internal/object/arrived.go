package object

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/blob"
	"socle/internal/tenant"
)

// Arrived is a file whose bytes are stored and that is no file yet: it becomes one together with something else, in the
// transaction that makes that. [Arrived.Settle] ends it in any case.
type Arrived struct{ upload *upload }

// Receive stores the bytes of a file for a container of project p on behalf of user. It fails as [CreateFile] does, and then leaves nothing.
func Receive(
	ctx context.Context, p *tenant.Project, store *blob.Store, user, container uuid.UUID, n NewFile,
) (Arrived, error) {
	u, err := newUpload(p, store, user, container, n)
	if err != nil {
		return Arrived{}, err
	}

	into, err := u.begin(ctx)
	if err != nil {
		return Arrived{}, err
	}

	if err := u.receive(ctx, n, into); err != nil {
		_, err = u.settle(ctx, err)
		return Arrived{}, err
	}

	return Arrived{u}, nil
}

// Keep makes the file in a transaction, if the container is still there and still takes it.
func (a Arrived) Keep(ctx context.Context, tx pgx.Tx) (File, error) { return a.upload.keep(ctx, tx) }

// Settle ends the upload once the transaction is over that Keep was to be part of, with its failure or nil. Unless the file was
// made, nothing is left of it. It reports whether there is a file: a commit can arrive and its answer be lost.
func (a Arrived) Settle(ctx context.Context, failure error) (made bool, err error) {
	if failure == nil && a.upload.made {
		return true, nil
	}

	if failure == nil { // nobody wanted the file
		failure = errUnwanted
	}

	_, err = a.upload.settle(ctx, failure)
	if err == errUnwanted {
		return false, nil
	}

	return err == nil, err
}
