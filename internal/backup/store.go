package backup

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// store accesses backups, schedules and restores in the platform database or in a transaction.
type store struct {
	platform *platform.Store
	q        pg.Querier
}

func newStore(p *platform.Store) *store { return &store{p, p.DB().Querier()} }

// inTx runs f in a transaction with an entry in the audit log, see [platform.DB.InTx].
func (s *store) inTx(ctx context.Context, f func(tx *store) error) error {
	return s.platform.InTx(ctx, func(tx *platform.Store) error { return f(newStore(tx)) })
}

// unaudited runs f in a transaction without an entry in the audit log.
func (s *store) unaudited(ctx context.Context, f func(tx *store) error) error {
	return pg.InTx(ctx, s.platform.DB().Beginner(), func(tx pgx.Tx) error {
		return f(newStore(s.platform.WithTx(tx)))
	})
}

// tx returns the transaction, for enqueuing jobs in it.
func (s *store) tx() pgx.Tx { return s.platform.Tx() }
