package plan

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// Limits of the cache in Plans.
const (
	maxShapeBytes = 4 << 10 // bytes of a shape and its statements; longer ones are not cached
	maxPlansBytes = 1 << 20 // bytes of the whole cache
)

// Action identifies the planner of a request for a relation.
type Action byte

// Actions.
const (
	ReadAction   Action = iota + 1 // planned by [Read]
	InsertAction                   // [Insert]
	PutAction                      // [Put]
	UpdateAction                   // [Update]
	DeleteAction                   // [Delete]
)

// Plans caches statements by the shape of their requests: all of a request except its values, which
// are arguments. A request of a known shape reuses the statement with its own arguments. The zero
// value is ready for use, and safe for concurrent use.
type Plans struct {
	mu      sync.RWMutex
	catalog *catalog.Catalog // catalog of the cached statements
	known   map[string]*shapeStatements
	size    int // in bytes
}

// shapeStatements holds the statements of a shape.
type shapeStatements struct {
	Plan // with the arguments of the first request
	// source of each argument: the index of a comparison in the query; -1-n for the n-th member of
	// the body; -1 for neither
	from, countFrom []int
}

// Plan returns the result of f, one of this package's planners for relations, from the cache if
// possible. a identifies f.
func (p *Plans) Plan(
	a Action, f func(*catalog.Catalog, *Request) (*Plan, error), c *catalog.Catalog, r *Request,
) (Plan, error) {
	w := walks.Get().(*walk)
	defer w.release()

	keep := w.request(a, c, r)
	if found := p.find(c, w, keep); found != nil {
		again := found.Plan
		again.Args, again.CountArgs = w.fill(found.Args, found.from, r.Body), w.fill(found.CountArgs,
			found.countFrom, r.Body)

		return again, nil
	}

	plan, err := f(c, r)
	if err != nil {
		return Plan{}, err
	}

	if keep {
		p.keep(c, w, plan)
	}

	return *plan, nil
}

// Size returns the size of the cache in bytes.
func (p *Plans) Size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()

	return p.size
}

// find returns the cached statements of a shape for a catalog, or nil.
func (p *Plans) find(c *catalog.Catalog, w *walk, kept bool) *shapeStatements {
	if !kept {
		return nil
	}

	p.mu.RLock()
	defer p.mu.RUnlock()

	if p.catalog != c {
		return nil
	}

	return p.known[string(w.key)]
}

// fill returns the arguments of the request.
func (w *walk) fill(planned []any, from []int, body []byte) []any {
	if len(planned) == 0 {
		return nil
	}

	args := make([]any, len(planned))
	for i, arg := range planned {
		switch _, isBody := arg.([]byte); {
		case from[i] >= 0:
			args[i] = valueOf(w.comparisons[from[i]])
		case from[i] < -1:
			args[i] = w.members[-from[i]-2]
		case isBody:
			args[i] = body
		default: // a number that is part of the shape
			args[i] = arg
		}
	}

	return args
}

