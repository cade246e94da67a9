// Package appkey owns the keys that applications present to a project: API keys, S3 keys, and
// public keys that verify tokens.
//
// Package gateway verifies requests against them.
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

// creation describes the creation of a key.
type creation[K any] struct {
	// insert inserts the key, or returns no row if the project has reached its limit.
	insert     func(q pg.Querier, id uuid.UUID) (K, error)
	constraint string       // violated if the project already has such a key
	conflict   *fault.Error // failure if constraint is violated
	limit      *fault.Error // failure if the project has reached its limit
}

// create creates a key in a transaction that locks the project, so that no other one counts its
// keys.
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
		return none, c.conflict.WithCause(err)
	case fault.Is(err, fault.NotFound):
		return none, c.limit
	}

	return key, err
}

// trimName trims spaces around a name. It fails with Unprocessable for a blank one.
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
