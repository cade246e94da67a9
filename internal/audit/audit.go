// Package audit owns the audit log: the user, time, origin and target of every change. Write adds
// an entry in the transaction of the change, so that changes and entries are committed together.
//
// The platform database and each project database have a log of their own. A log is a hash chain:
// the hash of an entry is keyed with the server's secret key and covers the previous hash. [Check]
// detects entries that someone with access to the database, but not to the key, has changed, added
// or removed. Entries contain names and ids, never values.
//
// A package makes changes through [Write]. The context carries the entry, which the caller of
// [Begin] provides: the API for each request, a job, or a command. Without an entry, Write is a
// plain transaction.
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

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Entry is the audit entry of one change. Empty members are omitted.
type Entry struct {
	At      time.Time `json:"at"`
	Action  string    `json:"action" doc:"Id of the operation, or name of an internal change."`
	Actor   string    `json:"actor,omitempty" doc:"UUID of the user; absent for anonymous and internal changes."`
	Via     string    `json:"via,omitempty" doc:"UUID of the session, of the personal access token, or of the database credential."`
	Client  string    `json:"client,omitempty" doc:"Address of the client."`
	Request string    `json:"request,omitempty" doc:"Id of the request."`
	Target  string    `json:"target,omitempty" doc:"Path of the request."`
	Created string    `json:"created,omitempty" doc:"UUID or name of the created object."`
	Fields  []string  `json:"fields,omitempty" doc:"Fields of the request body."`
	Project string    `json:"project,omitempty"`
	Sent    int64     `json:"sent,omitempty,omitzero" doc:"Bytes sent to the client, at the end of a database session."`
	// Received counts the bytes in the other direction.
	Received int64  `json:"received,omitempty,omitzero" doc:"Bytes received from the client, at the end of a database session."`
	Key      string `json:"key,omitempty" doc:"Hash of the request's Idempotency-Key."`
}

// KeyPurpose is the purpose of the log's key in [token.Derive].
const KeyPurpose = "audit log"

// Head is the end of a database's log.
type Head struct {
	Log  string // platform or project
	Seq  int64  // number of the last entry; 0: none
	Hash []byte // of the last entry
}

// ErrHeadChanged is the failure of a change when another change has followed the head of [Expect].
var ErrHeadChanged = errors.New("audit: another change came first")

// record is the audit state in a context.
type record struct {
	key      []byte
	entry    Entry
	expected []Head
}

type recordKey struct{}

// Begin returns a context in which [Write] appends the entry e, under key.
func Begin(ctx context.Context, key []byte, e Entry) context.Context {
	return context.WithValue(ctx, recordKey{}, &record{key: key, entry: e})
}

// Created sets the UUID or the name of the created object. Call it before the transaction ends.
func Created(ctx context.Context, what string) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Created = what
	}
}

// SetActor sets the user who makes the change, if known only during the operation, as for a log-in.
func SetActor(ctx context.Context, user uuid.UUID) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Actor = user.String()
	}
}

// In sets the project of the change, if the request did not name it.
func In(ctx context.Context, project uuid.UUID) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Project = project.String()
	}
}

// CreatedUUID is [Created] for a UUID.
func CreatedUUID(ctx context.Context, id uuid.UUID) { Created(ctx, id.String()) }

// Expect returns a context in which a change fails with [ErrHeadChanged] unless it is the first one
// after the head of its database.
func Expect(ctx context.Context, heads ...Head) context.Context {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return ctx
	}

	next := *r
	next.expected = heads

	return context.WithValue(ctx, recordKey{}, &next)
}

// HeadOf returns the head of a database's log.
func HeadOf(ctx context.Context, q pg.Querier) (Head, error) {
	return pg.One[Head](ctx, q, `select log, seq, hash from socle.audit_head`)
}

// Write runs f in a transaction as [pg.InTx] does, and appends the entry at its end. Within another
// transaction it leaves the entry to the outer one. It fails with Conflict, code already_done, if
// the request's Idempotency-Key has already made its change.
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

// append appends the entry to the log. It locks the log until the transaction ends, so it comes
// last.
func (r *record) append(ctx context.Context, tx pgx.Tx) error {
	last, err := pg.One[Head](ctx, tx, `select log, seq, hash from socle.lock_audit()`)
	if err != nil {
		return err
	}

	if slices.ContainsFunc(r.expected, func(h Head) bool { return h.Log == last.Log && h.Seq != last.Seq }) {
		return ErrHeadChanged
	}

	e := r.entry
	e.At = time.Now().UTC().Truncate(time.Microsecond)
	text, err := json.Marshal(e, timestamps)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `select socle.append_audit(@seq, @entry, @hash)`,
		pgx.StrictNamedArgs{
			"seq": last.Seq + 1, "entry": string(text), "hash": chainHash(r.key, last.Seq+1, last.Hash, text),
		})
	if pg.Violates(err, "audit_key") {
		return AlreadyDone(err)
	}

	return err
}

// AlreadyDone returns the failure of a request whose Idempotency-Key has already made its change:
// Conflict, code already_done.
func AlreadyDone(cause error) error {
	return fault.New(fault.Conflict, "the request with this key is already done, and its response was lost").
		WithCode("already_done").WithCause(cause)
}

// KeyOf returns the hash of the Idempotency-Key of ctx's request; "" without one.
func KeyOf(ctx context.Context) string {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r.entry.Key
	}
	return ""
}

// HasKey reports whether a committed change of the database was made under an Idempotency-Key. key
// is its hash.
func HasKey(ctx context.Context, q pg.Querier, key string) (bool, error) {
	return pg.Value[bool](ctx, q, `select exists (select from socle.audit where entry::jsonb ->> 'key' = @key)`,
		pgx.StrictNamedArgs{"key": key})
}

// hashVersion is the first byte of a hash over length-prefixed fields. The previous release wrote
// unversioned hashes of 32 bytes. It may still write some after versioned ones during a rolling
// upgrade, so each entry is checked by the form of its own hash.
const hashVersion = 2

// chainHash returns the hash of entry number seq, which follows the hash previous.
func chainHash(key []byte, seq int64, previous, entry []byte) []byte {
	mac := token.MAC(key, []byte(KeyPurpose), binary.BigEndian.AppendUint64(nil, uint64(seq)), previous, entry)
	return append([]byte{hashVersion}, mac...)
}

// chainHashV1 is chainHash in the form of the previous release.
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

// timestamps formats times so that they sort as text.
var timestamps = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format(timeFormat)))
}))

const timeFormat = "2006-01-02T15:04:05.000000Z"
