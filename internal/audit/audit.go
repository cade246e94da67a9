// Package audit owns the audit log: the user, time, origin and target of every change. Write adds
// an entry in the change's transaction, so that changes and entries are committed together.
//
// The platform database and each project database have separate logs. Write inserts an entry as
// pending, with a MAC keyed with the server's secret key, so that concurrent changes never wait for
// each other. [Chain] moves pending entries into a hash chain: the keyed hash of an entry covers
// the previous hash. [Check] detects entries in the chain that someone with access to the database,
// but not to the key, has changed, added or removed. Entries contain names and ids, never values.
//
// A package makes changes through [Write]. The context carries the entry, which [Begin] receives:
// from the API for each request, from a job, or from a command. Without an entry, Write is a plain
// transaction.
package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Entry is the audit entry for one change. Empty members are omitted.
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
	Received int64 `json:"received,omitempty,omitzero" doc:"Bytes received from the client, at the end of a database session."`
	// Method and Schema describe a change of rows or files by a user of the platform.
	Method string `json:"method,omitempty" doc:"Method of a request for rows or files."`
	Schema string `json:"schema,omitempty" doc:"Schema of the table or function of a request for rows, if it is not the default one."`
	As     string `json:"as,omitempty" doc:"Whom the user acted as in a request for rows or files, or in SQL: service_role, anon, authenticated, or user: and the UUID of an end user."`
	Key    string `json:"key,omitempty" doc:"Hash of the request's Idempotency-Key."`
}

// Actions other than operations.
const (
	ChangeFiles          = "changeFiles"
	ChangeRows           = "changeRows"
	CreateBackupFirst    = "createBackupFirst"
	CreateDueBackup      = "createDueBackup"
	DisconnectDatabase   = "disconnectDatabase"
	RemoveExpiredProject = "removeExpiredProject"
	RemoveUnkeptBackups  = "removeUnkeptBackups"
)

// OtherActions lists the actions other than operations.
var OtherActions = []string{
	ChangeFiles, ChangeRows, CreateBackupFirst, CreateDueBackup, DisconnectDatabase, RemoveExpiredProject,
	RemoveUnkeptBackups,
}

// KeyPurpose is the purpose under which [token.Derive] derives the log's key.
const KeyPurpose = "audit log"

// Head is the end of a database's chain.
type Head struct {
	Log  string // platform or project
	Seq  int64  // last entry's number; 0: none
	Hash []byte // last entry's hash
}

// Position is the number of committed entries in a database's log, pending ones included.
type Position struct {
	Log     string // platform or project
	Entries int64
}

// ErrPositionChanged is the failure when another change has followed the position that [Expect]
// set.
var ErrPositionChanged = errors.New("audit: another change came first")

// record is the audit state in a context.
type record struct {
	key       []byte
	entry     Entry
	positions []Position

	hasEntry *atomic.Bool // shared by the contexts from [Expect]
}

type recordKey struct{}

// Begin returns a context in which [Write] appends the entry e, under key.
func Begin(ctx context.Context, key []byte, e Entry) context.Context {
	return context.WithValue(ctx, recordKey{}, &record{key: key, entry: e, hasEntry: new(atomic.Bool)})
}

// Committed reports whether a transaction under ctx has committed an entry.
func Committed(ctx context.Context) bool {
	r, ok := ctx.Value(recordKey{}).(*record)
	return ok && r.hasEntry.Load()
}

// Created sets the created object's UUID or name. Call it before the transaction ends.
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

// ActAs sets whom the user acts as, as [Entry.As] has it.
func ActAs(ctx context.Context, who string) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.As = who
	}
}

// In sets the change's project, if the request did not name it.
func In(ctx context.Context, project uuid.UUID) {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		r.entry.Project = project.String()
	}
}

// CreatedUUID is [Created] for a UUID.
func CreatedUUID(ctx context.Context, id uuid.UUID) { Created(ctx, id.String()) }

// Expect returns a context in which a change fails with [ErrPositionChanged] unless it is the first
// one after its database's log position.
func Expect(ctx context.Context, positions ...Position) context.Context {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return ctx
	}

	next := *r
	next.positions = positions

	return context.WithValue(ctx, recordKey{}, &next)
}

// HeadOf returns the head in a database's chain.
func HeadOf(ctx context.Context, q pg.Querier) (Head, error) {
	return pg.One[Head](ctx, q, `select log, seq, hash from socle.audit_head`)
}

// PositionOf returns a database's log position.
func PositionOf(ctx context.Context, q pg.Querier) (Position, error) {
	return pg.One[Position](ctx, q, `
		select log, seq + (select count(*) from socle.audit_pending) as entries from socle.audit_head`)
}

// Write runs f in a transaction as [pg.InTx] does, and inserts the entry at the end. Within another
// transaction it leaves the entry to the outer one. It fails with Conflict, code already_done, if
// the request's Idempotency-Key has already made a change.
func Write(ctx context.Context, b pg.Beginner, f func(tx pgx.Tx) error) error {
	r, _ := ctx.Value(recordKey{}).(*record)
	if _, inner := b.(pgx.Tx); inner || r == nil {
		return pg.InTx(ctx, b, f)
	}

	err := pg.InTx(ctx, b, func(tx pgx.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return r.insert(ctx, tx)
	})
	if err == nil {
		r.hasEntry.Store(true)
	}

	return err
}

