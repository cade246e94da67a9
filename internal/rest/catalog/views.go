package catalog

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// selectViews selects the exposed views and the views below them, to trace the origin of their
// columns. Only the node tree of a view's query holds it.
const selectViews = `
		with recursive views (id) as (
			select c.oid
			from pg_catalog.pg_class c
			join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where c.relkind in ('v', 'm') and n.nspname = any (@schemas)
			union
			select c.oid
			from views v
			join pg_catalog.pg_rewrite w on w.ev_class = v.id and w.rulename = '_RETURN'
			join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and d.objid = w.oid
				and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
			join pg_catalog.pg_class c on c.oid = d.refobjid and c.relkind in ('v', 'm')
		)
		select v.id, w.ev_action::text as tree
		from views v
		join pg_catalog.pg_rewrite w on w.ev_class = v.id and w.rulename = '_RETURN'`

func (r *reader) readViews(read pgx.Rows) error {
	type row struct {
		ID   uint32
		Tree string
	}
	rows, err := collect[row](read)
	for _, row := range rows {
		r.views[row.ID] = origins(row.Tree)
	}

	return err
}

// origin returns the table column behind a column, through any number of views, or the zero
// attribute.
func (r *reader) origin(a attribute) attribute {
	// CREATE OR REPLACE can make views reference each other; such views are unreadable.
	for range len(r.views) + 1 {
		columns, isView := r.views[a.relation]
		if !isView {
			return a
		}
		if a.number < 1 || int(a.number) > len(columns) {
			break
		}

		a = columns[a.number-1]
	}

	return attribute{}
}

// origins returns the columns that a stored query's target list takes unchanged from relations. A
// computed column is zero.
func origins(tree string) []attribute {
	s := scanner{text: tree}
	depth := 0
	for token := s.next(); token != ""; token = s.next() {
		switch token {
		case "{":
			depth++
		case "}":
			depth--
		case ":targetList":
			if depth == 1 { // a target in the query itself, not in a subquery
				return s.targets()
			}
		}
	}

	return nil
}

// scanner reads PostgreSQL's text form of node trees: {TYPE :field value …}, lists in parentheses.
type scanner struct {
	text string
	at   int
}

// next returns the next brace, parenthesis or word, or "" at the end. A backslash escapes the next
// character.
func (s *scanner) next() string {
	for s.at < len(s.text) && strings.IndexByte(" \n\t", s.text[s.at]) >= 0 {
		s.at++
	}

	start := s.at
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '{', '}', '(', ')':
			if s.at == start {
				s.at++
			}
			return s.text[start:s.at]
		case ' ', '\n', '\t':
			return s.text[start:s.at]
		case '\\':
			s.at++
		}

		s.at++
	}

	s.at = min(s.at, len(s.text))
	return s.text[start:s.at]
}

// targets parses a target list.
func (s *scanner) targets() []attribute {
	var list []attribute
	depth := 0

	var number int
	var origin attribute
	for token := s.next(); token != ""; token = s.next() {
		switch token {
		case "{":
			if depth == 0 {
				number, origin = 0, attribute{}
			}

			depth++
			continue
		case "}":
			depth--
			if depth == 0 && number == len(list)+1 { // hidden sort columns come last
				if origin.number < 1 {
					origin = attribute{}
				}
				list = append(list, origin)
			}

			continue
		case ")":
			if depth == 0 {
				return list
			}
		}

		if depth != 1 {
			continue
		}

		switch token {
		case ":resname":
			s.next() // a name can look like a field
		case ":resno":
			number = s.number()
		case ":resorigtbl":
			origin.relation = uint32(s.number())
		case ":resorigcol":
			origin.number = int16(s.number())
		case ":resjunk":
			if s.next() == "true" {
				number = 0
			}
		}
	}

	return list
}

// number parses a number, or returns 0.
func (s *scanner) number() int {
	n, _ := strconv.Atoi(s.next())
	return n
}
