// Command files measures operations on files. It lists a container of a million files, by page and
// sort key. It compares uploads and downloads with nginx, with the same bytes on the same disk, by
// throughput and processor time. It compares backup and restore with bare pg_dump and pg_restore.
//
//	go run ./bench/files [-what lists,bytes,backups] [-files 1000000] [-rounds 50] [-nginx nginx] [-sizes 1,100,1024] [-gigabytes 1]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	what   = flag.String("what", "lists,bytes,backups", "measurements to run")
	files  = flag.Int("files", 1_000_000, "files in the listed container")
	rounds = flag.Int("rounds", 50,
		"requests for each page, of which the median and the 95th percentile are printed")
	repeats   = flag.Int("repeats", 5, "rounds of transfers and backups; the median and the best are printed")
	sizes     = flag.String("sizes", "1,100,1024", "sizes of the transferred files, MiB")
	only      = flag.String("only", "", "transfers to measure, by prefix of their names; empty: all")
	nginx     = flag.String("nginx", "nginx", "nginx program")
	gigabytes = flag.Float64("gigabytes", 1, "size of the database to back up, GB")
	postgres  = flag.String("postgres-bin", "", "folder of the PostgreSQL programs; empty: search for it")
	dir       = flag.String("dir", "", "folder on the disk to measure; empty: the default for temporary files")
)

func main() {
	flag.Parse()

	if *what == "carry" { // see carrier
		if err := serveLoads(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// bench is a running server with one user, one project and one container.
type bench struct {
	*socle.Socle
	container string
}

func run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return socle.Run(ctx, *dir, []string{
		"SOCLE_POSTGRES_BIN=" + *postgres,
	}, log, func(ctx context.Context, s *socle.Socle) error {
		b := &bench{Socle: s}
		container, err := b.send("POST", "/containers", `{"name": "bench", "is_public": true, "max_file_size": 5368709120}`)
		if err != nil {
			return err
		}

		b.container = container.Content.UUID

		for _, of := range []struct {
			name    string
			measure func(context.Context) error
		}{{"lists", b.lists}, {"bytes", b.transfers}, {"backups", b.backups}} {
			if !slices.Contains(strings.Split(*what, ","), of.name) {
				continue
			}

			if err := of.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", of.name, err)
			}
		}

		return nil
	})
}

// content is the part of a response's content used here.
type content struct{ UUID, Status, Error string }

func (b *bench) send(method, path, body string) (socle.Reply[content], error) {
	return socle.Send[content](b.Socle, method, path, strings.NewReader(body))
}

// median returns the median and the minimum of measurements.
func median(all []time.Duration) (middle, best time.Duration) {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2], sorted[0]
}
