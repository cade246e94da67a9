package event

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Subscription selects events for the project's owner: policies hide no rows, and a changed row has
// all columns, as has the former one.
type Subscription struct {
	Tables []Binding // with a table each; Select is ignored
	Facts  []string  // see [Facts]
}

// Event is an event for a subscription.
type Event struct {
	ID   uuid.UUID // the same whenever the event is read
	Type string
	At   time.Time
	Data json.RawMessage // JSON object
}

// Tail reads a project's log for consumers that store their cursors themselves. It is not safe for
// concurrent use.
type Tail struct {
	project *projectdb.Project
	version string // the catalog's when the views were made
	views   map[string][]*view
}

// NewTail returns a tail of a project's log.
func NewTail(p *projectdb.Project) *Tail { return &Tail{project: p, views: map[string][]*view{}} }

// Batch is a page of the log.
type Batch struct {
	Next string // cursor after it
	More bool   // the log has more up to Until
	// Until is the state of the log that the batch belongs to. A batch for another cursor that is
	// read up to the same state ends at the same cursor.
	Until string

	entries []*entry
	place   string
	version string
}

// Catalog identifies the catalog when the batch was read: tables may be others at another one.
func (b Batch) Catalog() string { return b.version }

// Len returns the number of entries in the batch.
func (b Batch) Len() int { return len(b.entries) }

// Present returns the cursor of a transaction: events of transactions that it does not see are
// after it.
func Present(ctx context.Context, tx pgx.Tx) (string, error) {
	now, err := pg.One[struct{ Snapshot, Place string }](ctx, tx, `
		select pg_current_snapshot()::text as snapshot, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '-' ||
			(select oid from pg_database where datname = current_database()) as place`)
	if err != nil {
		return "", err
	}

	at, _ := parseSnapshot(now.Snapshot)
	return position{from: at}.cursor(now.Place), nil
}

// Read returns the next entries after a cursor, up to a state of the log, or with "" up to the
// present. It fails with [ErrResync] if entries after the cursor are lost, other than by the
// removal that the consumer has been told of, "" for none.
func (t *Tail) Read(ctx context.Context, cursor, until, removed string) (Batch, error) {
	at, epoch, ok := parseCursor(cursor)
	if !ok {
		return Batch{}, ErrResync
	}

	q := t.project.Trusted()
	var p page
	var err error
	switch target, hasTarget := parseSnapshot(until); {
	case at.to.text == "" && !hasTarget:
		if p, err = readNew(ctx, q, at.from); err == nil {
			at.to = p.head.now
		}
	case at.to.text == "" && target.isBefore(at.from):
		return Batch{Next: cursor, Until: until}, nil
	default:
		if at.to.text == "" {
			at.to = target
		}
		p, err = readBetween(ctx, q, at)
	}
	if err != nil {
		return Batch{}, err
	}

	if p.head.place != epoch {
		return Batch{}, ErrResync
	}
	if err := checkRemoved(ctx, q, at.from, removed); err != nil {
		return Batch{}, err
	}

	return batchOf(p, at), nil
}

// batchOf returns the batch of a page that was read at a position.
func batchOf(p page, at position) Batch {
	b := Batch{More: p.more, Until: at.to.text, entries: p.entries, place: p.head.place, version: p.head.version}
	if n := len(p.entries); p.more && n > 0 {
		at.xid, at.seq = p.entries[n-1].XID, uint64(p.entries[n-1].Seq)
	} else {
		at = position{from: at.to}
	}
	b.Next = at.cursor(p.head.place)

	return b
}

// Bind returns the OIDs of a subscription's tables. It fails with Invalid for a table, a column
// or a value that does not fit.
func (t *Tail) Bind(ctx context.Context, s Subscription) ([]uint32, error) {
	views, err := t.bind(ctx, s.Tables)
	return slices.Sorted(maps.Keys(oidsOf(views))), err
}

// Capture begins to capture tables and facts for subscriptions, which socle.webhooks has. It fails
// with Unavailable while a table is locked.
func Capture(ctx context.Context, q pg.Querier, tables []uint32, facts bool) error {
	if facts {
		if _, err := pg.Exec(ctx, q, `select socle.listen(false)`); err != nil {
			return lockedFault(err)
		}
	}

	for _, oid := range tables {
		if err := capture(ctx, q, oid); err != nil {
			return err
		}
	}

	return nil
}

// Keep captures a subscription's tables and facts again, as far as its tables exist.
func (t *Tail) Keep(ctx context.Context, s Subscription) error {
	var tables []uint32
	for i := range s.Tables {
		oids, err := t.Bind(ctx, Subscription{Tables: s.Tables[i : i+1]})
		if err != nil && !fault.Is(err, fault.Invalid) {
			return err
		}
		tables = append(tables, oids...)
	}
	slices.Sort(tables)

	return Capture(ctx, t.project.Trusted(), slices.Compact(tables), len(s.Facts) > 0)
}

