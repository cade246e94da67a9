package event

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/socle-dev/socle/internal/actor"
)

// matchers decide about one page of changes. Followers of one group share the answers.
type matchers struct {
	log        *Log
	entries    []*entry
	byRelation map[uint32][]*entry
	all        map[matcherKey]*matcher
	rows       map[uint32]decodedRows
	selected   map[selectionKey][]Change
	copied     int // bytes of selected that are not the entries' own
}

// maxCopied is the maximum of bytes that followers with parts of rows share. Beyond it each gets
// its own, which it accounts for.
const maxCopied = 4 << 20

// decodedRows are the members of rows, decoded at first use.
type decodedRows []map[string]json.RawMessage

// selectionKey identifies followers that get the same changes.
type selectionKey struct{ group, bindings string }

type matcherKey struct {
	group    string
	relation uint32
}

func (l *Log) newMatchers(entries []*entry) *matchers {
	m := &matchers{log: l, entries: entries, byRelation: map[uint32][]*entry{}, all: map[matcherKey]*matcher{},
		rows: map[uint32]decodedRows{}, selected: map[selectionKey][]Change{}}
	for _, e := range entries {
		m.byRelation[e.Relation] = append(m.byRelation[e.Relation], e)
	}
	for relation, of := range m.byRelation {
		m.rows[relation] = make(decodedRows, len(of))
	}

	return m
}

// find returns the matcher for a caller's group and a table.
func (m *matchers) find(caller actor.Actor, group string, relation uint32) *matcher {
	key := matcherKey{group, relation}
	if m.all[key] == nil {
		m.all[key] = &matcher{querier: m.log.actorOn(caller), entries: m.byRelation[relation], rows: m.rows[relation]}
	}

	return m.all[key]
}

// matcher decides which changes to one table the views of one group get. It asks PostgreSQL once,
// and once more for each view with conditions that need PostgreSQL.
type matcher struct {
	querier querier
	entries []*entry
	visible []bool // nil: not known yet
	rows    decodedRows
}

// keep shares the changes of a selection with the followers that have the same.
func (m *matchers) keep(key selectionKey, changes []Change) {
	copied := 0
	for i := range changes {
		copied += changes[i].copied
	}
	if m.copied+copied > maxCopied {
		return
	}

	m.copied += copied
	m.selected[key] = changes
}

// add adds the changes that a view gets to matched.
func (m *matcher) add(ctx context.Context, v *view, matched map[*entry]Change) error {
	if len(m.entries) == 0 {
		return nil
	}

	visible, holds, err := m.check(ctx, v)
	if err != nil {
		return err
	}

	for i, e := range m.entries {
		if !v.takes(e.Operation) || (!visible[i] && e.Operation != truncated) {
			continue
		}

		ok, slow := true, 0
		for _, f := range v.filters {
			c := v.relation.column(f.column)
			switch {
			case e.Operation == truncated: // all rows
			case e.Operation == deleted && v.relation.Secured && !c.Key: // shows the key only, so it decides alone
			case f.isPlain(c):
				value, present := m.value(i, f.column)
				ok = ok && f.holds(value, present)
			default:
				ok = ok && holds[i][slow]
			}
			if !f.isPlain(c) {
				slow++
			}
		}
		if !ok {
			continue
		}

		if former, ok := matched[e]; ok {
			former.Bindings = append(former.Bindings, v.binding)
			matched[e] = former

			continue
		}

		c, err := v.change(e)
		if err != nil {
			return err
		}
		matched[e] = c
	}

	return nil
}

// check returns which entries the view's caller may see, and for each entry which of the view's
// conditions hold that need PostgreSQL.
func (m *matcher) check(ctx context.Context, v *view) (visible []bool, holds [][]bool, err error) {
	var slow []filter
	for _, f := range v.filters {
		if !f.isPlain(v.relation.column(f.column)) {
			slow = append(slow, f)
		}
	}

	if len(slow) > 0 {
		return checkRows(ctx, m.querier, v.relation, m.entries, slow)
	}

	if m.visible != nil {
		return m.visible, nil, nil
	}
	if v.relation.Secured {
		m.visible, _, err = checkRows(ctx, m.querier, v.relation, m.entries, nil)
		return m.visible, nil, err
	}

	m.visible = make([]bool, len(m.entries))
	for i := range m.visible {
		m.visible[i] = true
	}

	return m.visible, nil, nil
}

// value returns a member of an entry's row as PostgreSQL's text; present is false for null.
func (m *matcher) value(i int, column string) (text string, present bool) {
	if m.rows[i] == nil {
		_ = json.Unmarshal(m.entries[i].row(), &m.rows[i]) // PostgreSQL wrote it
	}

	raw := string(m.rows[i][column])
	if raw == "" || raw == "null" {
		return "", false
	}
	if raw[0] != '"' {
		return raw, true
	}

	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		text, _ = strconv.Unquote(raw)
	}

	return text, true
}
