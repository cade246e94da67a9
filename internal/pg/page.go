package pg

import "strconv"

// Page selects a part of a list: page Number, counted from 1, of pages of Limit items, ordered by
// the item's member Sort. The API has validated all fields.
type Page struct {
	Number     int
	Limit      int
	Sort       string
	Descending bool
}

// Clause returns the end of a list's SELECT: ORDER BY, LIMIT and OFFSET. tie is the column that
// breaks ties, so that pages never overlap. columns maps each sortable member to its SQL
// expression; Clause panics if Sort is missing from it, which is a bug of the caller.
func (p Page) Clause(columns map[string]string, tie string) string {
	by, ok := columns[p.Sort]
	if !ok {
		panic("pg: no sort column for " + strconv.Quote(p.Sort))
	}

	direction := " asc"
	if p.Descending {
		direction = " desc"
	}

	return " order by " + by + direction + ", " + tie + direction +
		" limit " + strconv.Itoa(p.Limit) + " offset " + strconv.FormatInt((int64(p.Number)-1)*int64(p.Limit), 10)
}