// CapturedSince returns the transaction from which on all of some tables are captured, as a text of
// xid8: 0 without tables.
func CapturedSince(ctx context.Context, q pg.Querier, tables []uint32) (string, error) {
	return pg.Value[string](ctx, q, `
		select coalesce((select since::text from socle.captures where relation = any(@tables::oid[]) order by since desc limit 1), '0')`,
		pgx.StrictNamedArgs{"tables": tables})
}

// Match returns the events in a batch that a subscription selects, in the log's order. A table that
// no longer exists has none.
func (t *Tail) Match(ctx context.Context, b Batch, s Subscription) ([]Event, error) {
	if len(b.entries) == 0 {
		return nil, nil
	}

	views, err := t.currentViews(ctx, b.version, s.Tables)
	if err != nil {
		return nil, err
	}

	byRelation := map[uint32][]*entry{}
	for _, e := range b.entries {
		byRelation[e.Relation] = append(byRelation[e.Relation], e)
	}

	matched := map[*entry]Change{}
	for _, v := range views {
		m := &matcher{querier: ownerQuerier{t.project}, entries: byRelation[v.relation.OID],
			rows: make(decodedRows, len(byRelation[v.relation.OID]))}
		if err := m.add(ctx, v, matched); err != nil {
			return nil, err
		}
	}

	var events []Event
	for _, e := range b.entries {
		c, isRow := matched[e]
		switch {
		case isRow:
			events = append(events, Event{t.eventID(b.place, e), rowTypes[c.Type], e.At, rowData(c)})
		case e.Operation == factual && slices.Contains(s.Facts, e.Type):
			events = append(events, Event{t.eventID(b.place, e), e.Type, e.At, e.Record})
		}
	}

	return events, nil
}

// rowTypes are the types of changes as events name them.
var rowTypes = map[string]string{Insert: RowInserted, Update: RowUpdated, Delete: RowDeleted, Truncate: TableTruncated}

// rowData returns the data of an event about a row.
func rowData(c Change) json.RawMessage {
	data := struct {
		Schema    string          `json:"schema"`
		Table     string          `json:"table"`
		Record    json.RawMessage `json:"record"`
		Old       json.RawMessage `json:"old"`
		Oversized bool            `json:"oversized,omitempty"`
	}{c.Schema, c.Table, c.Record, c.Old, c.Oversized}
	text, _ := json.Marshal(data) // PostgreSQL wrote the rows

	return text
}

// eventID derives the ID of an entry from its place in the log.
func (t *Tail) eventID(place string, e *entry) uuid.UUID {
	if e.ID != uuid.Nil {
		return e.ID
	}

	text := append(t.project.UUID[:], place...)
	text = binary.BigEndian.AppendUint64(text, e.XID)
	text = binary.BigEndian.AppendUint64(text, uint64(e.Seq))
	sum := sha256.Sum256(text)

	return Versioned(uuid.UUID(sum[:16]))
}

// currentViews returns the views of bindings at a version of the catalog.
func (t *Tail) currentViews(ctx context.Context, version string, bindings []Binding) ([]*view, error) {
	if t.version != version {
		t.version = version
		clear(t.views)
	}

	key := bindingsKey(bindings)
	views, ok := t.views[key]
	if ok {
		return views, nil
	}

	for i := range bindings {
		bound, err := t.bind(ctx, bindings[i:i+1])
		if err != nil && !fault.Is(err, fault.Invalid) {
			return nil, err
		}
		views = append(views, bound...)
	}
	t.views[key] = views

	return views, nil
}

// bind binds bindings to tables as the project's owner.
func (t *Tail) bind(ctx context.Context, bindings []Binding) ([]*view, error) {
	owner := t.project.Cluster().OwnerLogin(t.project.UUID)
	var views []*view
	for i, b := range bindings {
		if slices.Contains(namespace.Platform, b.Schema) || slices.Contains(namespace.Services, b.Schema) {
			return nil, fault.New(fault.Invalid, "the tables of schema %s can't be followed: name a type of events instead",
				b.Schema)
		}

		filters, err := parseFilters(b.Filter)
		if err != nil {
			return nil, err
		}

		all, err := relations(ctx, t.project.Trusted(), "", owner, b)
		if err != nil {
			return nil, err
		}

		r := all[0]
		r.Full, r.Secured, r.Conditions = true, false, ""
		b.Select = ""
		v, err := newView(i, b, &r, filters)
		if err != nil {
			return nil, err
		}
		if len(v.filters) > 0 {
			if err := normalize(ctx, ownerQuerier{t.project}, v.relation, v.filters); err != nil {
				return nil, err
			}
		}
		views = append(views, v)
	}

	return views, nil
}

// ownerQuerier executes statements as the project's owner.
type ownerQuerier struct{ project *projectdb.Project }

// Texts executes a statement in a read-only transaction, and returns its rows as texts. Both
// statements are one round trip.
func (q ownerQuerier) Texts(ctx context.Context, sql string, args ...[]byte) ([][][]byte, error) {
	return projectdb.OwnerTexts(ctx, q.project, checkTimeout, sql, args...)
}
