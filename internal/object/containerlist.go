package object

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// ListContainers returns a page of containers and their total number, for project members. Sort
// keys are name, createdAt and updatedAt.
func ListContainers(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Container, int64, error) {
	return pg.List[Container](ctx, p.Trusted(), pg.Listing{
		Columns: containerColumns,
		From:    `storage.containers where not deleting`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": p.UUID})
}

// ContainerListing selects a page of the containers that an actor may see.
type ContainerListing struct {
	Search     string // substring, case-insensitive
	Prefix     string // ID prefix
	After      string // IDs after this one
	Sort       string // id, name, created_at or updated_at; otherwise by name
	Descending bool
	Offset     int
	Limit      int
}

// ContainerSorts are the columns that a list can have its order by.
var ContainerSorts = []string{"id", "name", "created_at", "updated_at"}

// SearchContainers returns the containers that the policies show.
func SearchContainers(
	ctx context.Context, p *projectdb.Project, a actor.Actor, l ContainerListing,
) ([]Container, error) {
	if !slices.Contains(ContainerSorts, l.Sort) {
		l.Sort = "name"
	}

	q, table := pg.Querier(p.Trusted()), "storage.containers"
	if !a.BypassesPolicies() {
		q, table = a.On(p.Questions()), visibleContainers
	}

	return pg.All[Container](ctx, q, `
		select `+containerColumns+` from `+table+`
		where not deleting and strpos(lower(name), lower(@search)) > 0 and starts_with(id, @prefix) and id > @after
		order by `+l.Sort+direction(l.Descending)+`, uuid
		offset @offset limit @limit`,
		pgx.StrictNamedArgs{"project": p.UUID, "search": l.Search, "prefix": l.Prefix, "after": l.After,
			"offset": l.Offset, "limit": l.Limit})
}

func direction(descending bool) string {
	if descending {
		return " desc"
	}
	return " asc"
}
