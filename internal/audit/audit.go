// Package audit is the audit log: every change by whom, when, from where, to what. An entry is written in the
// transaction that makes the change, so there is neither a change without its entry nor an entry without its change.
//
// Each database has a log of its own, the platform's and every project's. A log is a chain: the hash of an entry
// is keyed with the instance's secret and covers the hash before it. [Check] finds what was changed, added or
// removed by someone who has the database and not the secret. Entries hold names and ids, never values.
//
// A package that changes something does it through [Write]. What it changes on whose behalf comes in the context, from
// whoever called [Begin]: the API with each request, a job, a command. Without one, Write is a plain transaction.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/token"
)

// Entry says of one change who made it, and how. Absent members are not written.
type Entry struct {
	At      time.Time `json:"at"`
	Action  string    `json:"action" doc:"The operation's id, or what the server did of its own."`
	Actor   string    `json:"actor,omitempty" doc:"UUID of the user; absent for what nobody asked for by name."`
	Via     string    `json:"via,omitempty" doc:"UUID of the session or the personal access token."`
	Client  string    `json:"client,omitempty" doc:"Address that the request came from."`
	Request string    `json:"request,omitempty" doc:"Id of the request."`
	Target  string    `json:"target,omitempty" doc:"Path of the request."`
	Created string    `json:"created,omitempty" doc:"What the change made: UUID or name."`
	Fields  []string  `json:"fields,omitempty" doc:"Members that the body named."`
	Project string    `json:"project,omitempty"`
	Key     string    `json:"key,omitempty" doc:"Hash of the request's Idempotency-Key."`
}

// KeyPurpose is what the key of the log is derived for from the instance's secret.
const KeyPurpose = "audit log"

// Head is the end of a database's log.
type Head struct {
	Log  string // platform or project
	Seq  int64  // number of the last entry, 0 if there is none
	Hash []byte // of the last entry
}

// ErrMoved says that something else was changed in the database since the head that [Expect] named.
var ErrMoved = errors.New("audit: another change came first")

// record is what a context carries.
type record struct {
	key      []byte
	entry    Entry
	expected []Head
}

type recordKey struct{}

// Begin returns a context in which changes are noted as e says, under the key of the instance.
func Begin(ctx context.Context, key []byte, e Entry) context.Context {
	return context.WithValue(ctx, recordKey{}, &record{key: key, entry: e})
}

// Created notes what the change under way makes: a UUID or a name. It is called before the transaction ends.
func Created(ctx context.Context, what string) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Created = what
	}
}

// By notes who makes the change under way, where that shows only on the way: at a log-in, for one.
func By(ctx context.Context, user uuid.UUID) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Actor = user.String()
	}
}

// In notes the project that the change under way belongs to, where the request did not name it.
func In(ctx context.Context, project uuid.UUID) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Project = project.String()
	}
}

// CreatedUUID is [Created] for a UUID.
func CreatedUUID(ctx context.Context, id uuid.UUID) { Created(ctx, id.String()) }

// Expect returns a context in which a change to the database of a head fails with [ErrMoved] unless it is the first
// one after it.
func Expect(ctx context.Context, heads ...Head) context.Context {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return ctx
	}

	next := *r
	next.expected = heads

	return context.WithValue(ctx, recordKey{}, &next)
}

// HeadOf returns the end of a database's log.
func HeadOf(ctx context.Context, q pg.Querier) (Head, error) {
	return pg.One[Head](ctx, q, `select log, seq, hash from socle.audit_head`)
}

// Write runs f in a transaction as [pg.InTx] does, and notes the change at its end. A transaction within a transaction
// is noted by the outer one. It fails with Conflict, code already_done, if the request's Idempotency-Key has made
// its change before.
func Write(ctx context.Context, b pg.Beginner, f func(tx pgx.Tx) error) error {
	r, _ := ctx.Value(recordKey{}).(*record)
	if _, inner := b.(pgx.Tx); inner || r == nil {
		return pg.InTx(ctx, b, f)
	}

	return pg.InTx(ctx, b, func(tx pgx.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return r.append(ctx, tx)
	})
}

// append adds the entry to the log. From here to the end of the transaction nobody else adds one, so it is the last
// thing that a transaction does.
func (r *record) append(ctx context.Context, tx pgx.Tx) error {
	last, err := pg.One[Head](ctx, tx, `select log, seq, hash from socle.lock_audit()`)
	if err != nil {
		return err
	}

	if slices.ContainsFunc(r.expected, func(h Head) bool { return h.Log == last.Log && h.Seq != last.Seq }) {
		return ErrMoved
	}

	e := r.entry
	e.At = time.Now().UTC().Truncate(time.Microsecond)
	text, err := json.Marshal(e, timestamps)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `select socle.append_audit(@seq, @entry, @hash)`,
		pgx.StrictNamedArgs{
			"seq": last.Seq + 1, "entry": string(text), "hash": chained(r.key, last.Seq+1, last.Hash, text),
		})
	if pg.Violates(err, "audit_key") {
		return AlreadyDone(err)
	}

	return err
}

// AlreadyDone returns the failure of a request whose Idempotency-Key has made its change before: Conflict, code already_done.
func AlreadyDone(cause error) error {
	return fault.New(fault.Conflict, "what this key asked for is done already, and its answer was lost").
		WithCode("already_done").Because(cause)
}

// KeyOf returns the hash of the Idempotency-Key of the request that ctx belongs to; "" if it has none.
func KeyOf(ctx context.Context) string {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r.entry.Key
	}
	return ""
}

// HasKey reports whether a committed change of the database was made under an Idempotency-Key, by the key's hash.
func HasKey(ctx context.Context, q pg.Querier, key string) (bool, error) {
	return pg.Value[bool](ctx, q, `select exists (select from socle.audit where entry::jsonb ->> 'key' = @key)`,
		pgx.StrictNamedArgs{"key": key})
}

// hashVersion is the first byte of a hash over fields with their lengths. The release before wrote hashes without a
// version, of 32 bytes. It may go on to write some behind versioned ones while servers are replaced, so each
// entry is checked by the form that its own hash has.
const hashVersion = 2

// chained returns the hash of an entry of this number that follows one with the hash previous.
func chained(key []byte, seq int64, previous, entry []byte) []byte {
	mac := token.MAC(key, []byte(KeyPurpose), binary.BigEndian.AppendUint64(nil, uint64(seq)), previous, entry)
	return append([]byte{hashVersion}, mac...)
}

// formerlyChained is chained as the release before has it.
func formerlyChained(key []byte, seq int64, previous, entry []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(seq)))
	h.Write(previous)
	h.Write(entry)

	return h.Sum(nil)
}

// isChained reports whether a hash is that of an entry.
func isChained(hash, key []byte, seq int64, previous, entry []byte) bool {
	if len(hash) == sha256.Size {
		return hmac.Equal(hash, formerlyChained(key, seq, previous, entry))
	}
	return hmac.Equal(hash, chained(key, seq, previous, entry))
}

// timestamps writes times so that their order as text is their order.
var timestamps = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format(timeFormat)))
}))

const timeFormat = "2006-01-02T15:04:05.000000Z"
