package projectdb

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
)

// ownerGrace is the time after its timeout at which a statement ends that has lifted it.
const ownerGrace = 500 * time.Millisecond

// OwnerTexts executes a statement as the project's owner, without preparing it, in a read-only
// transaction, and returns its rows as texts; null is nil. Settings and statement are one round
// trip and one transaction.
func OwnerTexts(
	ctx context.Context, p *Project, timeout time.Duration, sql string, args ...[]byte,
) ([][][]byte, error) {
	return ownerTexts(ctx, p, timeout, "on", sql, args)
}

// OwnerChanges is [OwnerTexts] in a transaction that may write.
func OwnerChanges(
	ctx context.Context, p *Project, timeout time.Duration, sql string, args ...[]byte,
) ([][][]byte, error) {
	return ownerTexts(ctx, p, timeout, "off", sql, args)
}

func ownerTexts(
	ctx context.Context, p *Project, timeout time.Duration, readOnly, sql string, args [][]byte,
) ([][][]byte, error) {
	conn, err := pg.Acquire(ctx, p.Owner())
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	ctx, cancel := context.WithTimeout(ctx, timeout+ownerGrace)
	defer cancel()

	var b pgconn.Batch
	b.ExecParams("select pg_catalog.set_config('statement_timeout', $1, true), "+
		"pg_catalog.set_config('transaction_read_only', $2, true)",
		[][]byte{strconv.AppendInt(nil, timeout.Milliseconds(), 10), []byte(readOnly)}, nil, nil, nil)
	b.ExecParams(sql, args, nil, nil, nil)

	results, err := conn.Conn().PgConn().ExecBatch(ctx, &b).ReadAll()
	if err != nil {
		return nil, pg.Fault(err)
	}

	return results[len(results)-1].Rows, nil
}
