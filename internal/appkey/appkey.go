// Package appkey owns the keys by which applications reach a project: API keys, keys of the S3
// protocol, and public keys that verify tokens.
//
// Package gateway verifies requests by them.
package appkey

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// creation is how a key is created.
type creation[K any] struct {
	// insert inserts the key, and no row if the project has reached its limit.
	insert     func(q pg.Querier, id uuid.UUID) (K, error)
	constraint string       // violated by a key like another one of the project
	taken      *fault.Error // the failure in that case
	limit      *fault.Error // the failure of a project with the allowed number of keys
}

// create creates a key, in a transaction that counts the keys of the project alone.
func create[K any](ctx context.Context, db *platform.DB, project uuid.UUID, c creation[K]) (K, error) {
	var none K
	id, err := uuid.NewV7()
	if err != nil {
		return none, err
	}

	key, err := pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (K, error) {
		audit.CreatedUUID(ctx, id)
		if err := tx.LockProject(ctx, project); err != nil {
			return none, err
		}

		return c.insert(tx.Querier(), id)
	})
	switch {
	case pg.Violates(err, c.constraint):
		return none, c.taken.WithCause(err)
	case fault.Is(err, fault.NotFound):
		return none, c.limit
	}

	return key, err
}

// trimName returns a name without spaces around it. It fails with Unprocessable for a blank one.
func trimName(name string) (string, error) {
	if name = strings.TrimSpace(name); name == "" {
		return "", fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	}

	return name, nil
}

func limitReached(limit int, keys string) *fault.Error {
	return fault.New(fault.Unprocessable, "the project has reached its limit of %d %s", limit, keys).
		WithCode("quota_exceeded")
}
