package replica

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Position is a place in the WAL: a timeline, and the end of a record.
type Position struct {
	Timeline uint32
	LSN      uint64
}

// String returns a position as clients keep it, such as 2-0/16B3748.
func (p Position) String() string {
	return fmt.Sprintf("%d-%s", p.Timeline, p.PgLSN())
}

// PgLSN returns the place as PostgreSQL writes it, such as 0/16B3748.
func (p Position) PgLSN() string { return fmt.Sprintf("%X/%X", p.LSN>>32, uint32(p.LSN)) }

// Parse is the inverse of [Position.String].
func Parse(text string) (Position, bool) {
	timeline, lsn, _ := strings.Cut(text, "-")
	high, low, _ := strings.Cut(lsn, "/")

	t, err1 := strconv.ParseUint(timeline, 10, 32)
	h, err2 := strconv.ParseUint(high, 16, 32)
	l, err3 := strconv.ParseUint(low, 16, 32)
	if err1 != nil || err2 != nil || err3 != nil || t == 0 {
		return Position{}, false
	}

	return Position{uint32(t), h<<32 | l}, true
}

// Sizes of the headers of WAL pages: that of a segment's first page is longer.
const (
	shortPageHeader = 24
	longPageHeader  = 40
)

// recordEnd returns the end of the record before an insert position. PostgreSQL gives the place of
// the next record: at the start of a page, that is behind its header, which no standby reaches
// before there is another record.
func recordEnd(insert, block, segment uint64) uint64 {
	switch {
	case insert%segment == longPageHeader:
		return insert - longPageHeader
	case insert%block == shortPageHeader && insert%segment != shortPageHeader:
		return insert - shortPageHeader
	}

	return insert
}

// lookAtPrimary returns the primary's position: that of the insertion, since a transaction with
// synchronous_commit off answers before its commit is flushed. It fails on a standby.
func lookAtPrimary(ctx context.Context, conn *pgx.Conn) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	now, err := pg.One[struct {
		Timeline               string
		LSN, Block, SegmentLen int64
	}](ctx, conn, `
		select left(pg_walfile_name(w), 8) as timeline, (w - '0/0')::bigint as lsn,
			current_setting('wal_block_size')::bigint as block,
			pg_size_bytes(current_setting('wal_segment_size')) as segment_len
		from pg_current_wal_insert_lsn() w`)
	if err != nil {
		return Position{}, err
	}

	timeline, err := strconv.ParseUint(now.Timeline, 16, 32)
	return Position{uint32(timeline), recordEnd(uint64(now.LSN), uint64(now.Block), uint64(now.SegmentLen))}, err
}
