package pg

import (
	"context"
	"maps"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Page selects a part of a list: page Number, counted from 1, with Limit items per page, ordered by
// the item's member Sort. The API has validated all fields.
type Page struct {
	Number     int
	Limit      int
	Sort       string
	Descending bool
}

// DefaultPageLimit is the page size unless the request names another.
const DefaultPageLimit = 20

// isDefault reports whether the page is the one that most requests are for.
func (p Page) isDefault() bool { return p.Number == 1 && p.Limit == DefaultPageLimit }

// Clause returns the end of a list's SELECT: ORDER BY, see [Page.Order], LIMIT and OFFSET. It needs
// the arguments from [Page.Args]. PostgreSQL plans a statement with a limit in an argument anew at
// each execution, so the default page has it in the text.
func (p Page) Clause(columns map[string]string, tie string) string {
	if p.isDefault() {
		return p.Order(columns, tie) + " limit " + strconv.Itoa(DefaultPageLimit)
	}
	return p.Order(columns, tie) + " limit @page_limit offset @page_offset"
}

// Args adds the arguments for [Page.Clause] to the statement's own. Numbers in the text would make
// each page a distinct statement to PostgreSQL, which keeps some hundred per connection.
func (p Page) Args(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	if p.isDefault() {
		return args
	}

	all := pgx.StrictNamedArgs{
		"page_limit": int64(p.Limit), "page_offset": (int64(p.Number) - 1) * int64(p.Limit),
	}
	maps.Copy(all, args)

	return all
}

// Order returns the ORDER BY clause. tie is the column that breaks ties, so that pages never
// overlap. columns maps each sortable member to its SQL expression; Order panics if Sort is missing
// from it, which is the caller's bug.
func (p Page) Order(columns map[string]string, tie string) string {
	by, ok := columns[p.Sort]
	if !ok {
		panic("pg: no sort column for " + strconv.Quote(p.Sort))
	}

	direction := " asc"
	if p.Descending {
		direction = " desc"
	}

	return " order by " + by + direction + ", " + tie + direction
}

// Listing is a query whose rows are listed by pages.
type Listing struct {
	Columns string            // SELECT list
	From    string            // FROM clause, and the filter
	Sorts   map[string]string // SQL expression by sortable member
	Tie     string            // unique expression that breaks ties
}

// List reads a page of a listing into Ts by column name, and the total number of rows, in one
// statement. The slice is never nil.
func List[T any](
	ctx context.Context, q Querier, l Listing, page Page, args pgx.StrictNamedArgs,
) (items []T, total int64, err error) {
	ctx, cancel := withQueryTimeout(ctx, q)
	defer cancel()

	count := "select count(*) from " + l.From
	rows, err := query(ctx, q, "select "+l.Columns+", ("+count+") as total_of_list from "+l.From+
		page.Clause(l.Sorts, l.Tie), []any{page.Args(args)})
	if err != nil {
		return nil, 0, err
	}

	items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) { return RowAndLast[T](row, &total) })
	if err != nil || len(items) > 0 || page.Number == 1 {
		return items, total, Fault(err)
	}

	// Past the end, where no row has the total. Arguments for Columns are superfluous.
	total, err = Value[int64](ctx, q, count, optionalArgs(args))
	return items, total, err
}

// RowAndLast reads a row's last column into last, unless that is nil, and the others into a T by
// name.
func RowAndLast[T any](row pgx.CollectableRow, last any) (T, error) {
	return pgx.RowToStructByName[T](rowAndLast{row, last})
}

// rowAndLast is a row without the last column, which it reads separately.
type rowAndLast struct {
	pgx.CollectableRow
	last any
}

// FieldDescriptions returns all columns except the last.
func (r rowAndLast) FieldDescriptions() []pgconn.FieldDescription {
	all := r.CollectableRow.FieldDescriptions()
	return all[:len(all)-1]
}

// Scan reads the columns.
func (r rowAndLast) Scan(dest ...any) error { return r.CollectableRow.Scan(append(dest, r.last)...) }
