package pg

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/trace"
)

// statementTracer records a span of each statement within a trace. A span has the statement's
// first word at most: the rest can be a user's text.
type statementTracer struct{}

type statementKey struct{}

// TraceQueryStart starts the span of a statement.
func (statementTracer) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData,
) context.Context {
	ctx, span := StartSpan(ctx, data.SQL)
	if span == nil {
		return ctx
	}

	return context.WithValue(ctx, statementKey{}, span)
}

// TraceQueryEnd ends the span of a statement.
func (statementTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	span, ok := ctx.Value(statementKey{}).(*trace.Span)
	if !ok {
		return
	}

	if data.Err != nil && !errors.Is(data.Err, pgx.ErrNoRows) {
		span.Fail()
	}
	span.End()
}

// StartSpan starts the span of a statement within the context's trace, or returns nil outside one.
func StartSpan(ctx context.Context, sql string) (context.Context, *trace.Span) {
	if !trace.Active(ctx) {
		return ctx, nil
	}

	operation := operationOf(sql)
	return trace.Start(ctx, operation, trace.Client, trace.Attribute{Key: "db.system.name", Value: "postgresql"},
		trace.Attribute{Key: "db.operation.name", Value: operation})
}

// operations are the first words of statements that a span may show.
var operations = map[string]bool{
	"ALTER": true, "ANALYZE": true, "BEGIN": true, "CALL": true, "COMMENT": true, "COMMIT": true, "CREATE": true,
	"DELETE": true, "DISCARD": true, "DO": true, "DROP": true, "EXPLAIN": true, "GRANT": true, "INSERT": true,
	"LOCK": true, "MERGE": true, "NOTIFY": true, "RELEASE": true, "REVOKE": true, "ROLLBACK": true,
	"SAVEPOINT": true, "SELECT": true, "SET": true, "TRUNCATE": true, "UPDATE": true, "VACUUM": true, "WITH": true,
}

const longestOperation = 10 // bytes

// operationOf returns the first word of a statement if it is a known one.
func operationOf(sql string) string {
	sql = strings.TrimLeft(sql, " \t\r\n")
	end := strings.IndexFunc(sql[:min(len(sql), longestOperation)], func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = min(len(sql), longestOperation)
	}
	if word := strings.ToUpper(sql[:end]); operations[word] {
		return word
	}

	return "statement"
}
