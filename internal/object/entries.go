package object

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Entry is a list entry: a file, or a folder with files below it. A folder has a name only, which
// ends in the delimiter.
type Entry struct {
	Name      string
	UUID      *uuid.UUID
	Size      *int64
	MimeType  *string
	SHA256    []byte `db:"sha256"`
	Cache     *string
	CreatedAt *time.Time
	UpdatedAt *time.Time
}

// EntryListing selects a page of a container's entries.
type EntryListing struct {
	Prefix     string // name prefix
	Delimiter  string // one ASCII character, or ""; names that contain it after the prefix become folder entries
	From       string // first name, inclusive; ascending, by name only
	Search     string // entry prefix after Prefix, case-insensitive
	Sort       string // created_at or updated_at, folders first; otherwise by name
	Descending bool
	After      string // previous page's last entry

	// AfterTime is the time of the file After, for an order by time; nil if After is a folder.
	AfterTime *time.Time

	Offset int // entries to skip
	Limit  int
}

// MaxEntries is the maximum number of entries in a list, MaxEntryOffset the maximum number skipped
// before it.
const (
	MaxEntries     = 1000
	MaxEntryOffset = 100_000
)

// ListEntries returns a container's entries that the policies show. By name the cost depends on the
// entries, not on the files below folders. In other orders it depends on all files with the prefix.
func ListEntries(
	ctx context.Context, p *projectdb.Project, a actor.Actor, container uuid.UUID, l EntryListing,
) ([]Entry, error) {
	q, table := fileSource(p, a)
	first, last := l.bounds()
	args := pgx.StrictNamedArgs{"container": container, "first": first, "last": last,
		"skip": utf8.RuneCountInString(l.Prefix) + 1, "search": l.Search, "offset": l.Offset}

	switch {
	case l.byTimes():
		args["delimiter"], args["limit"] = l.Delimiter, l.Limit
		args["after"], args["after_time"] = l.After, l.AfterTime
		return pg.All[Entry](ctx, q, l.byTime(table), args)
	case l.Delimiter != "":
		args["delimiter"], args["most"] = l.Delimiter, l.Offset+l.Limit
		if !l.Descending {
			args["behind"] = prefixEnd(l.Delimiter)
		}
		return pg.All[Entry](ctx, q, l.byEntry(table), args)
	}

	args["limit"] = l.Limit
	return pg.All[Entry](ctx, q, `
		select full_file_name as name, uuid, size, mime_type, sha256, cache_control as cache, created_at, updated_at
		from `+table+`
		where container_uuid = @container and full_file_name >= @first and full_file_name < @last
		  and (@search::text = '' or starts_with(lower(substr(full_file_name, @skip)), lower(@search collate "C")))
		order by full_file_name`+direction(l.Descending)+`
		offset @offset limit @limit`, args)
}

// bounds returns the page's first name, and the first name after it. Names are ordered by code
// point.
func (l EntryListing) bounds() (first, last string) {
	first, last = max(l.Prefix, l.From), prefixEnd(l.Prefix)
	switch {
	case l.After == "" || l.byTimes():
	case l.Descending:
		last = min(last, l.After)
	default:
		isFolder := l.Delimiter != "" && l.After != l.Prefix && strings.HasSuffix(l.After, l.Delimiter)
		first = max(first, nameBehind(l.After, isFolder))
	}

	return first, last
}

func (l EntryListing) byTimes() bool { return l.Sort == "created_at" || l.Sort == "updated_at" }

// Following returns the first possible name after the entry, where the next page of a list by name
// begins.
func (e Entry) Following() string { return nameBehind(e.Name, e.UUID == nil) }

func nameBehind(entry string, isFolder bool) string {
	if isFolder {
		return prefixEnd(entry)
	}
	return entry + "\x01" // no name has a control character
}

// IsNamePrefix reports whether text can begin a name, or is a result of Following.
func IsNamePrefix(text string) bool {
	return len(text) <= maxFileNameLength+utf8.UTFMax && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// prefixEnd returns the first string behind all names with a prefix.
func prefixEnd(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]

		switch {
		case r == 0xD7FF:
			return prefix + "\uE000" // behind the surrogates, which are no characters
		case r < utf8.MaxRune:
			return prefix + string(r+1)
		}
	}

	return strings.Repeat(string(utf8.MaxRune), maxFileNameLength/4+1)
}

