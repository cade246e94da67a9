// Command failover runs two servers on a cluster of three PostgreSQL nodes and kills parts of it
// under writers. Patroni, etcd and HAProxy are Debian's; all of it runs on this machine. It fails
// if a write that was acknowledged is lost or is there twice, if a node does not come back without
// help, or if an error is not one that clients may repeat.
//
//	go run ./bench/failover [-events kill,stall,freeze,switchover,restart] [-async] [-seconds 10]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	events  = flag.String("events", "kill,stall,freeze,switchover,etcd,restart", "what happens, in this order")
	async   = flag.Bool("async", false, "replicate asynchronously: a failover may lose writes")
	seconds = flag.Int("seconds", 10, "seconds of writes before each event, and after it")
	writers = flag.Int("writers", 2, "writers of each kind")
	keep    = flag.Bool("keep", false, "keep the folder with all logs")
)

func main() {
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		stop()
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := socle.TempDir("", "socle-failover-")
	if err != nil {
		return err
	}
	defer func() {
		if *keep || err != nil {
			fmt.Println("logs:", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()

	c, err := startCluster(ctx, dir)
	if err != nil {
		return err
	}
	defer c.stop()

	i, err := startInstall(ctx, c, dir)
	if err != nil {
		return err
	}
	defer i.stop()

	load := startLoad(ctx, i)
	results, err := i.runEvents(ctx, c, load)
	load.stop()
	if err != nil {
		return err
	}

	lost, doubled, err := load.verify(ctx)
	if err != nil {
		return err
	}

	printResults(results, load, lost, doubled)

	return errors.Join(append(judge(lost, doubled, load), judgeTimes(results)...)...)
}

// result is what an event has done.
type result struct {
	event    string
	leader   time.Duration // until another node led; 0: the leader stayed
	first    time.Duration // from then to the first successful write
	sessions time.Duration // from then until the servers had their sessions on it
	writes   time.Duration // without a successful write
	written  int           // successful writes
	failed   int           // failed ones
	rejoins  time.Duration // until all nodes followed the new leader
	backup   time.Duration // from the start of a backup that met the event to its end
}

func (i *install) runEvents(ctx context.Context, c *cluster, load *load) ([]result, error) {
	var all []result
	for name := range strings.SplitSeq(*events, ",") {
		event, ok := map[string]func(context.Context, *cluster) (time.Duration, error){
			"kill": i.kill, "stall": i.stall, "freeze": i.freeze, "switchover": i.switchOver, "etcd": i.loseEtcd,
			"restart": i.restart,
		}[name]
		if !ok {
			return nil, fmt.Errorf("there is no event %q", name)
		}

		if err := sleep(ctx, time.Duration(*seconds)*time.Second); err != nil {
			return nil, err
		}

		fmt.Printf("%s …\n", name)
		load.resetGap()
		writtenBefore, failedBefore := load.counts()
		backup, err := i.startBackup(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		i.ledAt, i.sessions = time.Time{}, nil
		start := time.Now()
		leader, err := event(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := load.awaitWrite(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.awaitHealthy(ctx, len(c.nodes)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		r := result{event: name, leader: leader, rejoins: time.Since(start)}
		if r.backup, err = i.awaitBackup(ctx, backup); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if i.sessions != nil {
			s := <-i.sessions
			if s.err != nil {
				return nil, fmt.Errorf("%s: %w", name, s.err)
			}
			r.sessions, r.first = s.after, load.firstAfter(i.ledAt)
		}

		if err := sleep(ctx, time.Duration(*seconds)*time.Second); err != nil {
			return nil, err
		}
		r.writes = load.longestGap()
		written, failed := load.counts()
		r.written, r.failed = written-writtenBefore, failed-failedBefore
		all = append(all, r)
	}

	return all, nil
}

// kill kills the leader's PostgreSQL and its Patroni, and starts Patroni again when another node
// leads.
func (i *install) kill(ctx context.Context, c *cluster) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}

	start := time.Now()
	leader.kill()
	if err := i.awaitOther(ctx, c, leader); err != nil {
		return 0, err
	}

	took := time.Since(start)
	return took, leader.start(c)
}

// stall stops the leader's replication for two seconds, and kills it.
func (i *install) stall(ctx context.Context, c *cluster) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}

	if err := leader.stopReplication(); err != nil {
		return 0, err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return 0, err
	}

	return i.kill(ctx, c)
}

// freeze stops all processes of the leader, as a machine without power for its processor, and lets
// them go on when another node leads.
func (i *install) freeze(ctx context.Context, c *cluster) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}

	start := time.Now()
	leader.signal(syscall.SIGSTOP)
	err = i.awaitOther(ctx, c, leader)
	took := time.Since(start)
	if err == nil {
		err = sleep(ctx, 10*time.Second) // both believe to lead
	}
	leader.signal(syscall.SIGCONT)

	return took, err
}

// switchOver asks Patroni for another leader.
func (i *install) switchOver(ctx context.Context, c *cluster) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}

	start := time.Now()
	if err := c.patronictl(ctx, "switchover", "--force", "--master", leader.name); err != nil {
		return 0, err
	}

	err = i.awaitOther(ctx, c, leader)
	return time.Since(start), err
}

