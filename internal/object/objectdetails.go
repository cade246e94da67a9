package object

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// BucketsAfter returns the buckets of project p after one, by id, at most limit. No policy decides
// about it.
func BucketsAfter(ctx context.Context, p *projectdb.Project, after string, limit int) ([]Bucket, error) {
	return pg.All[Bucket](ctx, p.Trusted(), `
		select `+bucketColumns+` from storage.containers where not deleting and id > @after order by id limit @limit`,
		pgx.StrictNamedArgs{"after": after, "limit": limit})
}

// KeyEntry is an entry of [ListKeys]: an object, or the common prefix of several, which has a name
// only.
type KeyEntry struct {
	Name      string
	IsPrefix  bool
	Size      int64
	SHA256    []byte `db:"sha256"`
	UpdatedAt time.Time
}

// KeyQuery selects keys of a bucket.
type KeyQuery struct {
	Prefix    string
	Delimiter string // one ASCII character, or ""; names with it behind the prefix become one entry
	From      string // the first name, inclusive
	Limit     int
}

// ListKeys returns keys of a bucket by code point. The cost depends on the entries, not on the
// objects below common prefixes: each step finds the next entry with the index.
func ListKeys(ctx context.Context, p *projectdb.Project, b Bucket, q KeyQuery) ([]KeyEntry, error) {
	args := pgx.StrictNamedArgs{"container": b.UUID, "from": max(q.From, q.Prefix), "end": prefixEnd(q.Prefix),
		"limit": q.Limit}
	if q.Delimiter == "" {
		return pg.All[KeyEntry](ctx, p.Trusted(), `
			select full_file_name as name, false as is_prefix, size, sha256, updated_at
			from storage.files
			where container_uuid = @container and full_file_name >= @from and full_file_name < @end
			order by full_file_name limit @limit`, args)
	}

	args["delimiter"], args["after"] = q.Delimiter, prefixEnd(q.Delimiter)
	args["skip"] = utf8.RuneCountInString(q.Prefix) + 1
	next := func(from string) string {
		return `
			select f.full_file_name, f.size, f.sha256, f.updated_at,
			       position(@delimiter in substr(f.full_file_name, @skip)) as cut
			from storage.files f
			where f.container_uuid = @container and f.full_file_name >= ` + from + ` and f.full_file_name < @end
			order by f.full_file_name limit 1`
	}

	return pg.All[KeyEntry](ctx, p.Trusted(), `
		with recursive entries as (
			select 1 as n, f.* from (`+next("@from")+`) f
			union all
			select e.n + 1, f.* from entries e cross join lateral (`+next(`
				case when e.cut > 0 then left(e.full_file_name, @skip + e.cut - 2) || @after
				     else e.full_file_name || chr(1) end`)+`) f
			where e.n < @limit
		)
		select case when cut > 0 then left(full_file_name, @skip + cut - 1) else full_file_name end as name,
		       cut > 0 as is_prefix, size, sha256, updated_at
		from entries order by n`, args)
}

// FollowingKey returns the first possible name after an entry of [ListKeys], which begins the next
// page.
func FollowingKey(e KeyEntry) string {
	if e.IsPrefix {
		return prefixEnd(e.Name)
	}
	return e.Name + "\x01"
}

// objectAt returns an object of a container by UUID, or NotFound.
func objectAt(ctx context.Context, p *projectdb.Project, file uuid.UUID) (File, error) {
	return pg.One[File](ctx, p.Trusted(), `select `+fileColumns+` from storage.files where uuid = @file`,
		pgx.StrictNamedArgs{"file": file})
}

// IsKeyPrefix reports whether text can be the beginning of names, or the result of [FollowingKey].
func IsKeyPrefix(text string) bool {
	return len(text) <= maxFileNameLength+utf8.UTFMax && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
