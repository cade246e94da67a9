package event

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// view is a binding on one table.
type view struct {
	binding  int
	event    string
	relation *relation
	filters  []filter
	columns  []*relationColumn // in the record
	whole    bool              // columns are all of the table's
}

// newView binds a binding to a table. It fails with Invalid for columns that the role can't read.
func newView(index int, b Binding, r *relation, filters []filter) (*view, error) {
	v := &view{binding: index, event: b.Event, relation: r, filters: filters, whole: true}
	for _, f := range filters {
		if r.column(f.column) == nil {
			return nil, fault.New(fault.Invalid, "filter: table %s has no column %s that the role may select", r.SQLName, f.column)
		}
	}

	selected := splitTop(b.Select)
	for i, name := range selected {
		selected[i] = unquote(strings.TrimSpace(name))
		if selected[i] != "*" && r.column(selected[i]) == nil {
			return nil, fault.New(fault.Invalid, "select: table %s has no column %s that the role may select", r.SQLName, selected[i])
		}
	}
	for i, c := range r.Columns {
		if c.Readable && (len(selected) == 0 || slices.Contains(selected, c.Name) || slices.Contains(selected, "*")) {
			v.columns = append(v.columns, &r.Columns[i])
		} else {
			v.whole = false
		}
	}

	return v, nil
}

// isSlow reports whether PostgreSQL evaluates one of the view's filters.
func (v *view) isSlow() bool {
	return slices.ContainsFunc(v.filters, func(f filter) bool { return !f.isPlain(v.relation.column(f.column)) })
}

// takes reports whether the view's binding is about a kind of change.
func (v *view) takes(operation string) bool {
	return v.event == typeOf[operation] || (v.event == Any && operation != truncated)
}

var typeOf = map[string]string{inserted: Insert, updated: Update, deleted: Delete, truncated: Truncate}

// change returns an entry as the view shows it.
func (v *view) change(e *entry) (Change, error) {
	c := Change{Bindings: []int{v.binding}, Type: typeOf[e.Operation],
		Schema: v.relation.Schema, Table: v.relation.Table, At: e.At, Oversized: e.Oversized, Cursor: e.cursor}
	for _, column := range v.columns {
		c.Columns = append(c.Columns, Column{column.Name, column.Type})
	}

	var err error
	if c.Record, err = members(e.Record, v.columns, v.whole); err != nil {
		return Change{}, err
	}

	// The former row could be one that policies hide.
	if !v.relation.Full || v.relation.Secured {
		var key []*relationColumn
		for _, column := range v.columns {
			if column.Key {
				key = append(key, column)
			}
		}
		c.Old, err = members(e.Old, key, false)
	} else {
		c.Old, err = members(e.Old, v.columns, v.whole)
	}
	for _, row := range []struct{ own, entry []byte }{{c.Record, e.Record}, {c.Old, e.Old}} {
		if len(row.own) > 0 && &row.own[0] != &row.entry[0] {
			c.copied += len(row.own)
		}
	}

	return c, err
}

// members returns a row's members that are columns.
func members(row []byte, columns []*relationColumn, all bool) (json.RawMessage, error) {
	if row == nil || all {
		return row, nil
	}

	var values map[string]json.RawMessage
	if err := json.Unmarshal(row, &values); err != nil {
		return nil, err
	}

	var b strings.Builder
	b.WriteByte('{')
	for _, c := range columns {
		value, ok := values[c.Name]
		if !ok {
			continue
		}

		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')

	return json.RawMessage(b.String()), nil
}
