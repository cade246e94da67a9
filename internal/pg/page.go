package pg

import "strconv"

// Page is a part of a list: page Number (from 1) of pages of Limit items, ordered by the item's
// member Sort. The interface has checked all of it.
type Page struct {
	Number     int
	Limit      int
	Sort       string
	Descending bool
}

// Clause returns the end of a list's statement: ORDER BY with the tie broken by another
// column, so that pages never overlap, LIMIT and OFFSET. columns maps each member that the list can be sorted
// by to its SQL expression; a member that is not there is a bug of the caller and panics.
func (p Page) Clause(columns map[string]string, tie string) string {
	by, ok := columns[p.Sort]
	if !ok {
		panic("pg: a list sorted by " + strconv.Quote(p.Sort))
	}

	direction := " asc"
	if p.Descending {
		direction = " desc"
	}

	return " order by " + by + direction + ", " + tie + direction +
		" limit " + strconv.Itoa(p.Limit) + " offset " + strconv.FormatInt((int64(p.Number)-1)*int64(p.Limit), 10)
}
