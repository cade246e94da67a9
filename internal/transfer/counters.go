package transfer

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/schema"
)

// counter knows the extreme values that were stored in a column with a sequence. The sequence goes
// on after them: otherwise the next row without a value would get one that is taken.
type counter struct {
	column   int // in the file
	sequence schema.Sequence
	batch    []counted // values in the batch's rows

	lowest, highest int64
	stored          bool // at least one value
}

// counted is a row's value. Only integers are valid; null is not, nor is a value that PostgreSQL
// refuses.
type counted struct {
	value int64
	valid bool
}

// newCounters returns the counters for a file's columns.
func newCounters(ctx context.Context, tx pgx.Tx, t schema.Table, columns []string) ([]*counter, error) {
	sequences, err := schema.ListSequences(ctx, tx, t.ID)
	if err != nil {
		return nil, err
	}

	var counters []*counter
	for _, s := range sequences {
		if i := slices.Index(columns, s.Column); i >= 0 {
			counters = append(counters, &counter{column: i, sequence: s})
		}
	}

	return counters, nil
}

// add adds a row's value to the batch.
func (c *counter) add(v value) {
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	c.batch = append(c.batch, counted{n, err == nil && !v.null})
}

// store counts the batch's rows [from, to) as stored.
func (c *counter) store(from, to int) {
	for _, v := range c.batch[from:to] {
		if !v.valid {
			continue
		}
		if !c.stored {
			c.lowest, c.highest, c.stored = v.value, v.value, true
		}

		c.lowest, c.highest = min(c.lowest, v.value), max(c.highest, v.value)
	}
}

// advanceSequences moves the sequences past the stored values.
func (l *loader) advanceSequences(ctx context.Context) error {
	for _, c := range l.counters {
		if !c.stored {
			continue
		}
		if err := schema.AdvanceSequence(ctx, l.tx, c.sequence, c.lowest, c.highest); err != nil {
			return err
		}
	}

	return nil
}
