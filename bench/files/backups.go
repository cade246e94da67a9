package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/pgserver"
)

// backups measures backup and restore, in turn by Socle and by pg_dump and pg_restore alone: the same database, read by the same login, the
// same format and compression, into a file on the same disk, which is synced.
func (b *bench) backups(ctx context.Context) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	programs, err := pgserver.Find(*postgres)
	if err != nil {
		return err
	}
	var dumped, backed, restored, loaded, dumps, restores []float64
	file := filepath.Join(b.dir, "bare.dump")
	for i := range *repeats {
		if err := b.settle(ctx); err != nil {
			return err
		}
		var id string
		var bare, ours time.Duration
		if err := inTurn(i, func() (err error) {
			bare, err = b.bareDump(ctx, programs, file)
			return err
		}, func() (err error) {
			id, ours, err = b.backup()
			return err
		}); err != nil {
			return err
		}
		dumped, backed, dumps = append(dumped, bare.Seconds()), append(backed, ours.Seconds()), append(dumps, ours.Seconds()/bare.Seconds())
		if err := inTurn(i, func() (err error) {
			bare, err = b.bareRestore(ctx, programs, file)
			return err
		}, func() (err error) {
			ours, err = b.restore(id)
			return err
		}); err != nil {
			return err
		}
		restored, loaded, restores = append(restored, bare.Seconds()), append(loaded, ours.Seconds()), append(restores, ours.Seconds()/bare.Seconds())
		fmt.Printf("round %d: backup %.1f s, pg_dump %.1f s; restore %.1f s, pg_restore %.1f s\n", i+1, backed[i], dumped[i], loaded[i], restored[i])
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Printf("bare dump of %d MiB\n%-42s %10s %10s %8s %8s\n", info.Size()/mebi, "seconds, median of the rounds", "Socle", "bare", "ratio", "best")
		}
	}
	for _, m := range []struct {
		name               string
		ours, bare, ratios []float64
	}{{"backup beside pg_dump", backed, dumped, dumps}, {"restore beside pg_restore", loaded, restored, restores}} {
		o, _ := middle(m.ours)
		n, _ := middle(m.bare)
		ratio, _ := middle(m.ratios)
		fmt.Printf("%-42s %10.1f %10.1f %8.2f %8.2f\n", m.name, o, n, ratio, least(m.ratios))
	}
	return nil
}

// inTurn does both, in another order each round.
func inTurn(round int, first, second func() error) error {
	if round%2 == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

// settle leaves nothing to be done for whoever reads the database first.
func (b *bench) settle(ctx context.Context) error {
	p := b.server.Projects().Open(b.id)
	_, vacuumed := p.Owner().Exec(ctx, `vacuum analyze`)
	_, written := p.Trusted().Exec(ctx, `checkpoint`)
	return errors.Join(vacuumed, written)
}

// fill makes tables of the wanted size: text that compresses, as rows do, numbers, and an index.
func (b *bench) fill(ctx context.Context) error {
	pool := b.server.Projects().Open(b.id).Owner()
	const tables, width = 4, 400 // bytes of a row, or so
	for t := range tables {
		rows := int64(*gigabytes * (1 << 30) / width / tables)
		for _, sql := range []string{
			fmt.Sprintf(`create table public.filling%d (id bigint primary key, about text, amount numeric, at timestamptz)`, t),
			fmt.Sprintf(`insert into public.filling%d select n, repeat(md5(n::text) || ' of ' || n, 4) || md5((n * 7)::text) || md5((n * 11)::text) || md5((n * 13)::text), n * 1.25, now() from generate_series(1, %d) n`, t, rows),
			fmt.Sprintf(`create index on public.filling%d (at)`, t),
		} {
			if _, err := pool.Exec(ctx, sql); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) bareDump(ctx context.Context, programs pgserver.Binaries, file string) (time.Duration, error) {
	address, password := b.server.Projects().DumpURL(b.id)
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	began := time.Now()
	if err := program(ctx, password, programs.Path("pg_dump"), "--format=custom", "--file="+file, "--dbname="+address); err != nil {
		return 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// bareRestore restores into an empty database, which it makes and drops.
func (b *bench) bareRestore(ctx context.Context, programs pgserver.Binaries, file string) (time.Duration, error) {
	config := b.server.Projects().Open(b.id).Trusted().Config().ConnConfig
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer admin.Close(ctx)
	address := "postgresql:///?" + url.Values{"host": {config.Host}, "port": {strconv.Itoa(int(config.Port))}, "user": {config.User}, "dbname": {"bare"}}.Encode()
	if _, err := admin.Exec(ctx, `create database bare template template0`); err != nil {
		return 0, err
	}
	began := time.Now()
	err = program(ctx, config.Password, programs.Path("pg_restore"), "--no-owner", "--no-privileges", "--dbname="+address, file)
	took := time.Since(began)
	_, dropped := admin.Exec(ctx, `drop database bare`)
	return took, errors.Join(err, dropped)
}

func program(ctx context.Context, password, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}

// backup makes a backup. When it has returned, the backup is proven too, which is no part of the time.
func (b *bench) backup() (id string, took time.Duration, err error) {
	began := time.Now()
	made, err := b.send("POST", "/backups", "{}")
	if err != nil {
		return "", 0, err
	}
	id = made.Content.UUID
	if err := b.wait("/backups/"+id, func(r reply) bool { return r.Content.Status == "completed" }); err != nil {
		return id, 0, err
	}
	took = time.Since(began)
	return id, took, b.wait("/backups/"+id, func(r reply) bool { return r.Metadata.ProvenAt != "" })
}

// restore restores a backup in place, and lets go of what it replaced.
func (b *bench) restore(backup string) (time.Duration, error) {
	began := time.Now()
	made, err := b.send("POST", "/backups/"+backup+"/restore", `{"target": "in_place"}`)
	if err != nil {
		return 0, err
	}
	if err := b.wait("/restores/"+made.Content.UUID, func(r reply) bool { return r.Content.Status == "completed" }); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if _, err := b.send("DELETE", "/restores/"+made.Content.UUID, ""); err != nil {
		return 0, err
	}
	return took, nil
}

// wait asks until what it gets is as it should be.
func (b *bench) wait(path string, good func(reply) bool) error {
	for {
		r, err := b.send("GET", path, "")
		if err != nil {
			return err
		}
		if good(r) {
			return nil
		}
		if r.Content.Status == "failed" {
			return fmt.Errorf("%s: %s", path, r.Content.Error)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// fileOf returns the UUID of the file that an answer describes; "" if it is no answer of Socle's.
func fileOf(text []byte) string {
	var r reply
	if json.Unmarshal(text, &r) != nil {
		return ""
	}
	return r.Content.UUID
}
