package migration

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/statement"
)

// writer writes the difference between a scratch copy and a schema.
type writer struct {
	dump   func(context.Context, scratch) ([]pgdump.Entry, error)
	target []pgdump.Entry // the schema

	written  difference
	verified bool              // a copy has run exactly what is written
	failed   map[string]string // PostgreSQL's message, by object key
	skipped  []DiffWarning     // about views that are not filled
}

// parts are the changes per file, in order. New enum values come first, since no statement in their
// transaction can use them. Extensions are dropped last, outside a transaction.
func (d *difference) parts() []*[]change { return []*[]change{&d.values, &d.changes, &d.extensions} }

// write changes the copy until it is equal to the schema, or no change succeeds.
func (w *writer) write(ctx context.Context, c scratch) error {
	w.failed = map[string]string{}
	for round := 1; ; round++ {
		now, err := w.dump(ctx, c)
		if err != nil {
			return err
		}

		d := compare(now, w.target, w.failed)
		if d.empty() || round > maxRounds {
			w.verified = w.verified || w.written.size() == 0
			w.remain(d, now)

			return nil
		}

		size, failures := w.written.size(), len(w.failed)
		isReordered, err := w.run(ctx, c, d)
		if err != nil {
			return err
		}

		w.verified = round == 1 && !isReordered
		if w.written.size() == size && len(w.failed) == failures {
			w.remain(d, now)
			return nil
		}
	}
}

// verify applies what is written to a copy with the files, and notes what still differs.
func (w *writer) verify(ctx context.Context, c scratch) error {
	d := w.written
	w.written, w.skipped = difference{}, nil

	if _, err := w.run(ctx, c, d); err != nil {
		return err
	}

	now, err := w.dump(ctx, c)
	if err != nil {
		return err
	}

	w.remain(compare(now, w.target, nil), now)
	return nil
}

// run runs a difference's changes, and adds those that succeed to w.written. It reports whether it
// left out any or ran them in another order.
func (w *writer) run(ctx context.Context, c scratch, d difference) (isReordered bool, err error) {
	for i, part := range d.parts() {
		changes, failures, err := c.try(ctx, *part)
		if err != nil {
			return false, err
		}

		isReordered = isReordered || !slices.Equal(changes, *part)
		all := w.written.parts()[i]
		*all = append(*all, changes...)

		for _, f := range failures {
			if f.isRefresh() {
				w.skipped = append(w.skipped, DiffWarning{f.sql, "left out, since it fails: " + f.message})
				continue
			}

			w.failed[f.object] = f.message
		}
	}

	return isReordered, nil
}

// remain notes the objects that no statement makes equal. d is the difference between now and the
// schema.
func (w *writer) remain(d difference, now []pgdump.Entry) {
	rest := d.unresolved
	for _, part := range d.parts() {
		for _, ch := range *part {
			if !ch.isRefresh() {
				rest = append(rest, differing(ch.object, w.failed[ch.object]))
			}
		}
	}

	for _, k := range unequal(now, w.target) {
		other := differing(k, "")
		if !slices.ContainsFunc(rest, func(d Difference) bool { return d.Kind == other.Kind && d.Name == other.Name }) {
			rest = append(rest, other)
		}
	}

	w.written.unresolved = rest
}

// unequal returns the keys of entries that only one dump has, or that have other lines in the
// other. It is the last check in a comparison, which reads definitions.
func unequal(a, b []pgdump.Entry) []string {
	lines := func(entries []pgdump.Entry) map[string][]string {
		all := map[string][]string{}
		for _, e := range entries {
			for line := range strings.SplitSeq(e.Definition, "\n") {
				all[key(&e)] = append(all[key(&e)], strings.TrimSuffix(line, ","))
			}
		}

		for k := range all { // columns and privileges have no order
			slices.Sort(all[k])
		}

		return all
	}

	one, other := lines(a), lines(b)
	var keys []string
	for k := range one {
		if !slices.Equal(one[k], other[k]) {
			keys = append(keys, k)
		}
	}

	for k := range other {
		if one[k] == nil {
			keys = append(keys, k)
		}
	}

	return keys
}

