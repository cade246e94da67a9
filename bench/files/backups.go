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

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/pgserver"
)

// backups measures backup, proof and restore, alternating between Socle and bare pg_dump and
// pg_restore. Both use the same database, login, format, compression and disk, and sync their
// files. Processor time includes all participating processes.
func (b *bench) backups(ctx context.Context) error {
	if err := b.fill(ctx); err != nil {
		return err
	}

	programs, err := pgserver.Find(*postgres)
	if err != nil {
		return err
	}

	file := filepath.Join(b.Dir, "bare.dump")
	var id string
	ways := []*comparison{
		{name: "backup beside pg_dump", ours: func() (took time.Duration, err error) {
			id, took, err = b.backup()
			return took, err
		}, bare: func() (time.Duration, error) { return b.bareDump(ctx, programs, file) }, after: func() error {
			// proven by a restore
			return b.wait("/backups/"+id, func(r socle.Reply[content]) bool { return r.Metadata.ProvenAt != "" })
		}},
		{name: "proof beside pg_restore", ours: func() (time.Duration, error) { return b.prove(id) },
			bare: func() (time.Duration, error) {
				return b.bareRestore(ctx, programs, file)
			}, after: func() error { return nil }},
		{name: "restore beside pg_restore", ours: func() (time.Duration, error) { return b.restore(id) },
			bare: func() (time.Duration, error) {
				return b.bareRestore(ctx, programs, file)
			}, after: func() error { return nil }},
	}

	for i := range *repeats {
		if err := b.vacuumAndCheckpoint(ctx); err != nil {
			return err
		}

		for _, w := range ways {
			if err := b.compare(i, w); err != nil {
				return err
			}
		}
	}

	info, err := os.Stat(file)
	if err != nil {
		return err
	}

	fmt.Printf("bare dump of %d MiB\n", info.Size()/mebi)
	printComparisons(ways)

	return nil
}

// comparison is a work of Socle beside a program's.
type comparison struct {
	name       string
	ours, bare func() (time.Duration, error)
	after      func() error // part of Socle's run, but not measured

	times, bareTimes, ratios, costs, bareCosts, costRatios []float64
}

// compare measures a round of a comparison.
func (b *bench) compare(round int, w *comparison) error {
	one := func(times, costs *[]float64, f func() (time.Duration, error), after func() error) func() error {
		return func() error {
			before := b.totalProcessorTime()
			took, err := f()
			*times = append(*times, took.Seconds())
			*costs = append(*costs, (b.totalProcessorTime() - before).Seconds())
			if err != nil {
				return err
			}

			return after()
		}
	}
	if err := alternate(round, one(&w.bareTimes, &w.bareCosts, w.bare, func() error { return nil }),
		one(&w.times, &w.costs, w.ours, w.after)); err != nil {
		return err
	}

	w.ratios = append(w.ratios, w.times[round]/w.bareTimes[round])
	w.costRatios = append(w.costRatios, w.costs[round]/w.bareCosts[round])
	fmt.Printf("round %d: %-28s %6.1f s, bare %6.1f s; processor %6.1f s, bare %6.1f s\n", round+1, w.name,
		w.times[round], w.bareTimes[round], w.costs[round], w.bareCosts[round])

	return nil
}

// printComparisons prints the medians of the rounds.
func printComparisons(ways []*comparison) {
	fmt.Printf("%-30s %30s   %30s\n", "medians of the rounds", "seconds", "processor, seconds")
	fmt.Printf("%-30s %7s %7s %7s %7s   %7s %7s %7s\n", "", "Socle", "bare", "ratio", "best", "Socle", "bare", "ratio")

	for _, w := range ways {
		var m [6]float64
		for i, all := range [][]float64{w.times, w.bareTimes, w.ratios, w.costs, w.bareCosts, w.costRatios} {
			m[i], _ = medianMax(all)
		}

		fmt.Printf("%-30s %7.1f %7.1f %7.2f %7.2f   %7.1f %7.1f %7.2f\n", w.name, m[0], m[1], m[2], least(w.ratios),
			m[3], m[4], m[5])
	}
}

// alternate runs both functions, and swaps their order each round.
func alternate(round int, first, second func() error) error {
	if round%2 == 1 {
		first, second = second, first
	}

	if err := first(); err != nil {
		return err
	}

	return second()
}

