package operation

import "github.com/socle-dev/socle/internal/pg"

// PageQuery is embedded in a list's input, which adds its own member Sort.
type PageQuery struct {
	Page  int    `query:"page" minimum:"1" maximum:"100000000" default:"1"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Order string `query:"order" enum:"asc,desc" default:"asc"`
}

// By returns the list's page, ordered by the member sort.
func (q PageQuery) By(sort string) pg.Page {
	return pg.Page{Number: q.Page, Limit: q.Limit, Sort: sort, Descending: q.Order == "desc"}
}

// NewestFirstQuery is [PageQuery] for an event list, which starts with the last event.
type NewestFirstQuery struct {
	Page  int    `query:"page" minimum:"1" maximum:"100000000" default:"1"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Order string `query:"order" enum:"asc,desc" default:"desc"`
}

// By returns the list's page, ordered by the member sort.
func (q NewestFirstQuery) By(sort string) pg.Page { return PageQuery(q).By(sort) }

// PageMetadata is a list's metadata. It is exported because huma skips unexported embedded structs.
type PageMetadata struct {
	Page       int    `json:"page"`
	Limit      int    `json:"limit"`
	Total      int64  `json:"total"`
	TotalPages int64  `json:"totalPages"`
	Sort       string `json:"sort"`
	Order      string `json:"order" enum:"asc,desc"`
}

// MetadataOf returns the metadata for a page of a list with total items.
func MetadataOf(p pg.Page, total int64) PageMetadata {
	order := "asc"
	if p.Descending {
		order = "desc"
	}

	limit := int64(p.Limit)
	return PageMetadata{
		Page:       p.Number,
		Limit:      p.Limit,
		Total:      total,
		TotalPages: (total + limit - 1) / limit,
		Sort:       p.Sort,
		Order:      order,
	}
}

// ListOf returns one page of a list.
func ListOf[T any](items []T, page pg.Page, total int64) Answer[[]T, PageMetadata] {
	return Answer[[]T, PageMetadata]{Content: items, Metadata: MetadataOf(page, total)}
}