// differing returns an object's difference by its key.
func differing(key, message string) Difference {
	kind, rest, _ := strings.Cut(key, "\n")
	schema, tag, _ := strings.Cut(rest, "\n")
	tag, _, _ = strings.Cut(tag, "\n")
	if schema != "" {
		tag = schema + "." + tag
	}
	if message == "" {
		message = "no statement changes it"
	}

	return Difference{strings.ToLower(kind), tag, message}
}

// failure is a change that failed.
type failure struct {
	change
	message string // PostgreSQL's
}

// try runs changes in a transaction. It runs those that fail again after the others: pg_dump does
// not know function bodies' dependencies. It returns the changes that succeeded, in the order that
// worked.
func (c scratch) try(ctx context.Context, changes []change) (successes []change, failures []failure, err error) {
	if len(changes) == 0 {
		return nil, nil, nil
	}

	scripts, err := parse([]Source{{Version: "00000000000000", Name: "difference", SQL: fileOf(changes)}})
	if err != nil {
		return nil, nil, err
	}

	err = c.apply(ctx, scripts[0])
	if err == nil {
		return changes, nil, nil
	}

	e := fault.Of(err)
	report, ok := e.Extra["postgres"].(pg.Report)
	if e.Kind != fault.Unprocessable || !ok {
		return nil, nil, err
	}

	if _, err := c.conn.Exec(ctx, "rollback"); err != nil {
		return nil, nil, err
	}

	if scripts[0].separate {
		return nil, []failure{{changes[0], report.Message}}, c.reset(ctx)
	}

	_, err = statement.RunScript(ctx, c.conn.PgConn(), statement.Script{Field: scripts[0].field,
		Begin: func(ctx context.Context, conn *pgconn.PgConn) (err error) {
			successes, failures, err = inAnyOrder(ctx, conn, changes)
			return err
		}})
	if err != nil {
		return nil, nil, err
	}

	return successes, failures, c.reset(ctx)
}

// inAnyOrder runs changes in a transaction until none of the rest succeeds.
func inAnyOrder(
	ctx context.Context, conn *pgconn.PgConn, changes []change,
) (successes []change, failures []failure, err error) {
	if _, err := conn.Exec(ctx, withoutBodies).ReadAll(); err != nil {
		return nil, nil, err
	}

	for len(changes) > 0 {
		failures = nil
		var rest []change
		for _, ch := range changes {
			if strings.HasPrefix(ch.sql, "CREATE EXTENSION") { // created before the transaction
				successes = append(successes, ch)
				continue
			}

			message, err := attempt(ctx, conn, ch.sql)
			switch {
			case err != nil:
				return nil, nil, err
			case message == "":
				successes = append(successes, ch)
			default:
				failures, rest = append(failures, failure{ch, message}), append(rest, ch)
			}
		}

		if len(rest) == len(changes) {
			break
		}
		changes = rest
	}

	return successes, failures, nil
}

// attempt runs a statement in a transaction. If PostgreSQL rejects it, attempt undoes it and
// returns the message.
func attempt(ctx context.Context, conn *pgconn.PgConn, sql string) (message string, err error) {
	if _, err := conn.Exec(ctx, "savepoint attempt").ReadAll(); err != nil {
		return "", err
	}

	end := "release attempt"
	_, err = conn.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	if rejection, ok := errors.AsType[*pgconn.PgError](err); ok {
		message, _, _ = strings.Cut(rejection.Message, "\n")
		if rejection.Code == "2BP01" { // dependent_objects_still_exist
			message += ": " + rejection.Detail
		}

		end = "rollback to attempt; release attempt"
	} else if err != nil {
		return "", err
	}

	_, err = conn.Exec(ctx, end).ReadAll()
	return message, err
}