// Change is a change that one statement makes.
type Change struct {
	With string // common table expressions; "": none
	SQL  string // a statement with RETURNING, or a query on With, that returns the changed row
	Args pgx.StrictNamedArgs

	Lock         string // see [pg.Single]
	LockArgs     pgx.StrictNamedArgs
	EarlyRelease bool // see [pg.Single]
}

// statement returns the change as SQL. after has further common table expressions, which may read
// changed; columns lists the result columns.
func (c Change) statement(after, columns string) string {
	with := "changed as (" + c.SQL + ")" + after
	if c.With != "" {
		with = c.With + ", " + with
	}

	return "with " + with + " select " + columns + " from changed"
}

// One is [Write] for a change to at most one row, which it returns, in one round trip. Without a
// row it fails with NotFound and adds no entry. If b is a pool, it is the platform login's.
func One[T any](ctx context.Context, b pg.Beginner, c Change) (T, error) {
	pool, ok := b.(*pgxpool.Pool)
	r, _ := ctx.Value(recordKey{}).(*record)
	if !ok || (r != nil && len(r.positions) > 0) {
		var row T
		err := Write(ctx, b, func(tx pgx.Tx) (err error) {
			if c.Lock != "" {
				if _, err := pg.Exec(ctx, tx, c.Lock, c.LockArgs); err != nil {
					return err
				}
			}

			row, err = pg.One[T](ctx, tx, c.statement("", "changed.*"), c.Args)
			return err
		})
		return row, err
	}

	// Evaluated for each changed row, in a column that is not read.
	var sideEffects []string
	args := maps.Clone(c.Args)
	if c.EarlyRelease {
		sideEffects = append(sideEffects, "pg_catalog.set_config('synchronous_commit', 'off', true)")
	}

	entry := ""
	if r != nil {
		text, err := r.text()
		if err != nil {
			return *new(T), err
		}

		args["audit_entry"], args["audit_mac"] = string(text), pendingMAC(r.key, text)
		if r.entry.Key == "" { // the function checks that a key is new, and costs as much as a change
			entry = ", entry as (insert into socle.audit_pending (entry, mac) select @audit_entry, @audit_mac from changed)"
		} else {
			sideEffects = append(sideEffects, "socle.write_audit(@audit_entry, @audit_mac)")
		}
	}

	columns := "changed.*, row(" + strings.Join(sideEffects, ", ") + ")::text"
	row, err := pg.OneInSingle(ctx, pool, pg.Single{SQL: c.statement(entry, columns), Args: args, Lock: c.Lock,
		LockArgs: c.LockArgs, EarlyRelease: c.EarlyRelease}, withoutLastColumn[T])
	if pg.Violates(err, "audit_pending_key") {
		return row, AlreadyDone(err)
	}

	if err == nil && r != nil {
		r.hasEntry.Store(true)
	}

	return row, err
}

// withoutLastColumn reads a row's columns but the last into a T by name.
func withoutLastColumn[T any](row pgx.CollectableRow) (T, error) { return pg.RowAndLast[T](row, nil) }

// insert inserts the entry as pending. It comes last in the transaction: an expected position locks
// the log.
func (r *record) insert(ctx context.Context, tx pgx.Tx) error {
	if len(r.positions) > 0 {
		current, err := pg.One[Position](ctx, tx, `select log, entries from socle.lock_audit_entries()`)
		if err != nil {
			return err
		}

		if slices.ContainsFunc(r.positions, func(p Position) bool { return p.Log == current.Log && p != current }) {
			return ErrPositionChanged
		}
	}

	text, err := r.text()
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `select socle.write_audit(@entry, @mac)`,
		pgx.StrictNamedArgs{"entry": string(text), "mac": pendingMAC(r.key, text)})
	if pg.Violates(err, "audit_pending_key") {
		return AlreadyDone(err)
	}

	return err
}

// text returns the entry as JSON.
func (r *record) text() ([]byte, error) {
	e := r.entry
	e.At = time.Now().UTC().Truncate(time.Microsecond)

	return json.Marshal(e, timestamps)
}

// AlreadyDone returns the failure for a request whose Idempotency-Key has already made a change:
// Conflict, code already_done.
func AlreadyDone(cause error) error {
	return fault.New(fault.Conflict, "the request with this key is already done, and its response was lost").
		WithCode("already_done").WithCause(cause)
}

// KeyOf returns the hash for the Idempotency-Key in ctx's request; "" without one.
func KeyOf(ctx context.Context) string {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r.entry.Key
	}
	return ""
}

// HasKey reports whether a committed change in the database was made under the Idempotency-Key with
// the hash key
func HasKey(ctx context.Context, q pg.Querier, key string) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select exists (select from socle.audit where entry::jsonb ->> 'key' = @key)
			or exists (select from socle.audit_pending where key = @key)`, pgx.StrictNamedArgs{"key": key})
}

// timestamps formats times so that they sort as text.
var timestamps = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format(timeFormat)))
}))

const timeFormat = "2006-01-02T15:04:05.000000Z"
