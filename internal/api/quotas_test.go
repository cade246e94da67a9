package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestQuota(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()

	path := "/projects/" + a.Project + "/quota"
	c := a.Create("/containers", `{"name": "reports"}`)
	put(a, c, "a", strings.Repeat("x", 100)).Want(200)
	a.Get(path).Want(200).Content("files", 1).Content("bytes", 100).Content("maxFiles", 10_000_000).
		Content("maxBytes", 1<<40)

	a.Put(path, `{"max_files": 1}`).Want(403)
	administrator.Put(path, `{}`).Want(422)
	administrator.Put(path, `{"max_files": -1}`).Want(422).Field("max_files")
	administrator.Put(path, `{"max_bytes": 200, "max_files": 3}`).Want(200).Content("maxBytes", 200).
		Content("bytes", 100)

	put(a, c, "b", strings.Repeat("x", 101)).Want(413).Code("quota_exceeded")
	upload(a, c, "b", strings.Repeat("x", 101)).Want(413).Code("quota_exceeded")
	put(a, c, "a", strings.Repeat("y", 200)).Want(200) // replaces 100 bytes
	put(a, c, "a", strings.Repeat("y", 201)).Want(413).Code("quota_exceeded")
	put(a, c, "b", "x").Want(413).Code("quota_exceeded")
	administrator.Put(path, `{"max_bytes": 50}`).Want(200)
	put(a, c, "a", strings.Repeat("y", 201)).Want(413).Code("quota_exceeded")
	put(a, c, "a", strings.Repeat("y", 150)).Want(200) // smaller than before
	put(a, c, "b", "").Want(413).Code("quota_exceeded")
	a.Delete("/containers/" + c + "/files/" + a.Get("/containers/"+c+"/files").Get("0.uuid").(string)).Want(200)
	administrator.Put(path, `{"max_bytes": 1000}`).Want(200).Content("files", 0).Content("bytes", 0)

	// Concurrent uploads do not exceed the quota.
	counts := concurrently(12, func(i int) *apitest.Reply { return put(a, c, fmt.Sprint("n", i), "x") })
	wantCounts(t, counts, map[int]int{200: 3, 413: 9})
	a.Delete("/containers/" + c + "?force=true").Want(200)
	waitForBlobs(t, a, 0)
	administrator.Put(path, `{"max_files": 100, "max_bytes": 1000}`).Want(200).Content("files", 0).Content("bytes", 0)
	c = a.Create("/containers", `{"name": "reports"}`)
	counts = concurrently(12, func(i int) *apitest.Reply {
		return put(a, c, fmt.Sprint("n", i), strings.Repeat("x", 300))
	})
	wantCounts(t, counts, map[int]int{200: 3, 413: 9})
	a.Get(path).Want(200).Content("bytes", 900).Content("files", 3)
	waitForBlobs(t, a, 3)
	wantFiles(t, a, 3)
	a.Put("/projects/garbage/quota", `{}`).Want(400)
	a.Get("/projects/garbage/quota").Want(400)
	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	administrator.Put(path, `{"max_files": 1}`).Want(409).Code("project_paused")
}

// checkCounts fails the test unless all stored counts equal the actual ones.
func checkCounts(t *testing.T, a *apitest.API) {
	t.Helper()

	// Each page has shown before that changes count that are not placed in their blocks yet.
	execute(t, a, `select storage.place_pending(uuid) from storage.containers`)

	for name, sql := range map[string]string{
		"containers": `select count(*) from storage.containers c where (total_files, total_size) is distinct from
			(select row(count(*), coalesce(sum(size), 0)::bigint) from storage.files f where f.container_uuid = c.uuid)
			and (total_files <> (select count(*) from storage.files f where f.container_uuid = c.uuid)
			  or total_size <> (select coalesce(sum(size), 0) from storage.files f where f.container_uuid = c.uuid))`,
		"the project": `select count(*) from storage.usage where files <> (select count(*) from storage.files) or bytes <> (select coalesce(sum(size), 0) from storage.files)`,
		// One pass over blocks and files together, in their order: each file belongs to the last
		// block before it.
		"blocks": `
			with entries as (
				select container_uuid, sort, first_text as in_text, first_number as in_number, first_time as in_time,
					first_uuid as uuid, 0 as kind, files
				from storage.sorted_blocks
				union all
				select f.container_uuid, k.sort collate "C", k.in_text collate "C", k.in_number, k.in_time, f.uuid, 1, null
				from storage.files f cross join lateral
					storage.sort_keys(f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at) k
			), numbered as (
				select *, count(*) filter (where kind = 0) over
					(partition by container_uuid, sort order by in_text, in_number, in_time, uuid, kind) as block
				from entries
			)
			select count(*) from (
				select max(files) as files, count(*) filter (where kind = 1) as counted from numbered
				where block > 0 group by container_uuid, sort, block
			) x where files <> counted`,
	} {
		if n := query[int](t, a, sql); n > 0 {
			t.Errorf("%s: got %d wrong counts", name, n)
		}
	}
}

