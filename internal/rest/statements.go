package rest

import (
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"socle/internal/rest/catalog"
)

// statementsMost is how many statements a connection keeps prepared.
const statementsMost = 200

// statements are those that a connection has prepared, the one used last first. They go when the catalogue
// changes: the types of their parameters were found by the tables of then.
type statements struct {
	catalog *catalog.Catalog
	named   map[statementKey]*statement
	ring    statement // its next was used last, its previous is the next to go
	serial  uint64
}

// statementKey tells statements apart. Row security makes the plan of one role useless to another, so each has its own.
type statementKey struct{ role, sql string }

type statement struct {
	key            statementKey
	name           string
	description    *pgconn.StatementDescription // nil until PostgreSQL has confirmed it
	previous, next *statement
}

// customData is the key of a connection's statements among what it carries along.
const customData = "socle/internal/rest"

// statementsOf returns the statements of a connection, as far as they are good for a catalogue. Those of another
// are closed by messages at the head of the pipeline.
func statementsOf(conn *pgconn.PgConn, c *catalog.Catalog, p *pgconn.Pipeline) (*statements, int) {
	s, ok := conn.CustomData()[customData].(*statements)
	if !ok {
		s = &statements{}
		conn.CustomData()[customData] = s
	}
	if ok && s.catalog == c {
		return s, 0
	}
	closed := 0
	for st := s.ring.next; st != nil && st != &s.ring; st = st.next {
		p.SendDeallocate(st.name)
		closed++
	}
	s.catalog = c
	s.named = make(map[statementKey]*statement)
	s.ring.next, s.ring.previous = &s.ring, &s.ring
	return s, closed
}

// forget makes the next request prepare its statements anew.
func forget(conn *pgconn.PgConn) {
	if s, ok := conn.CustomData()[customData].(*statements); ok {
		s.catalog = nil
	}
}

// get returns a statement, made if need be, and the one that has to go for it, or nil.
func (s *statements) get(role, sql string) (st, gone *statement) {
	key := statementKey{role, sql}
	if st = s.named[key]; st != nil {
		st.unlink()
		s.push(st)
		return st, nil
	}
	if len(s.named) >= statementsMost {
		gone = s.ring.previous
		s.drop(gone)
	}
	s.serial++
	st = &statement{key: key, name: "socle_" + strconv.FormatUint(s.serial, 36)}
	s.named[key] = st
	s.push(st)
	return st, gone
}

// drop forgets a statement that could not be prepared, or has to go.
func (s *statements) drop(st *statement) {
	if s.named[st.key] == st {
		delete(s.named, st.key)
		st.unlink()
	}
}

func (s *statements) push(st *statement) {
	st.previous, st.next = &s.ring, s.ring.next
	st.previous.next, st.next.previous = st, st
}

func (st *statement) unlink() {
	st.previous.next, st.next.previous = st.next, st.previous
}
