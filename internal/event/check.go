package event

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// querier executes a statement of [checkRows] on a login of the project, and returns its rows as
// texts.
type querier interface {
	Texts(ctx context.Context, sql string, args ...[]byte) ([][][]byte, error)
}

// checkRows asks PostgreSQL, as an actor, which changes to a table the actor may see, and for which
// of them conditions hold. The policies' conditions are evaluated on the rows as they were when
// they changed, so the answer does not depend on later changes to them.
func checkRows(
	ctx context.Context, q querier, r *relation, entries []*entry, filters []filter,
) (visible []bool, holds [][]bool, err error) {
	type candidate struct {
		Row     json.RawMessage `json:"row"`
		Deleted bool            `json:"deleted"` // the key of a deleted row is no secret
	}
	candidates := make([]candidate, len(entries))
	for i, e := range entries {
		candidates[i] = candidate{e.row(), e.Operation == deleted}
		if e.Operation == truncated {
			candidates[i].Row = json.RawMessage("{}")
		}
	}

	rows, err := json.Marshal(candidates)
	if err != nil {
		return nil, nil, err
	}

	sql, args := checkSQL(r, filters)
	replies, err := q.Texts(ctx, sql, append([][]byte{rows}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	if len(replies) != len(entries) {
		return nil, nil, fmt.Errorf("check changes to %s: got %d rows, want %d", r.SQLName, len(replies), len(entries))
	}

	visible, holds = make([]bool, len(entries)), make([][]bool, len(entries))
	for i, reply := range replies {
		flags := string(reply[0])
		visible[i] = flags[0] == '1'
		for _, flag := range flags[1:] {
			holds[i] = append(holds[i], flag == '1')
		}
	}

	return visible, holds, nil
}

// checkSQL returns the statement of [checkRows], and its arguments from the second one on. Its rows
// have a text of flags: whether the row is visible, and whether each condition holds. A condition
// is evaluated on visible rows only, since its errors could tell of others. Conditions name columns
// without their table, so each stands in a subquery whose only names are the row's.
func checkSQL(r *relation, filters []filter) (sql string, args [][]byte) {
	alias := pg.Quote(r.Table) // as the policies' conditions call the row
	row := " from pg_catalog.json_populate_record(null::" + r.SQLName + ", element.value -> 'row') as " + alias

	visible := "true"
	if r.Conditions != "" {
		visible = "(element.value ->> 'deleted')::pg_catalog.bool or coalesce((select " + r.Conditions + row + "), false)"
	}

	flags := []string{"''"}
	for _, f := range filters {
		flags = append(flags, "case when "+f.sql(alias, r.column(f.column), len(args)+2)+" then '1' else '0' end")
		for _, v := range f.arguments() {
			args = append(args, []byte(v))
		}
	}

	return "select case when " + visible + " then '1' || (select " + strings.Join(flags, " || ") + row + ")" +
		" else '" + strings.Repeat("0", len(filters)+1) + "' end" +
		" from pg_catalog.json_array_elements($1::pg_catalog.json) with ordinality as element(value, n)" +
		" order by element.n", args
}

// normalize replaces the values of filters by their texts as PostgreSQL writes them, so that texts
// can be compared. It fails with Invalid for a value that is none of its column's type.
func normalize(ctx context.Context, q querier, r *relation, filters []filter) error {
	var columns []string
	var args [][]byte
	for _, f := range filters {
		c := r.column(f.column)
		if !f.isPlain(c) {
			continue
		}
		for _, v := range f.values {
			args = append(args, []byte(v))
			columns = append(columns, parameters(len(args), 1, c.SQLType)+"::pg_catalog.text")
		}
	}

	// The statement of checkRows without rows, for conditions that PostgreSQL does not know.
	if _, _, err := checkRows(ctx, q, r, nil, filters); err != nil {
		return invalidFilter(err)
	}
	if len(columns) == 0 {
		return nil
	}

	replies, err := q.Texts(ctx, "select "+strings.Join(columns, ", "), args...)
	if err != nil {
		return invalidFilter(err)
	}

	n := 0
	for i, f := range filters {
		if !f.isPlain(r.column(f.column)) {
			continue
		}
		for j := range f.values {
			filters[i].values[j] = string(replies[0][n])
			n++
		}
	}

	return nil
}

// invalidFilter turns PostgreSQL's refusal of a filter into the client's fault.
func invalidFilter(err error) error {
	switch state := pg.State(err); {
	case strings.HasPrefix(state, "22"):
		return fault.New(fault.Invalid, "a filter's value does not have its column's type").WithCause(err)
	case state == "42883" || state == "42804" || state == "42725" || state == "42846":
		return fault.New(fault.Invalid, "a filter's operator is none of its column's type").WithCause(err)
	}

	return err
}
