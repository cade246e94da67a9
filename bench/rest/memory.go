package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
)

const longResponse = `
	create function public.long(megabytes int) returns setof text language sql stable as 'select repeat(''x'', 1000000) from generate_series(1, megabytes)';
	grant execute on function public.long to anon`

// measureMemory prints the growth of Socle's and PostgreSQL's memory while one client, then four,
// read responses of the given number of megabytes.
func (b *bench) measureMemory(ctx context.Context) error {
	if _, err := b.project.Owner().Exec(ctx, longResponse, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}

	read := func(megabytes int) (int64, error) {
		r, err := http.NewRequest("GET", fmt.Sprintf("%s/rpc/long?megabytes=%d", b.rows(), megabytes), nil)
		if err != nil {
			return 0, err
		}

		r.Header.Set("apikey", b.key)

		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()

		n, err := io.Copy(io.Discard, res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", res.StatusCode)
		}

		return n, err
	}

	process := fmt.Sprintf("/proc/%d", b.PID())

	if _, err := read(1); err != nil {
		return err
	}

	fmt.Printf("%7s %14s %18s %18s\n", "clients", "bytes each", "more in socle, MiB", "more in pg, MiB")

	for _, clients := range []int{1, 4} {
		var all sync.WaitGroup
		var size atomic.Int64
		errs, done := make(chan error, clients), make(chan struct{})
		before, postgres := resident(process), postgresMemory(b.Postmaster)

		for range clients {
			all.Go(func() {
				n, err := read(*long)
				size.Store(n)
				errs <- err
			})
		}

		go func() { all.Wait(); close(done) }()

		var mostOwn, mostPostgres int64
		tick := time.NewTicker(5 * time.Millisecond)
		for reading := true; reading; {
			select {
			case <-tick.C:
				mostOwn, mostPostgres = max(mostOwn, resident(process)-before), max(mostPostgres,
					postgresMemory(b.Postmaster)-postgres)
			case <-done:
				reading = false
			}
		}

		tick.Stop()

		for range clients {
			if err := <-errs; err != nil {
				return err
			}
		}

		fmt.Printf("%7d %14d %18.1f %18.1f\n", clients, size.Load(), float64(mostOwn)/1024, float64(mostPostgres)/1024)
	}

	return nil
}

// postgresMemory is the unshared memory of PostgreSQL's processes in KiB.
func postgresMemory(postmaster string) (sum int64) {
	for _, dir := range socle.Children(postmaster) {
		sum += resident(dir)
	}
	return sum
}

// resident is the unshared memory of a process in KiB. It is zero without /proc.
func resident(dir string) int64 {
	text, _ := os.ReadFile(filepath.Join(dir, "status"))
	_, after, _ := bytes.Cut(text, []byte("RssAnon:"))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		return 0
	}

	n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return n
}
