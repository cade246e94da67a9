package hook

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
)

const (
	functionTimeout = 2 * time.Second
	functionGrace   = 500 * time.Millisecond // for a function that has disabled the timeout
)

// functionOf returns the quoted name of the function that an address names.
func functionOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "pg-functions" || u.Host != "postgres" || u.RawQuery != "" || u.Fragment != "" {
		return "", errAddress
	}

	schema, function, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	for _, name := range []string{schema, function} {
		if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsAny(name, "/\x00") {
			return "", errAddress
		}
	}

	return pg.Quote(schema, function), nil
}

// CallFunction calls a function with a JSON text on the owner login's pool, and returns the result.
// Both statements are one round trip and one transaction.
func CallFunction(ctx context.Context, owner *pgxpool.Pool, address string, event []byte) ([]byte, error) {
	function, err := functionOf(address)
	if err != nil {
		return nil, err
	}

	conn, err := pg.Acquire(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	timeoutCtx, cancel := context.WithTimeout(ctx, functionTimeout+functionGrace)
	defer cancel()

	// PostgreSQL takes the type of $1 from the function: json or jsonb. It cuts the result, so that
	// a large one never arrives.
	var b pgconn.Batch
	b.ExecParams("select pg_catalog.set_config('statement_timeout', $1, true)",
		[][]byte{[]byte(strconv.FormatInt(functionTimeout.Milliseconds(), 10))}, nil, nil, nil)
	b.ExecParams("select pg_catalog.left("+function+"($1)::pg_catalog.text, $2) limit 1",
		[][]byte{event, []byte(strconv.Itoa(maxReply + 1))}, nil, nil, nil)

	results, err := conn.Conn().PgConn().ExecBatch(timeoutCtx, &b).ReadAll()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timeoutCtx.Err() != nil, pg.State(err) == pgQueryCanceled:
		return nil, Failure("hook_timeout", "Failed to reach hook within maximum time of %f seconds",
			functionTimeout.Seconds()).WithCause(err)
	case pg.State(err) != "":
		return nil, err
	case err != nil:
		return nil, pg.Fault(err)
	}

	rows := results[len(results)-1].Rows
	if len(rows) == 0 {
		return nil, nil
	}

	return rows[0][0], nil
}

// pgQueryCanceled is the SQLSTATE for a statement beyond its timeout.
const pgQueryCanceled = "57014"