// loseEtcd kills the etcd of the leader's node, and starts it again when Patroni has gone without
// it for longer than its lease.
func (i *install) loseEtcd(ctx context.Context, c *cluster) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}

	leader.stopEtcd()
	if err := sleep(ctx, 25*time.Second); err != nil {
		return 0, err
	}

	return 0, c.startEtcd(leader)
}

// restart restarts one server after the other.
func (i *install) restart(ctx context.Context, _ *cluster) (time.Duration, error) {
	for n := range i.servers {
		i.servers[n].Stop()

		var err error
		if i.servers[n], err = i.serve(ctx, n); err != nil {
			return 0, err
		}
		if err := sleep(ctx, 3*time.Second); err != nil { // the balancer finds it
			return 0, err
		}
	}

	return 0, nil
}

func printResults(results []result, load *load, lost, doubled map[string]int) {
	fmt.Printf("\n%-12s %12s %12s %12s %16s %16s %12s %8s %8s\n", "event", "new leader", "first write", "sessions",
		"without writes", "all nodes back", "backup", "writes", "failed")
	for _, r := range results {
		round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
		fmt.Printf("%-12s %12s %12s %12s %16s %16s %12s %8d %8d\n", r.event, round(r.leader), round(r.first),
			round(r.sessions), round(r.writes), round(r.rejoins), round(r.backup), r.written, r.failed)
	}

	fmt.Printf("\n%-18s %12s %6s %8s\n", "writes", "acknowledged", "lost", "doubled")
	for _, k := range load.kinds {
		fmt.Printf("%-18s %12d %6d %8d\n", k.name, k.acknowledgedCount(), lost[k.name], doubled[k.name])
	}

	fmt.Printf("\nerrors: %v\n", load.errors())
}

// judge returns what is wrong.
func judge(lost, doubled map[string]int, load *load) []error {
	var all []error
	for _, k := range load.kinds {
		if n := lost[k.name]; n > 0 && !*async {
			all = append(all, fmt.Errorf("%d acknowledged %s are lost", n, k.name))
		}
		if n := doubled[k.name]; n > 0 {
			all = append(all, fmt.Errorf("%d %s are there twice", n, k.name))
		}
	}
	for _, e := range load.unexpected() {
		all = append(all, errors.New("unexpected error: "+e))
	}

	return all
}

// judgeTimes returns the targets that events have missed. Without another leader, no write fails.
func judgeTimes(results []result) []error {
	var all []error
	for _, r := range results {
		if r.leader == 0 && r.failed > 0 {
			all = append(all, fmt.Errorf("%s: %d of %d writes failed, want none: the leader stayed", r.event, r.failed,
				r.written+r.failed))
		}
		if r.first > writeTarget {
			all = append(all, fmt.Errorf("%s: the first write succeeded after %v, want %v",
				r.event, r.first, writeTarget))
		}
		if r.sessions > sessionsTarget {
			all = append(all, fmt.Errorf("%s: the servers had their sessions after %v, want %v",
				r.event, r.sessions, sessionsTarget))
		}
	}

	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