// vacuumAndCheckpoint vacuums and checkpoints the database, so that no pending work falls to its
// first reader.
func (b *bench) vacuumAndCheckpoint(ctx context.Context) error {
	p := b.Projects().Open(b.Project)
	_, vacuumed := p.Owner().Exec(ctx, `vacuum analyze`)
	_, written := p.Trusted().Exec(ctx, `checkpoint`)

	return errors.Join(vacuumed, written)
}

// fill creates tables of the requested size: compressible text as in typical rows, numbers, and an
// index.
func (b *bench) fill(ctx context.Context) error {
	pool := b.Projects().Open(b.Project).Owner()
	const tables, width = 4, 400 // width: approximate bytes of a row
	for t := range tables {
		rows := int64(*gigabytes * (1 << 30) / width / tables)
		for _, sql := range []string{
			fmt.Sprintf(
				`create table public.filling%d (id bigint primary key, about text, amount numeric, at timestamptz)`, t,
			),
			fmt.Sprintf(
				`insert into public.filling%d select n, repeat(md5(n::text) || ' of ' || n, 4) || md5((n * 7)::text) || md5((n * 11)::text) || md5((n * 13)::text), n * 1.25, now() from generate_series(1, %d) n`, t, rows,
			),
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
	address, password := b.Projects().Open(b.Project).DumpURL()

	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}

	began := time.Now()

	if err := program(ctx, password, programs.Path("pg_dump"), "--format=custom", "--compress=3", "--file="+file,
		"--dbname="+address); err != nil {
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

// bareRestore restores into an empty database, created and dropped by itself.
func (b *bench) bareRestore(ctx context.Context, programs pgserver.Binaries, file string) (time.Duration, error) {
	config := b.Projects().Open(b.Project).Trusted().Config().ConnConfig
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer admin.Close(ctx)

	address := "postgresql:///?" + url.Values{
		"host": {config.Host}, "port": {strconv.Itoa(int(config.Port))}, "user": {config.User}, "dbname": {"bare"},
	}.Encode()

	if _, err := admin.Exec(ctx, `create database bare template template0`); err != nil {
		return 0, err
	}

	began := time.Now()
	err = program(ctx, config.Password, programs.Path("pg_restore"), "--no-owner", "--no-privileges",
		"--dbname="+address, file)

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

// backup creates a backup.
func (b *bench) backup() (id string, took time.Duration, err error) {
	began := time.Now()

	made, err := b.send("POST", "/backups", `{}`)
	if err != nil {
		return "", 0, err
	}

	id = made.Content.UUID
	if err := b.wait("/backups/"+id, func(r socle.Reply[content]) bool {
		return r.Content.Status == "completed"
	}); err != nil {
		return id, 0, err
	}

	return id, time.Since(began), nil
}

// prove proves an existing backup again.
func (b *bench) prove(backup string) (time.Duration, error) {
	before, err := b.send("GET", "/backups/"+backup, "")
	if err != nil {
		return 0, err
	}

	began := time.Now()

	if _, err := b.send("POST", "/backups/"+backup+"/verify", `{}`); err != nil {
		return 0, err
	}

	err = b.wait("/backups/"+backup, func(r socle.Reply[content]) bool {
		return r.Metadata.ProvenAt != before.Metadata.ProvenAt
	})
	return time.Since(began), err
}

// restore restores a backup in place, and discards the pre-restore database.
func (b *bench) restore(backup string) (time.Duration, error) {
	began := time.Now()

	made, err := b.send("POST", "/backups/"+backup+"/restore", `{"target": "in_place"}`)
	if err != nil {
		return 0, err
	}

	if err := b.wait("/restores/"+made.Content.UUID, func(r socle.Reply[content]) bool {
		return r.Content.Status == "completed"
	}); err != nil {
		return 0, err
	}

	took := time.Since(began)

	if _, err := b.Do("DELETE", "/restores/"+made.Content.UUID, nil); err != nil {
		return 0, err
	}

	return took, nil
}

// wait polls a path until the response satisfies a condition.
func (b *bench) wait(path string, good func(socle.Reply[content]) bool) error {
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

		time.Sleep(100 * time.Millisecond) // polling costs processor time, too
	}
}

// fileOf returns the UUID of the file in a response; "" if the response is not Socle's.
func fileOf(text []byte) string {
	var r socle.Reply[content]
	if json.Unmarshal(text, &r) != nil {
		return ""
	}

	return r.Content.UUID
}
