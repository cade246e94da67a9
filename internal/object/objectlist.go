package object

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// ObjectEntry is an entry of a list: an object, or a folder with objects below it.
type ObjectEntry struct {
	Name      string // without the prefix
	UUID      *uuid.UUID
	Size      *int64
	MimeType  *string
	SHA256    []byte `db:"sha256"`
	Cache     *string
	CreatedAt *time.Time
	UpdatedAt *time.Time
}

// MaxObjectList is the maximum number of entries of a list, and MaxObjectOffset of those before it.
const (
	MaxObjectList   = 1000
	MaxObjectOffset = 100_000
)

// ListObjects returns entries of a folder of a bucket, those that the policies show, by name.
// folder is "" or ends in a slash. The cost depends on the entries, not on the objects below
// folders.
//
// Names are ordered by code point, so the objects of a folder end before the folder's name
// followed by 0, the character after the slash. Each step finds the next entry with the index.
func ListObjects(
	ctx context.Context, p *projectdb.Project, a Actor, b Bucket, folder string, offset, limit int,
) ([]ObjectEntry, error) {
	table := "storage.objects"
	if a.bypassesPolicies() {
		table = "storage.files"
	}

	next := func(after string) string {
		return `
			select o.full_file_name, o.uuid, o.size, o.mime_type, o.sha256, o.cache_control, o.created_at, o.updated_at,
			       position('/' in substr(o.full_file_name, @skip)) as slash
			from ` + table + ` o
			where o.container_uuid = @container and o.full_file_name >= ` + after + ` and (@last = '' or o.full_file_name < @last)
			order by o.full_file_name limit 1`
	}

	list := `
		with recursive entries as (
			select 1 as n, f.* from (` + next("@first") + `) f
			union all
			select e.n + 1, f.* from entries e cross join lateral (` + next(`
				case when e.slash > 0 then left(e.full_file_name, @skip + e.slash - 2) || '0'
				     else e.full_file_name || chr(1) end`) + `) f
			where e.n < @most
		)
		select case when slash > 0 then substr(full_file_name, @skip, slash - 1) else substr(full_file_name, @skip) end as name,
		       case when slash = 0 then uuid end as uuid, case when slash = 0 then size end as size,
		       case when slash = 0 then mime_type end as mime_type, case when slash = 0 then sha256 end as sha256,
		       case when slash = 0 then cache_control end as cache, case when slash = 0 then created_at end as created_at,
		       case when slash = 0 then updated_at end as updated_at
		from entries order by n offset @offset`

	var last string
	if folder != "" {
		last = strings.TrimSuffix(folder, "/") + "0"
	}

	args := pgx.StrictNamedArgs{"container": b.UUID, "first": folder, "last": last, "skip": len([]rune(folder)) + 1,
		"most": offset + limit, "offset": offset}
	if a.bypassesPolicies() {
		return pg.All[ObjectEntry](ctx, p.Trusted(), list, args)
	}

	var entries []ObjectEntry
	err := asActor(ctx, p, a, func(tx pgx.Tx) (err error) {
		entries, err = pg.All[ObjectEntry](ctx, tx, list, args)
		return err
	})

	return entries, err
}
