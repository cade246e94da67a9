package pg

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// named are pgx.StrictNamedArgs for a statement whose text is parsed once per process instead of at
// each execution.
type named pgx.StrictNamedArgs

// remembered converts named arguments to named.
func remembered(args []any) []any {
	if len(args) == 1 {
		if a, ok := args[0].(pgx.StrictNamedArgs); ok {
			return []any{named(a)}
		}
	}

	return args
}

// mostRewritten is the maximum number of cached statements. The few that contain names of users'
// objects repeat less often.
const mostRewritten = 2000

var rewritten = struct {
	sync.RWMutex
	by map[string]ordinal
}{by: map[string]ordinal{}}

// ordinal is a statement with numbered instead of named parameters.
type ordinal struct {
	sql   string
	names []any // strings, in the order of the numbers
}

// RewriteQuery replaces named parameters by numbered ones.
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
			// Reports which names are missing or superfluous.
			return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, sql, args)
		}

		values[i] = v
	}

	return o.sql, values, nil
}

// uuids encodes and decodes UUIDs as their 16 bytes, without a detour through text.
type uuids struct{ pgtype.UUIDCodec }

// PlanEncode returns the encoder of a UUID.
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

// PlanScan returns the decoder of a UUID.
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

// Encode appends a UUID.
func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID)
	return append(buf, id[:]...), nil
}

// Encode appends a UUID, or nothing for null.
func (encodeNullUUID) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.NullUUID)
	if !id.Valid {
		return nil, nil
	}

	return append(buf, id.UUID[:]...), nil
}

// Scan decodes a UUID. As in package uuid, null leaves the target unchanged.
func (scanUUID) Scan(src []byte, target any) error {
	if src == nil {
		return nil
	}
	return target.(*uuid.UUID).UnmarshalBinary(src)
}

// Scan decodes a UUID or null.
func (scanNullUUID) Scan(src []byte, target any) error {
	id := target.(*uuid.NullUUID)
	if *id = (uuid.NullUUID{}); src == nil {
		return nil
	}

	id.Valid = true
	return id.UUID.UnmarshalBinary(src)
}
