package pg

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// cachedArgs are pgx.StrictNamedArgs for a statement whose text is parsed once per process instead
// of at each execution.
type cachedArgs pgx.StrictNamedArgs

// withCache converts pgx.StrictNamedArgs to cachedArgs.
func withCache(args []any) []any {
	if len(args) == 1 {
		if a, ok := args[0].(pgx.StrictNamedArgs); ok {
			return []any{cachedArgs(a)}
		}
	}

	return args
}

// maxRewritten is the maximum number of cached statements. The few that contain users' object names
// repeat less often.
const maxRewritten = 2000

var rewriteCache = struct {
	sync.RWMutex
	by map[string]rewrittenQuery
}{by: map[string]rewrittenQuery{}}

// rewrittenQuery is a statement with numbered instead of named parameters.
type rewrittenQuery struct {
	sql   string
	names []any // strings, by parameter number
}

// RewriteQuery replaces named parameters by numbered ones.
func (n cachedArgs) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	query, values, err := optionalArgs(n).RewriteQuery(ctx, conn, sql, args)
	if err == nil && len(values) != len(n) {
		return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, sql, args) // reports the superfluous names
	}

	return query, values, err
}

// optionalArgs are cachedArgs for a statement that may not use all of them.
type optionalArgs pgx.StrictNamedArgs

// RewriteQuery replaces named parameters by numbered ones.
func (n optionalArgs) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	rewriteCache.RLock()
	o, ok := rewriteCache.by[sql]
	rewriteCache.RUnlock()

	if !ok {
		names := make(pgx.NamedArgs, len(n))
		for name := range n {
			names[name] = name
		}

		var err error
		if o.sql, o.names, err = names.RewriteQuery(ctx, conn, sql, args); err != nil {
			return "", nil, err
		}

		if slices.Contains(o.names, nil) {
			return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, sql, args) // reports the missing name
		}

		rewriteCache.Lock()

		if len(rewriteCache.by) < maxRewritten {
			rewriteCache.by[sql] = o
		}

		rewriteCache.Unlock()
	}

	values := make([]any, len(o.names))
	for i, name := range o.names {
		v, ok := n[name.(string)]
		if !ok {
			return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, sql, args) // reports the missing name
		}

		values[i] = v
	}

	return o.sql, values, nil
}

// scanJSON is [json.Unmarshal], but a [json.RawMessage] takes the text unparsed: PostgreSQL has
// parsed it.
func scanJSON(data []byte, v any) error {
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = bytes.Clone(data)
		return nil
	}

	return json.Unmarshal(data, v)
}

// uuidCodec encodes and decodes UUIDs as their 16 bytes, without a detour through text.
type uuidCodec struct{ pgtype.UUIDCodec }

// PlanEncode returns a UUID encoder.
func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
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

// PlanScan returns a UUID decoder.
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
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
