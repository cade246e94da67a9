package audit

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// [Chain] bounds. An entry has at most 64 KiB.
const (
	chainBatch      = 200
	maxChainBatches = 100
)

// Chain moves up to 20,000 committed pending entries into a database's chain. Several servers may
// do so at once. An entry without a valid MAC gets a hash that [Check] reports.
func Chain(ctx context.Context, b pg.Beginner, key []byte) error {
	for range maxChainBatches {
		var n int
		err := pg.InTx(ctx, b, func(tx pgx.Tx) (err error) {
			n, err = chainNext(ctx, tx, key)
			return err
		})
		if err != nil || n < chainBatch {
			return err
		}
	}

	return nil
}

// pendingRow is a pending entry. Chained reports whether the chain has an entry with the same text.
type pendingRow struct {
	ID      int64
	Entry   string
	Mac     []byte
	Chained bool
}

// chainNext moves a batch of entries and returns their number.
func chainNext(ctx context.Context, tx pgx.Tx, key []byte) (int, error) {
	last, err := pg.One[Head](ctx, tx, `select log, seq, hash from socle.audit_head for update`)
	if err != nil {
		return 0, err
	}

	rows, err := pg.All[pendingRow](ctx, tx, `
		select id, entry, mac, chained from socle.take_audit_entries(@most)`, pgx.StrictNamedArgs{"most": chainBatch})
	if err != nil || len(rows) == 0 {
		return 0, err
	}

	slices.SortFunc(rows, func(a, b pendingRow) int { return cmp.Compare(a.ID, b.ID) })

	seqs, entries, hashes := make([]int64, len(rows)), make([]string, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		hash := forgedHash
		// A copied entry has the original's MAC.
		if hmac.Equal(r.Mac, pendingMAC(key, []byte(r.Entry))) && !r.Chained && !slices.Contains(entries[:i], r.Entry) {
			hash = chainHash(key, last.Seq+1, last.Hash, []byte(r.Entry))
		}

		last.Seq, last.Hash = last.Seq+1, hash
		seqs[i], entries[i], hashes[i] = last.Seq, r.Entry, hash
	}

	if _, err := pg.Exec(ctx, tx, `
		insert into socle.audit (seq, entry, hash)
		select * from unnest(@seqs::bigint[], @entries::text[], @hashes::bytea[])`,
		pgx.StrictNamedArgs{"seqs": seqs, "entries": entries, "hashes": hashes}); err != nil {
		return 0, err
	}

	_, err = pg.Exec(ctx, tx, `update socle.audit_head set seq = @seq, hash = @hash`,
		pgx.StrictNamedArgs{"seq": last.Seq, "hash": last.Hash})
	return len(rows), err
}

// pendingMAC returns a pending entry's MAC.
func pendingMAC(key, entry []byte) []byte {
	return token.MAC(key, []byte(KeyPurpose+", pending"), entry)
}

// forgedHash is the hash for an entry with an invalid MAC.
var forgedHash = make([]byte, 1+sha256.Size)

// hashVersion is the first byte of a hash over length-prefixed fields. The previous release wrote
// unversioned 32-byte hashes. It may still write some after versioned ones during a rolling
// upgrade, so each entry is checked in its own hash's form.
const hashVersion = 2

// chainHash returns the hash for entry number seq, which follows the hash previous.
func chainHash(key []byte, seq int64, previous, entry []byte) []byte {
	mac := token.MAC(key, []byte(KeyPurpose), binary.BigEndian.AppendUint64(nil, uint64(seq)), previous, entry)
	return append([]byte{hashVersion}, mac...)
}

// chainHashV1 is chainHash in the previous release's form.
func chainHashV1(key []byte, seq int64, previous, entry []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(seq)))
	h.Write(previous)
	h.Write(entry)

	return h.Sum(nil)
}

// verifyChainHash reports whether hash is the hash of an entry, in either form.
func verifyChainHash(hash, key []byte, seq int64, previous, entry []byte) bool {
	if len(hash) == sha256.Size {
		return hmac.Equal(hash, chainHashV1(key, seq, previous, entry))
	}
	return hmac.Equal(hash, chainHash(key, seq, previous, entry))
}

// Report is the result from [Check].
type Report struct {
	Entries int64
	Head    Head
	Faults  []string // in log order; empty: none
}

// maxFaults bounds the faults in a report.
const maxFaults = 100

// Check verifies a database's whole log against the hashes under key. It cannot detect that the end
// of the log was cut off together with its head; compare the report's head with one noted earlier.
func Check(ctx context.Context, q pg.Querier, key []byte) (Report, error) {
	head, err := HeadOf(ctx, q)
	if err != nil {
		return Report{}, err
	}

	rows, err := q.Query(ctx, `select seq, entry, hash from socle.audit where seq <= $1 order by seq`, head.Seq)
	if err != nil {
		return Report{}, pg.Fault(err)
	}

	c := checker{key: key, last: Head{Hash: make([]byte, 32)}}
	if _, err := pgx.ForEachRow(rows, []any{&c.row.Seq, &c.row.Entry, &c.row.Hash}, c.next); err != nil {
		return Report{}, pg.Fault(err)
	}

	if c.last.Seq != head.Seq || !hmac.Equal(c.last.Hash, head.Hash) {
		c.addFault("the log ends with entry %d, but its head is entry %d", c.last.Seq, head.Seq)
	}

	c.report.Head = head
	return c.report, nil
}

// checker holds a check's state.
type checker struct {
	key    []byte
	row    row
	last   Head
	report Report
}

func (c *checker) next() error {
	r := c.row
	switch {
	case r.Seq != c.last.Seq+1:
		c.addFault("entries %d to %d are missing", c.last.Seq+1, r.Seq-1)
	case !verifyChainHash(r.Hash, c.key, r.Seq, c.last.Hash, []byte(r.Entry)):
		c.addFault("entry %d does not match its hash", r.Seq)
	}

	c.report.Entries++
	c.last.Seq, c.last.Hash = r.Seq, append(c.last.Hash[:0], r.Hash...)

	return nil
}

func (c *checker) addFault(format string, args ...any) {
	if len(c.report.Faults) < maxFaults {
		c.report.Faults = append(c.report.Faults, fmt.Sprintf(format, args...))
	}
}
