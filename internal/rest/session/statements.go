package session

import (
	"strconv"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// maxStatements limits a connection's prepared statements.
const maxStatements = 200

// statementCache is a connection's LRU cache of prepared statements. A new catalog invalidates it,
// since PostgreSQL derived the parameter types from the old tables.
type statementCache struct {
	catalog *catalog.Catalog
	byKey   map[statementKey]*preparedStatement
	ring    preparedStatement // next is the most recently used, previous the least
	serial  uint64
}

// statementKey identifies a statement. Statements are prepared per role, because row security makes
// plans role-dependent.
type statementKey struct{ role, sql string }

type preparedStatement struct {
	key            statementKey
	name           string
	ready          bool // confirmed by PostgreSQL
	previous, next *preparedStatement
}

// statements returns the statement cache for the current catalog. It first queues Close for an
// older catalog's statements.
func (p *pipeline) statements() (*statementCache, error) {
	s := &p.session.statementCache
	if s.catalog == p.Catalog && s.byKey != nil {
		return s, nil
	}

	for st := s.ring.next; st != nil && st != &s.ring; st = st.next {
		if err := p.queueClose(st); err != nil {
			return nil, err
		}
	}

	s.catalog = p.Catalog
	s.byKey = make(map[statementKey]*preparedStatement)
	s.ring.next, s.ring.previous = &s.ring, &s.ring

	return s, nil
}

// invalidate makes the next request prepare its statements again.
func (s *statementCache) invalidate() { s.catalog = nil }

// get returns a statement, new or cached, and the evicted one, or nil.
func (s *statementCache) get(role, sql string) (st, victim *preparedStatement) {
	key := statementKey{role, sql}
	if st = s.byKey[key]; st != nil {
		st.unlink()
		s.push(st)

		return st, nil
	}

	if len(s.byKey) >= maxStatements {
		victim = s.ring.previous
		s.drop(victim)
	}

	s.serial++
	st = &preparedStatement{key: key, name: "socle_" + strconv.FormatUint(s.serial, 36)}
	s.byKey[key] = st
	s.push(st)

	return st, victim
}

// drop removes a statement from the cache.
func (s *statementCache) drop(st *preparedStatement) {
	if s.byKey[st.key] == st {
		delete(s.byKey, st.key)
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