// byEntry returns the statement that lists folders and files by name. Each step finds the next
// entry with the index: behind a folder that is the first name behind all names below it. The next
// step's bound is a column: under policies, PostgreSQL compares an index with no expression whose
// functions could leak rows, and would read the container from its first name at each step.
func (l EntryListing) byEntry(table string) string {
	next := func(first, last string) string {
		return `
			select o.full_file_name, o.uuid, o.size, o.mime_type, o.sha256, o.cache_control, o.created_at, o.updated_at,
			       position(@delimiter::text in substr(o.full_file_name, @skip)) as cut
			from ` + table + ` o
			where o.container_uuid = @container and o.full_file_name >= ` + first + ` and o.full_file_name < ` + last + `
			order by o.full_file_name` + direction(l.Descending) + ` limit 1`
	}

	bound, step := `
		case when f.cut > 0 then left(f.full_file_name, @skip + f.cut - 2) || @behind::text
		     else f.full_file_name || chr(1) end`, next("e.bound", "@last")
	if l.Descending {
		bound = `
		case when f.cut > 0 then left(f.full_file_name, @skip + f.cut - 1) else f.full_file_name end`
		step = next("@first", "e.bound")
	}

	const match = `(@search::text = '' or starts_with(lower(substr(f.full_file_name, @skip)), lower(@search collate "C")))`
	return `
		with recursive entries as (
			select 1 as step, ` + match + `::int as n, ` + match + ` as found, ` + bound + ` as bound, f.*
			from (` + next("@first", "@last") + `) f
			union all
			select e.step + 1, e.n + ` + match + `::int, ` + match + `, ` + bound + `, f.*
			from entries e cross join lateral (` + step + `) f
			where e.n < @most
		)
		select case when cut > 0 then left(full_file_name, @skip + cut - 1) else full_file_name end as name,
		       case when cut = 0 then uuid end as uuid, case when cut = 0 then size end as size,
		       case when cut = 0 then mime_type end as mime_type, case when cut = 0 then sha256 end as sha256,
		       case when cut = 0 then cache_control end as cache, case when cut = 0 then created_at end as created_at,
		       case when cut = 0 then updated_at end as updated_at
		from entries where found order by step offset @offset`
}

// byTime returns the statement that lists files by a time, behind the folders by name.
func (l EntryListing) byTime(table string) string {
	behind := ">"
	if l.Descending {
		behind = "<"
	}

	return `
		with below as (
			select o.*, case when @delimiter::text <> '' then position(@delimiter in substr(o.full_file_name, @skip)) else 0 end as cut
			from ` + table + ` o
			where o.container_uuid = @container and o.full_file_name >= @first and o.full_file_name < @last
			  and (@search::text = '' or starts_with(lower(substr(o.full_file_name, @skip)), lower(@search collate "C")))
		)
		select name, uuid, size, mime_type, sha256, cache, created_at, updated_at from (
			select distinct left(full_file_name, @skip + cut - 1) as name, null::uuid as uuid, null::bigint as size,
			       null as mime_type, null::bytea as sha256, null as cache, null::timestamptz as created_at,
			       null::timestamptz as updated_at
			from below where cut > 0
			union all
			select full_file_name, uuid, size, mime_type, sha256, cache_control, created_at, updated_at
			from below where cut = 0
		) e
		where case when @after::text = '' then true
		           when @after_time::timestamptz is null then uuid is not null or name ` + behind + ` @after
		           else uuid is not null and (` + l.Sort + `, name) ` + behind + ` (@after_time, @after) end
		order by uuid is not null, ` + l.Sort + direction(l.Descending) + `, name` + direction(l.Descending) + `
		offset @offset limit @limit`
}

// FindFiles returns the names for which the container has a file that the policies show. names are
// at most 1000.
func FindFiles(
	ctx context.Context, p *projectdb.Project, a actor.Actor, container uuid.UUID, names []string,
) ([]string, error) {
	q, table := fileSource(p, a)
	return pg.Values[string](ctx, q, `
		select full_file_name from `+table+` where container_uuid = @container and full_file_name = any(@names)`,
		pgx.StrictNamedArgs{"container": container, "names": names})
}
