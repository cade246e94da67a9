// Command hostile replays attacks of a tenant or an anonymous caller against its own server with a
// private PostgreSQL, and measures their effect: duration, response, processor time and peak memory
// of Socle and PostgreSQL, and the latency of another project and of /readyz. Everything runs on
// the loopback interface, bounded in number and time, in a temporary folder that is removed at the
// end.
//
//	go run ./bench/hostile [-only xlsx,sql] [-limit 60s] [-after 10s] [-socle path]
//	go run ./bench/hostile -list
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	only     = flag.String("only", "", "attacks to run, by parts of their names, separated by commas; empty: all")
	except   = flag.String("except", "", "attacks to skip, likewise")
	list     = flag.Bool("list", false, "list the attacks")
	limit    = flag.Duration("limit", time.Minute, "timeout of an attack")
	after    = flag.Duration("after", 10*time.Second, "delay after an attack before memory is measured again")
	megs     = flag.Int("megabytes", 1000, "size of each aggregate, and of the error text by 2/5 of it")
	program  = flag.String("socle", "", "program to attack; empty: built from this tree")
	postgres = flag.String("postgres-bin", "", "folder of the PostgreSQL programs; empty: search for it")
)

func main() {
	flag.Parse()

	if *list {
		for _, a := range attacks {
			fmt.Printf("%-24s %s\n", a.name, a.what)
		}
		return
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := socle.TempDir("", "socle-hostile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	s, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()

	attacker, err := s.newAccount("attacker")
	if err != nil {
		return err
	}

	bystander, err := s.newAccount("bystander")
	if err != nil {
		return err
	}

	fmt.Printf("%-24s %8s  %-34s %7s %9s %9s %11s %8s %8s  %-12s %9s\n", "attack", "lasted", "its author was told",
		"CPU", "socle", "postgres",
		"bystander", "p99", "worst", "/readyz", "RSS after")

	for _, a := range attacks {
		if !selected(a.name) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}

		measure(ctx, s, a, &environment{server: s, account: attacker, bystander: bystander, dir: dir})

		if !s.alive() {
			return fmt.Errorf("server ended during %s: see %s", a.name, filepath.Join(dir, "socle.log"))
		}
	}

	return nil
}

func selected(name string) bool {
	in := func(list string) bool {
		for part := range strings.SplitSeq(list, ",") {
			if part != "" && strings.Contains(name, part) {
				return true
			}
		}

		return false
	}

	return (*only == "" || in(*only)) && !in(*except)
}

// attack is one attack. run prepares and replays it until its context ends, and returns the
// responses.
type attack struct {
	name, what string
	run        func(context.Context, *environment) string
}

// environment is the environment of an attack.
type environment struct {
	*server
	account             // the attacker
	bystander  account  // the owner of another project, not to be affected
	dir        string   // for files
	startClock func()   // starts the measurement, after preparations
	notes      []string // printed with the responses
}

// measure replays an attack and prints its effect.
func measure(ctx context.Context, s *server, a attack, st *environment) {
	load := newBystander(s, st.bystander)
	memory := newWatch(s)
	clock, cpu := time.Now(), s.cpu()
	st.startClock = func() { clock, cpu = time.Now(), s.cpu() }

	timeout := *limit
	if strings.HasPrefix(a.name, "share-") { // the load itself is bounded by loadTime
		timeout += preparationTime
	}

	bounded, cancel := context.WithTimeout(ctx, timeout)
	load.start(ctx)
	memory.start(ctx)

	told := a.run(bounded, st)
	lasted, spent := time.Since(clock), s.cpu()-cpu
	cancel()
	load.stop()
	memory.stop()

	select {
	case <-time.After(*after):
	case <-ctx.Done():
	}

	told = strings.Join(append([]string{told}, st.notes...), "; ")
	fmt.Printf("%-24s %7.1fs  %-34s %6.1fs %5d MiB %5d MiB %5d/%-5d %6dms %6dms  %-12s %5d MiB\n", a.name,
		lasted.Seconds(), told, spent.Seconds(),
		memory.socle>>20, memory.postgres>>20, load.failed, load.total, load.percentile(99).Milliseconds(),
		load.percentile(100).Milliseconds(),
		load.readiness(), s.rss()>>20)
}