func (p *Plans) keep(c *catalog.Catalog, w *walk, made *Plan) {
	s := &shapeStatements{Plan: *made}
	var known, countKnown bool
	s.from, known = numbers(made.origins, w.comparisons)

	s.countFrom, countKnown = numbers(made.countOrigins, w.comparisons)
	if !known || !countKnown {
		return
	}

	s.Args, s.CountArgs = withoutValues(made.Args, s.from), withoutValues(made.CountArgs, s.countFrom)
	s.origins, s.countOrigins = nil, nil

	size := s.size(len(w.key))
	if size > maxShapeBytes {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.catalog != c {
		p.catalog, p.known, p.size = c, map[string]*shapeStatements{}, 0
	}

	if p.known[string(w.key)] != nil {
		return
	}

	for key, old := range p.known { // arbitrary entries
		if p.size+size <= maxPlansBytes {
			break
		}

		p.size -= old.size(len(key))
		delete(p.known, key)
	}

	p.size += size
	p.known[string(w.key)] = s
}

func (s *shapeStatements) size(key int) int {
	return key + len(s.SQL) + len(s.CountSQL) + 64*(len(s.Args)+len(s.CountArgs)) + 256
}

// numbers returns the index of each origin's comparison. ok is false if a comparison is not among
// all.
func numbers(origins []origin, all []*query.Comparison) (from []int, ok bool) {
	from = make([]int, len(origins))
	for i, o := range origins {
		if from[i] = -1 - o.member; o.comparison == nil {
			continue
		}
		if from[i] = slices.Index(all, o.comparison); from[i] < 0 {
			return nil, false
		}
	}

	return from, true
}

// withoutValues returns the arguments without the values of the request. It keeps those that are
// part of the shape, and the position of the body.
func withoutValues(args []any, from []int) []any {
	copies := make([]any, len(args))
	for i, a := range args {
		if _, isBody := a.([]byte); isBody {
			copies[i] = []byte(nil)
		} else if from[i] == -1 {
			copies[i] = a
		}
	}

	return copies
}

// walk traverses a request and writes its shape.
type walk struct {
	key         []byte
	comparisons []*query.Comparison
	members     []any // values of the body's members, if they are arguments
}

var walks = sync.Pool{New: func() any { return new(walk) }}

func (w *walk) release() {
	clear(w.comparisons)
	w.key, w.comparisons, w.members = w.key[:0], w.comparisons[:0], nil
	if cap(w.key) <= 2*maxShapeBytes {
		walks.Put(w)
	}
}

// request writes the shape of a request, and reports whether it can be cached.
func (w *walk) request(a Action, c *catalog.Catalog, r *Request) bool {
	if r.Handler != nil {
		return false
	}

	w.bytes(byte(a), byte(r.Format), byte(r.Count), byte(r.Return), byte(r.Resolve))
	w.bools(r.Head, r.Missing, r.Aggregates, r.Before, r.AliasesOnly, r.SharedOrigin)
	w.texts(r.Target.Schema, r.Target.Name)
	w.limit(r.Range.Limit, r.Range.Offset)
	w.limit(r.MaxRows, 0)

	q := r.Query
	w.items(q.Select)
	w.number(len(q.Filters))

	for i := range q.Filters {
		w.list(q.Filters[i].Path)
		w.condition(q.Filters[i].Condition)
	}

	w.number(len(q.Order))

	for i := range q.Order {
		w.list(q.Order[i].Path)
		w.terms(q.Order[i].Terms)
	}

	w.number(len(q.Limits))

	for i := range q.Limits {
		w.list(q.Limits[i].Path)
		w.limit(q.Limits[i].Limit, q.Limits[i].Offset)
	}

	w.list(q.Columns)
	w.list(q.OnConflict)

	if r.Body != nil && !w.body(c.Relations[r.Target], r) {
		return false
	}

	return len(w.key) <= maxShapeBytes
}

// body writes the shape of the body's rows.
func (w *walk) body(rel *catalog.Relation, r *Request) bool {
	p, err := outline(r)
	if err != nil || rel == nil {
		return false
	}

	w.members = p.directArgs(rel)
	w.bools(p.list, w.members != nil, r.Cells)
	w.number(min(p.rows, 2))
	w.list(p.names)

	return true
}

func (w *walk) items(items []query.Item) {
	w.bools(items == nil)
	w.number(len(items))

	for i := range items {
		item := &items[i]
		w.bytes(byte(item.Kind), byte(item.Join))
		w.bools(item.Empty)
		w.field(&item.Field)
		w.texts(item.Alias, item.Cast, item.Aggregate, item.AggregateCast, item.Relation, item.Hint)
		w.items(item.Items)
	}
}

func (w *walk) condition(c query.Condition) {
	switch c := c.(type) {
	case *query.Group:
		w.bytes('g')
		w.bools(c.Not, c.Or)
		w.number(len(c.Conditions))

		for _, one := range c.Conditions {
			w.condition(one)
		}
	case *query.Comparison:
		w.comparisons = append(w.comparisons, c)
		w.bytes('c')
		w.bools(c.Not, c.List == nil, longSearch(c))
		w.field(&c.Field)
		w.texts(c.Operator, c.Quantifier, c.Config)

		if c.Operator == "is" { // part of the SQL text
			w.texts(c.Value)
		}
	}
}

func (w *walk) terms(terms []query.Term) {
	w.number(len(terms))

	for i := range terms {
		t := &terms[i]
		w.bools(t.Descending)
		w.texts(t.Relation, t.Nulls)
		w.field(&t.Field)
	}
}

func (w *walk) field(f *query.Field) {
	w.texts(f.Name)
	w.number(len(f.Path))

	for i := range f.Path {
		s := &f.Path[i]
		w.bools(s.IsKey, s.Text)
		w.number(s.Index)
		w.texts(s.Key)
	}
}

func (w *walk) limit(limit *int64, offset int64) {
	w.bools(limit == nil)

	if limit != nil {
		w.key = binary.AppendVarint(w.key, *limit)
	}

	w.key = binary.AppendVarint(w.key, offset)
}

func (w *walk) list(names []string) {
	w.bools(names == nil)
	w.number(len(names))
	w.texts(names...)
}

// texts writes texts with their lengths, so that different lists never look the same.
func (w *walk) texts(all ...string) {
	for _, s := range all {
		w.number(len(s))
		w.key = append(w.key, s...)
	}
}

func (w *walk) number(n int)      { w.key = binary.AppendVarint(w.key, int64(n)) }
func (w *walk) bytes(all ...byte) { w.key = append(w.key, all...) }

func (w *walk) bools(all ...bool) {
	for _, b := range all {
		if b {
			w.key = append(w.key, 1)
		} else {
			w.key = append(w.key, 0)
		}
	}
}
