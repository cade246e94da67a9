// Command dumps compares socle db import, through the API of a server, with psql on a direct
// connection to the same PostgreSQL: one dump with many rows in COPY, and one with many statements.
//
//	go build -o bin/socle ./cmd/socle && go run ./bench/dumps [-rounds 3] [-rows 1000000] [-statements 50000]
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/pgserver"
)

var (
	binary     = flag.String("socle", "bin/socle", "path of the program")
	rounds     = flag.Int("rounds", 3, "imports of each dump")
	rows       = flag.Int("rows", 1_000_000, "rows of the dump with COPY")
	statements = flag.Int("statements", 50_000, "INSERT statements of the other dump")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	programs, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		return err
	}

	dir, err := socle.TempDir("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	postgres, err := pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(dir, "postgres"), Binaries: programs, Password: "bench",
	})
	if err != nil {
		return err
	}
	defer func() { _ = postgres.Stop(context.WithoutCancel(ctx)) }()

	settings := []string{"SOCLE_DATABASE_URL=" + postgres.URL("postgres")}
	return socle.Run(ctx, "", settings, slog.New(slog.DiscardHandler), func(ctx context.Context, s *socle.Socle) error {
		for _, d := range []struct {
			name  string
			write func(io.Writer)
		}{{"COPY", writeCopy}, {"INSERT", writeInserts}} {
			if err := compare(ctx, s, postgres, d.name, d.write); err != nil {
				return err
			}
		}

		return nil
	})
}

// compare prints the best times of both programs for a dump.
func compare(ctx context.Context, s *socle.Socle, p *pgserver.Server, name string, write func(io.Writer)) error {
	path := filepath.Join(s.Dir, name+".sql")
	file, err := os.Create(path)
	if err != nil {
		return err
	}

	w := bufio.NewWriter(file)
	write(w)
	if err := w.Flush(); err != nil {
		return err
	}

	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}

	var best [2]time.Duration
	for round := range *rounds {
		target := fmt.Sprintf("%s_%d", name, round)
		if _, err := psql(ctx, p.URL("postgres"), "-c", `create database "`+target+`"`); err != nil {
			return err
		}
		if _, err := s.Do("POST", "/projects", strings.NewReader(`{"name": "`+target+`"}`)); err != nil {
			return err
		}

		direct, err := psql(ctx, p.URL(target), "--single-transaction", "-f", path)
		if err != nil {
			return err
		}

		imported, err := program(ctx, append(os.Environ(), "SOCLE_URL="+s.URL, "SOCLE_TOKEN="+s.Token), *binary,
			"db", "import", path, "--project", target)
		if err != nil {
			return err
		}

		for i, took := range []time.Duration{direct, imported} {
			if round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}

	fmt.Printf("%-6s %4d MB: psql %s, socle db import %s: %.2f of its speed\n", name, info.Size()/1e6,
		best[0].Round(time.Millisecond), best[1].Round(time.Millisecond), best[0].Seconds()/best[1].Seconds())

	return nil
}

func psql(ctx context.Context, url string, args ...string) (time.Duration, error) {
	return program(ctx, os.Environ(), "psql", append([]string{url, "-X", "-q", "-v", "ON_ERROR_STOP=1"}, args...)...)
}

// program runs a program and returns how long it took.
func program(ctx context.Context, environ []string, name string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = environ

	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", name, err, out)
	}

	return time.Since(start), nil
}

func writeCopy(w io.Writer) {
	fmt.Fprint(w, "create table public.t (id int, name text, price numeric, at timestamp, note text);\n"+
		"copy public.t (id, name, price, at, note) from stdin;\n")
	for i := range *rows {
		fmt.Fprintf(w, "%d\tname, %d\t%d.%02d\t2026-01-%02d 10:%02d:00\tlorem ipsum\\tdolor sit amet %d\n", i, i, i%1000, i%100,
			1+i%28, i%60, i)
	}
	fmt.Fprint(w, "\\.\nalter table public.t add primary key (id);\n")
}

func writeInserts(w io.Writer) {
	fmt.Fprint(w, "create table public.t (id int primary key, name text, at timestamp);\n")
	for i := range *statements {
		fmt.Fprintf(w, "INSERT INTO public.t (id, name, at) VALUES (%d, 'name; %d', '2026-01-01 10:00:00');\n", i, i)
	}
}
