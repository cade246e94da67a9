package pg

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// named are pgx.StrictNamedArgs for a statement whose text is looked through once in a process, not each time that it runs.
type named pgx.StrictNamedArgs

// remembered returns arguments as a statement is to run with.
func remembered(args []any) []any {
	if len(args) == 1 {
		if a, ok := args[0].(pgx.StrictNamedArgs); ok {
			return []any{named(a)}
		}
	}

	return args
}

// mostRewritten is how many statements are remembered. Few are put together from names of a user's things, and come again less.
const mostRewritten = 2000

var rewritten = struct {
	sync.RWMutex
	by map[string]ordinal
}{by: map[string]ordinal{}}

// ordinal is a statement with numbers in the places of names.
type ordinal struct {
	sql   string
	names []any // strings, in the order of the numbers
}

// RewriteQuery puts numbers in the places of names.
func (n named) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	rewritten.RLock()
	o, ok := rewritten.by[sql]
	rewritten.RUnlock()

	if !ok {
		names := make(pgx.StrictNamedArgs, len(n))
		for name := range n {
			names[name] = name
		}

		var err error
		if o.sql, o.names, err = names.RewriteQuery(ctx, conn, sql, args); err != nil {
			return "", nil, err
		}

		rewritten.Lock()

		if len(rewritten.by) < mostRewritten {
			rewritten.by[sql] = o
		}

		rewritten.Unlock()
	}

	values := make([]any, len(o.names))
	for i, name := range o.names {
		v, ok := n[name.(string)]
		if !ok || len(n) != len(o.names) {
			return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, sql, args) // which says what is missing, or too much
		}

		values[i] = v
	}

	return o.sql, values, nil
}

// uuids has UUIDs go between PostgreSQL's form and ours as the 16 bytes that they are, not by way of their text.
type uuids struct{ pgtype.UUIDCodec }

// PlanEncode returns how to write a UUID.
func (c uuids) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case uuid.UUID:
			return encodeUUID{}
		case uuid.NullUUID:
			return encodeNullUUID{}
		}
	}

	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

// PlanScan returns how to read a UUID.
func (c uuids) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode {
		switch target.(type) {
		case *uuid.UUID:
			return scanUUID{}
		case *uuid.NullUUID:
			return scanNullUUID{}
		}
	}

	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type (
	encodeUUID     struct{}
	encodeNullUUID struct{}
	scanUUID       struct{}
	scanNullUUID   struct{}
)

// Encode writes a UUID.
func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID)
	return append(buf, id[:]...), nil
}

// Encode writes a UUID, or that there is none.
func (encodeNullUUID) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.NullUUID)
	if !id.Valid {
		return nil, nil
	}

	return append(buf, id.UUID[:]...), nil
}

// Scan reads a UUID. As that type itself has it, none is the zero one.
func (scanUUID) Scan(src []byte, target any) error {
	if src == nil {
		return nil
	}
	return target.(*uuid.UUID).UnmarshalBinary(src)
}

// Scan reads a UUID, or that there is none.
func (scanNullUUID) Scan(src []byte, target any) error {
	id := target.(*uuid.NullUUID)
	if *id = (uuid.NullUUID{}); src == nil {
		return nil
	}

	id.Valid = true
	return id.UUID.UnmarshalBinary(src)
}
