package pg

import (
	"context"
	"strings"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/socle-dev/socle/internal/trace"
)

// statementTracer records a span for each statement within a trace. A span has the statement's
// first word at most: the rest can be a user's text. Outside a trace it records nothing, not even
// the time, which the library keeps for its metrics.
type statementTracer struct{}

var statements = otelpgx.NewTracer(otelpgx.WithTracerProvider(trace.Provider{}),
	otelpgx.WithMeterProvider(noopmetric.MeterProvider{}), otelpgx.WithTrimSQLInSpanName(),
	otelpgx.WithSpanNameFunc(operationOf), otelpgx.WithDisableQuerySpanNamePrefix(),
	otelpgx.WithDisableConnectionDetailsInAttributes(), otelpgx.WithDisableSQLStatementInAttributes())

// TraceQueryStart starts a statement's span.
func (statementTracer) TraceQueryStart(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData,
) context.Context {
	if !trace.Active(ctx) {
		return ctx
	}

	ctx = statements.TraceQueryStart(ctx, conn, data)
	oteltrace.SpanFromContext(ctx).SetAttributes(semconv.DBOperationName(operationOf(data.SQL)))

	return ctx
}

// TraceQueryEnd ends a statement's span.
func (statementTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if trace.Active(ctx) {
		statements.TraceQueryEnd(ctx, conn, data)
	}
}

// StartSpan starts the span for a statement that is executed without pgx's query methods. Outside a
// trace the span's methods do nothing.
func StartSpan(ctx context.Context, sql string) (context.Context, oteltrace.Span) {
	if !trace.Active(ctx) {
		return ctx, oteltrace.SpanFromContext(ctx)
	}

	operation := operationOf(sql)
	return trace.Start(ctx, operation, oteltrace.WithSpanKind(oteltrace.SpanKindClient),
		oteltrace.WithAttributes(semconv.DBSystemNamePostgreSQL, semconv.DBOperationName(operation)))
}

// operations are the first words that a statement's span may show.
var operations = map[string]bool{
	"ALTER": true, "ANALYZE": true, "BEGIN": true, "CALL": true, "COMMENT": true, "COMMIT": true, "CREATE": true,
	"DELETE": true, "DISCARD": true, "DO": true, "DROP": true, "EXPLAIN": true, "GRANT": true, "INSERT": true,
	"LOCK": true, "MERGE": true, "NOTIFY": true, "RELEASE": true, "REVOKE": true, "ROLLBACK": true,
	"SAVEPOINT": true, "SELECT": true, "SET": true, "TRUNCATE": true, "UPDATE": true, "VACUUM": true, "WITH": true,
}

const longestOperation = 10 // bytes

// operationOf returns a statement's first word if it is a known one.
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
