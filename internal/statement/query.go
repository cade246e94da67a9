package statement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// run runs a query on a connection of its own. PostgreSQL's errors are Unprocessable on query, with
// the original error in the member postgres.
func run(ctx context.Context, p *projectdb.Project, q Query) (Answer, error) {
	answer := Answer{Notes: []StepNote{}}
	steps, err := split("query", q.Text, true)
	if err != nil {
		return Answer{}, err
	}
	if len(steps) == 0 {
		return Answer{}, fault.OnField(fault.Unprocessable, "query", "required", "must contain a statement")
	}

	if q.As != nil {
		steps = asWritten(steps)
	}

	params, err := parameters(q, len(steps))
	if err != nil {
		return Answer{}, err
	}

	// A caller's statements can't be measured: the role sees no sizes of others' tables.
	full := p.OverQuota() && !q.ReadOnly
	if full && (p.FarOverQuota() || q.As != nil) {
		return Answer{}, projectdb.ErrOverQuota
	}

	timeoutCtx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()

	s := &session{query: q, full: full, reservation: reservation{pool: responses, project: p.Key(ctx)}}
	context.AfterFunc(ctx, func() { s.reservation.release() }) // after the response is written
	if !s.reservation.grow(len(steps) * resultSize) {
		return Answer{}, fault.OnField(fault.Unprocessable, "query", "busy",
			"has too many statements for the memory that is free now: try again later")
	}

	if !q.ReadOnly { // PostgreSQL refuses them in a query that only reads
		platform := func(ctx context.Context, f func(tx pgx.Tx) error) error { return pg.InTx(ctx, p.Trusted(), f) }
		e := extensions{field: "query", platform: platform, full: full}
		if steps, err = e.prepare(timeoutCtx, steps); err != nil {
			return Answer{}, timeout(ctx, timeoutCtx, q, err)
		}
	}

	pool := p.Owner()
	if q.As != nil {
		pool = p.Caller()
	}

	conn, err := pg.Acquire(ctx, pool)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Release()

	s.conn = conn.Conn().PgConn()
	s.conn.Frontend().SetMaxBodyLen(maxRow)

	answer.Results, err = s.run(timeoutCtx, steps, params)
	EndSession(ctx, s.conn, timeoutCtx.Err() != nil && err != nil) // the response says that the query was rolled back
	if err != nil {
		return Answer{}, timeout(ctx, timeoutCtx, q, err)
	}

	for i, step := range steps {
		answer.Notes = append(answer.Notes, step.notes(i)...)
	}

	return answer, nil
}

// asWritten returns a caller's steps without the changes that the owner's need: PostgreSQL decides
// about them, and the platform does nothing for them.
func asWritten(steps []Step) []Step {
	all := slices.Clone(steps)
	for i, s := range steps {
		if !slices.Contains(controlFirst, s.Words[0]) {
			all[i].Verdict = dialect.Verdict{SQL: s.Text}
		}
	}

	return all
}

// timeout returns a query's failure: err, unless the query's timeout or the request is over.
func timeout(ctx, timeoutCtx context.Context, q Query, err error) error {
	switch {
	case timeoutCtx.Err() == nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}

	return fault.OnField(fault.Unprocessable, "timeout_ms", "timeout",
		"expired: the query took longer than %d ms and was rolled back",
		q.Timeout.Milliseconds()).WithCause(err)
}

// parameters returns a query's encoded parameters.
func parameters(q Query, statements int) ([][]byte, error) {
	if len(q.Parameters) > 0 && statements > 1 {
		return nil, fault.OnField(fault.Unprocessable, "parameters", "not_applicable",
			"must be empty for a query of several statements")
	}

	params := make([][]byte, len(q.Parameters))
	for i, v := range q.Parameters {
		var err error
		if params[i], err = parameter(v); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i, err)
		}

		if strings.Contains(string(params[i]), "\x00") {
			return nil, fault.OnField(fault.Unprocessable, fmt.Sprintf("parameters.%d", i), "invalid_format",
				"must not contain the character NUL")
		}
	}

	return params, nil
}