// TestTotalFiles checks the stored counts after concurrent uploads, replacements, moves and
// deletions.
func TestTotalFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c, other := a.Create("/containers", `{"name": "one"}`), a.Create("/containers", `{"name": "other"}`)
	counts := concurrently(35, func(i int) *apitest.Reply {
		name := fmt.Sprint("f", i%7)
		r := put(a, c, name, strings.Repeat("x", i))
		if r.Status != 200 {
			return r
		}

		file := "/containers/" + c + "/files/" + fmt.Sprint(r.Get("uuid"))
		switch i % 5 {
		case 0:
			return a.Delete(file)
		case 1:
			return a.Put(file, `{"container_uuid": "`+other+`", "full_file_name": "`+fmt.Sprint("m", i)+`"}`)
		case 2:
			return a.Put(file, `{"full_file_name": "`+fmt.Sprint("r", i)+`"}`)
		case 3:
			return a.Delete("/containers/" + other + "/folders/none")
		}

		return upload(a, other, fmt.Sprint("u", i), "hello")
	})

	wantStatuses(t, counts, 200, 201, 404, 409)
	checkCounts(t, a)

	for _, id := range []string{c, other} {
		a.Get("/containers/"+id).Want(200).
			Content("totalFiles", query[int](t, a, `select count(*) from storage.files where container_uuid = $1`, id))
	}
}

// TestListManyFiles checks every page of a long list while blocks of the index are split and
// emptied.
func TestListManyFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "many"}`)

	execute(t, a,
		`insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_at, created_by, updated_by)
		select gen_random_uuid(), uuid, 'f' || n, 'text/t' || n % 2, n, decode(repeat('00', 32), 'hex'), gen_random_uuid(), now() - make_interval(secs => n / 3), uuid, uuid
		from storage.containers, generate_series(1, 4501) n`)

	if n := query[int](t, a, "select count(*) from storage.file_blocks"); n < 5 {
		t.Errorf("got %d blocks by createdAt", n)
	}

	path := "/containers/" + c + "/files?limit=50"
	check := func() {
		t.Helper()

		for sort, column := range map[string]string{
			"createdAt": "created_at", "fullFileName": "full_file_name", "size": "size",
			"mimeType": "mime_type", "updatedAt": "updated_at",
		} {
			all := strings.Fields(
				query[string](t, a, `select string_agg(uuid::text, ' ' order by `+column+`, uuid) from storage.files`),
			)

			for _, order := range []string{"asc", "desc"} {
				for _, page := range []int{1, 5, 7, 41, 61, 79, 91} {
					got := values(a.Get(fmt.Sprintf("%s&sort=%s&order=%s&page=%d", path, sort, order, page)).Want(200).
						Total(len(all)), "uuid")

					first := min((page-1)*50, len(all))
					if want := all[first:min(first+50, len(all))]; !slices.Equal(got, want) {
						t.Errorf("page %d by %s, %s: got %d files, different from the expected %d", page, sort, order,
							len(got), len(want))
					}
				}

				slices.Reverse(all)
			}
		}
	}

	check()
	checkCounts(t, a)

	if got := values(a.Get(path+"&page=100000000").Want(200).Total(4501), "uuid"); len(got) > 0 {
		t.Errorf("got %d files beyond the last page", len(got))
	}

	execute(t, a,
		`update storage.files set full_file_name = 'g' || full_file_name, updated_at = now() + make_interval(secs => size) where size % 3 = 0`)

	check()
	checkCounts(t, a)

	// Fewer changes than are placed at once.
	execute(t, a, `update storage.files set full_file_name = 'h' || full_file_name, size = size + 1000000 where size % 50 = 0`)
	execute(t, a, `delete from storage.files where size % 31 = 0`)
	check()

	if n := query[int](t, a, "select count(*) from storage.sorted_pending"); n == 0 {
		t.Error("no change is pending")
	}

	checkCounts(t, a)

	// Give the files at the block boundaries the lowest UUIDs, so that they sort before their
	// blocks.
	execute(t, a,
		`update storage.files set uuid = overlay(uuid::text placing '00000000' from 1)::uuid where full_file_name in (select first_text from storage.sorted_blocks)`)

	check()
	execute(t, a, `delete from storage.files where size between 1000 and 3500 or size % 7 = 0`)
	check()
	execute(t, a, `delete from storage.files`)
	checkCounts(t, a)

	if n := query[int](t, a, "select count(*) from storage.sorted_blocks"); n != 5 {
		t.Errorf("got %d blocks", n)
	}
}
