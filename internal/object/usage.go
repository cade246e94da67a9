package object

import (
	"context"

	"socle/internal/pg"
	"socle/internal/tenant"
)

// Usage is how many files a project has.
type Usage struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// GetUsage counts the files of project p.
func GetUsage(ctx context.Context, p *tenant.Project) (Usage, error) {
	return pg.One[Usage](ctx, p.Trusted(), `select count(*), coalesce(sum(size), 0)::bigint as bytes from storage.files`)
}
