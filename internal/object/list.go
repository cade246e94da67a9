package object

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// fileSortColumns maps a file list's sort keys to columns.
var fileSortColumns = map[string]string{
	"fullFileName": "full_file_name", "size": "size", "mimeType": "mime_type",
	"createdAt": "created_at", "updatedAt": "updated_at",
}

// blockSortColumns maps a sort column to the storage.sorted_blocks column with a block's first
// value.
var blockSortColumns = map[string]string{
	"full_file_name": "first_text", "size": "first_number", "mime_type": "first_text",
	"created_at": "first_time", "updated_at": "first_time",
}

// maxScanOffset is the largest offset in rows that is reached by scanning. Larger ones use the
// container's blocks.
const maxScanOffset = 200

// ListFiles returns a page of a container's files and their total number in the same snapshot. Sort
// keys are fullFileName, size, mimeType, createdAt and updatedAt; text sorts by code point. A
// page's cost does not depend on the offset. It fails with NotFound if the container does not
// exist.
func ListFiles(ctx context.Context, p *projectdb.Project, container uuid.UUID, page pg.Page) ([]File, int64, error) {
	offset := int64(page.Number-1) * int64(page.Limit)
	if offset <= maxScanOffset {
		files, total, err := listByScan(ctx, p.Trusted(), container, page)
		if err != nil || len(files) > 0 {
			return files, total, err
		}
	}

	var files []File
	var total int64
	err := pg.InTx(ctx, p.Trusted(), func(tx pgx.Tx) error {
		_, err := pg.Exec(ctx, tx, `set transaction isolation level repeatable read, read only`)
		if err != nil {
			return err
		}

		total, err = pg.Value[int64](ctx, tx,
			`select total_files from storage.containers where uuid = @container and not deleting`,
			pgx.StrictNamedArgs{"container": container})
		if err != nil {
			return err
		}

		if offset > maxScanOffset {
			files, err = listFromBlocks(ctx, tx, container, page, offset, total)
		} else {
			files, _, err = listByScan(ctx, tx, container, page)
		}

		return err
	})
	if err != nil {
		return nil, 0, err
	}

	return files, total, nil
}

// listByScan returns a page and the total number in one statement. A page without files leaves open
// the total and whether the container exists.
func listByScan(
	ctx context.Context, q pg.Querier, container uuid.UUID, page pg.Page,
) (files []File, total int64, err error) {
	tie := "uuid"
	if page.Sort == "fullFileName" {
		tie = "full_file_name" // unique, and its index has no uuid
	}

	rows, err := pg.All[struct {
		File
		Total int64
	}](ctx, q, `
		select `+fileColumns+`, total
		from storage.files
		join (select uuid as id, total_files as total from storage.containers where not deleting) c
			on c.id = container_uuid
		where container_uuid = @container`+page.Clause(fileSortColumns, tie),
		page.Args(pgx.StrictNamedArgs{"container": container}))

	files = make([]File, len(rows))
	for i, r := range rows {
		files[i], total = r.File, r.Total
	}

	return files, total, err
}

// listFromBlocks returns the page at an offset. It starts at the last block that begins at or
// before the offset, which leaves at most some thousand files to skip with an index-only scan. It
// adds the changes that are not placed in their blocks yet.
func listFromBlocks(
	ctx context.Context, tx pgx.Tx, container uuid.UUID, page pg.Page, offset, total int64,
) ([]File, error) {
	limit := min(int64(page.Limit), total-offset)
	if limit <= 0 {
		return []File{}, nil
	}

	if page.Descending { // the same files, counted from the other end
		offset = total - offset - limit
	}

	column := fileSortColumns[page.Sort]
	key, skip := column+", uuid", "0"
	first := "(select first from block), (select first_uuid from block)"
	start := "(select " + column + " from start), (select uuid from start)"

	if column == "full_file_name" {
		// Names are unique in a container, so their index has no uuid column. The block's first
		// name can since belong to a file with another uuid.
		key, first, start = column, "(select first from block)", "(select full_file_name from start)"
		skip = `(
			select count(*) from storage.files
			where container_uuid = @container and full_file_name = first and uuid < first_uuid)`
	}

	files, err := pg.All[File](ctx, tx, `
		with pending as (
			select b.first_text, b.first_number, b.first_time, b.first_uuid, sum(p.change) as files
			from storage.sorted_pending p
			cross join lateral storage.sort_keys(p.full_file_name, p.mime_type, p.size, p.created_at, p.updated_at) k
			cross join lateral (
				select b.first_text, b.first_number, b.first_time, b.first_uuid from storage.sorted_blocks b
				where b.container_uuid = @container and b.sort = @by
				  and (b.first_text, b.first_number, b.first_time, b.first_uuid) <= (k.in_text, k.in_number, k.in_time, p.file_uuid)
				order by b.first_text desc, b.first_number desc, b.first_time desc, b.first_uuid desc
				limit 1
			) b
			where p.container_uuid = @container and k.sort = @by
			group by 1, 2, 3, 4
		), counted as (
			select first_text, first_number, first_time, first_uuid, b.files + coalesce(p.files, 0) as files
			from storage.sorted_blocks b
			left join pending p using (first_text, first_number, first_time, first_uuid)
			where b.container_uuid = @container and b.sort = @by
		), block as (
			select `+blockSortColumns[column]+` as first, first_uuid, before from (
				select *, sum(files) over (order by first_text, first_number, first_time, first_uuid) - files as before
				from counted
			) b
			where before <= @offset
			order by first_text desc, first_number desc, first_time desc, first_uuid desc
			limit 1
		), start as (
			select `+key+` from storage.files
			where container_uuid = @container and (`+key+`) >= (`+first+`)
			order by `+key+`
			limit 1 offset (select @offset - before + `+skip+` from block)
		)
		select `+fileColumns+` from storage.files
		where container_uuid = @container and (`+key+`) >= (`+start+`)
		order by `+key+`
		limit @limit`,
		pgx.StrictNamedArgs{"container": container, "by": column, "offset": offset, "limit": limit})

	if page.Descending {
		slices.Reverse(files)
	}

	return files, err
}
