package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
)

// sorts are the sort keys for lists of files.
var sorts = []string{"createdAt", "fullFileName", "size", "mimeType", "updatedAt"}

// lists measures pages of a large container: as seen by the client, and the server's share for the
// list query alone.
func (b *bench) lists(ctx context.Context) error {
	began := time.Now()

	pool := b.Projects().Open(b.Project).Trusted()
	// As in the restore of a backup: insert without the counting triggers, then count once at the
	// end.
	if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local session_replication_role = replica`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			insert into storage.files (uuid, container_uuid, bucket_id, full_file_name, mime_type, size, sha256, blob_uuid, created_at, created_by, updated_at, updated_by)
			select gen_random_uuid(), $1, (select id from storage.containers where uuid = $1), 'folder ' || n % 100 || '/file ' || n, (array['text/plain', 'image/png', 'application/pdf'])[1 + n % 3], n * 7919 % 1000003,
			       decode(repeat('00', 32), 'hex'), gen_random_uuid(), now() - make_interval(secs => $2::bigint - n), $1, now() - make_interval(secs => n * 31 % 86400), $1
			from generate_series(1, $2::bigint) n`, b.container, *files); err != nil {
			return err
		}

		for _, sql := range []string{
			`update storage.containers c set (total_files, total_size) = (select count(*), sum(size) from storage.files f where f.container_uuid = c.uuid)`,
			`update storage.usage set (files, bytes) = (select count(*), sum(size) from storage.files)`,
			`select storage.split_sorted(b) from storage.sorted_blocks b`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		return err
	}

	if _, err := pool.Exec(ctx, `vacuum analyze storage.files`); err != nil {
		return err
	}

	fmt.Printf("%d files in %s\n%-55s %10s %10s %10s %10s\n", *files, time.Since(began).Round(time.Second), "page",
		"median", "p95", "list only", "best")

	last := *files / 20
	for _, sort := range sorts {
		for _, order := range []string{"asc", "desc"} {
			for _, page := range []int{1, min(10_000, last), last / 2, last} {
				if err := b.page(ctx, pg.Page{
					Number:     page,
					Limit:      20,
					Sort:       sort,
					Descending: order == "desc",
				}); err != nil {
					return err
				}
			}
		}
	}

	return b.writes(ctx)
}

func (b *bench) page(ctx context.Context, page pg.Page) error {
	order := "asc"
	if page.Descending {
		order = "desc"
	}

	path := fmt.Sprintf("?sort=%s&order=%s&limit=%d&page=%d", page.Sort, order, page.Limit, page.Number)
	container, p := uuid.MustParse(b.container), b.Projects().Open(b.Project)

	var whole, inner []time.Duration
	for range *rounds {
		at := time.Now()

		if _, err := b.Do("GET", "/containers/"+b.container+"/files"+path, nil); err != nil {
			return err
		}

		whole = append(whole, time.Since(at))
		at = time.Now()

		if _, _, err := object.ListFiles(ctx, p, container, page); err != nil {
			return err
		}

		inner = append(inner, time.Since(at))
	}

	slices.Sort(whole)
	slices.Sort(inner)

	at := func(all []time.Duration, percent int) time.Duration {
		return all[len(all)*percent/100].Round(10 * time.Microsecond)
	}
	fmt.Printf("%-55s %10s %10s %10s %10s\n", path, at(whole, 50), at(whole, 95), at(inner, 50), at(inner, 0))

	return nil
}

// writes measures the cost of counting: inserting one file in the large container, and replacing
// one.
func (b *bench) writes(ctx context.Context) error {
	pool := b.Projects().Open(b.Project).Trusted()
	for _, w := range []struct{ name, sql string }{
		{"a row more",
			`insert into storage.files (uuid, container_uuid, bucket_id, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by)
			values (gen_random_uuid(), $1, (select id from storage.containers where uuid = $1), 'more ' || gen_random_uuid(), 'text/plain', (random() * 1e6)::bigint, decode(repeat('00', 32), 'hex'), gen_random_uuid(), $1, $1)`},
		{"a row replaced",
			`update storage.files set size = (random() * 1e6)::bigint, blob_uuid = gen_random_uuid(), updated_at = now()
			where container_uuid = $1 and full_file_name = 'folder 1/file 1'`},
		{"a row less",
			`delete from storage.files where uuid = (select uuid from storage.files where container_uuid = $1 and full_file_name > 'more' limit 1)`},
	} {
		var times, bare []time.Duration
		for range 10 * *rounds {
			for _, role := range []struct {
				name  string
				times *[]time.Duration
			}{{"origin", &times}, {"replica", &bare}} { // sessions with the role replica fire no triggers
				took, err := timeStatement(ctx, pool, role.name, w.sql, b.container)
				if err != nil {
					return err
				}

				*role.times = append(*role.times, took)
			}
		}

		middle, best := median(times)
		without, least := median(bare)
		fmt.Printf("%-55s %10s, best %s; without the counting %s, best %s\n", w.name, middle.Round(10*time.Microsecond),
			best.Round(10*time.Microsecond),
			without.Round(10*time.Microsecond), least.Round(10*time.Microsecond))
	}

	return nil
}

// timeStatement returns the duration of a statement in its own transaction.
func timeStatement(
	ctx context.Context, pool *pgxpool.Pool, role, sql string, args ...any,
) (took time.Duration, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('session_replication_role', $1, true)`, role); err != nil {
			return err
		}

		at := time.Now()
		_, err := tx.Exec(ctx, sql, args...)
		took = time.Since(at)

		return err
	})

	return took, err
}
