package rest

import (
	"strconv"

	"socle/internal/rest/catalog"
)

// statementsMost is how many statements a connection keeps prepared.
const maxStatements = 200

// statements are those that a connection has prepared, the one used last first. They go when the catalogue
// changes: the types of their parameters were found by the tables of then.
type statementCache struct {
	catalog *catalog.Catalog
	named   map[statementKey]*preparedStatement
	ring    preparedStatement // its next was used last, its previous is the next to go
	serial  uint64
}

// statementKey tells statements apart. Row security makes the plan of one role useless to another, so each has its own.
type statementKey struct{ role, sql string }

type preparedStatement struct {
	key            statementKey
	name           string
	ready          bool // PostgreSQL has confirmed it
	previous, next *preparedStatement
}

// statements returns the statements of the connection, as far as they are good for the catalogue. Those of another
// are closed before anything else.
func (x *pipeline) statements() (*statementCache, error) {
	s := &x.session.statementCache
	if s.catalog == x.catalog && s.named != nil {
		return s, nil
	}

	for st := s.ring.next; st != nil && st != &s.ring; st = st.next {
		if err := x.queueClose(st); err != nil {
			return nil, err
		}
	}

	s.catalog = x.catalog
	s.named = make(map[statementKey]*preparedStatement)
	s.ring.next, s.ring.previous = &s.ring, &s.ring

	return s, nil
}

// forget makes the next request prepare its statements anew.
func (s *statementCache) invalidate() { s.catalog = nil }

// get returns a statement, made if need be, and the one that has to go for it, or nil.
func (s *statementCache) get(role, sql string) (st, evicted *preparedStatement) {
	key := statementKey{role, sql}
	if st = s.named[key]; st != nil {
		st.unlink()
		s.push(st)

		return st, nil
	}

	if len(s.named) >= maxStatements {
		evicted = s.ring.previous
		s.drop(evicted)
	}

	s.serial++
	st = &preparedStatement{key: key, name: "socle_" + strconv.FormatUint(s.serial, 36)}
	s.named[key] = st
	s.push(st)

	return st, evicted
}

// drop forgets a statement that could not be prepared, or has to go.
func (s *statementCache) drop(st *preparedStatement) {
	if s.named[st.key] == st {
		delete(s.named, st.key)
		st.unlink()
	}
}

func (s *statementCache) push(st *preparedStatement) {
	st.previous, st.next = &s.ring, s.ring.next
	st.previous.next, st.next.previous = st, st
}

func (st *preparedStatement) unlink() {
	st.previous.next, st.next.previous = st.next, st.previous
}
