package session

import (
	"strconv"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// maxStatements limits the prepared statements of a connection.
const maxStatements = 200

// statementCache is the LRU cache of a connection's prepared statements. A new catalog invalidates
// it, since PostgreSQL derived the parameter types from the old tables.
type statementCache struct {
	catalog *catalog.Catalog
	named   map[statementKey]*preparedStatement
	ring    preparedStatement // next is the most recently used, previous the least
	serial  uint64
}

// statementKey identifies a statement. Each role has its own, since row security makes plans depend
// on the role.
type statementKey struct{ role, sql string }

type preparedStatement struct {
	key            statementKey
	name           string
	ready          bool // confirmed by PostgreSQL
	previous, next *preparedStatement
}

// statements returns the statement cache for the current catalog. It queues Close for the
// statements of an older catalog first.
func (p *pipeline) statements() (*statementCache, error) {
	s := &p.session.statementCache
	if s.catalog == p.Catalog && s.named != nil {
		return s, nil
	}

	for st := s.ring.next; st != nil && st != &s.ring; st = st.next {
		if err := p.queueClose(st); err != nil {
			return nil, err
		}
	}

	s.catalog = p.Catalog
	s.named = make(map[statementKey]*preparedStatement)
	s.ring.next, s.ring.previous = &s.ring, &s.ring

	return s, nil
}

// invalidate makes the next request prepare its statements again.
func (s *statementCache) invalidate() { s.catalog = nil }

// get returns a statement, new or cached, and the evicted one, or nil.
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

// drop removes a statement from the cache.
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
