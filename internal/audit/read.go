package audit

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Recorded is an entry as stored in a log.
type Recorded struct {
	Seq int64 `json:"seq" doc:"Number in the log of its database, from 1."`
	Entry
	Hash string `json:"hash" doc:"Keyed hash of this entry and the previous one, in hexadecimal."`
}

// Filter selects entries. Empty members match all.
type Filter struct {
	Actor, Action, Project string
	From, To               time.Time // To is exclusive
}

// List returns a page of a database's entries and the number of entries that match the filter.
func List(ctx context.Context, q pg.Querier, f Filter, page pg.Page) ([]Recorded, int64, error) {
	const chosen = `socle.audit
		where (@actor = '' or entry::jsonb ->> 'actor' = @actor) and (@action = '' or entry::jsonb ->> 'action' = @action)
		  and (@project = '' or entry::jsonb ->> 'project' = @project)
		  and (@from = '' or entry::jsonb ->> 'at' >= @from) and (@to = '' or entry::jsonb ->> 'at' < @to)`

	args := pgx.StrictNamedArgs{
		"actor": f.Actor, "action": f.Action, "project": f.Project, "from": formatTime(f.From), "to": formatTime(f.To),
	}
	rows, total, err := pg.List[row](ctx, q, pg.Listing{
		Columns: "seq, entry, hash",
		From:    chosen,
		Sorts:   map[string]string{"seq": "seq"},
		Tie:     "seq",
	}, page, args)
	if err != nil {
		return nil, 0, err
	}

	entries := make([]Recorded, len(rows))
	for i, r := range rows {
		entries[i] = Recorded{Seq: r.Seq, Hash: hex.EncodeToString(r.Hash)}
		// Write never produces unreadable text. Such an entry is shown without its content, and
		// Check reports it.
		if err := json.Unmarshal([]byte(r.Entry), &entries[i].Entry); err != nil {
			entries[i].Entry = Entry{Action: "unreadable"}
		}
	}

	return entries, total, nil
}

type row struct {
	Seq   int64
	Entry string
	Hash  []byte
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

// Report is the result of [Check].
type Report struct {
	Entries int64
	Head    Head
	Faults  []string // in the order of the log; empty: none
}

// maxFaults bounds the faults of a report.
const maxFaults = 100

// Check verifies a database's whole log against its hashes under key. It cannot detect that the end
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

// checker holds the state of a check.
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
