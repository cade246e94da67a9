package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sampleInterval = 50 * time.Millisecond
	requestTimeout = 10 * time.Second // timeout of a bystander's request
	tick           = 10 * time.Millisecond
)

// bystander reads rows, writes rows and lists tables of another project ten times per second, and
// polls /readyz.
type bystander struct {
	server *server
	account
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu              sync.Mutex
	took            []time.Duration
	total, failed   int
	ready, notReady int
}

func newBystander(s *server, a account) *bystander { return &bystander{server: s, account: a} }

func (b *bystander) start(ctx context.Context) {
	ctx, b.cancel = context.WithCancel(ctx)
	rows := "/projects/" + b.project + "/rest/v1/items"
	for i, ask := range []func(context.Context) (int, error){
		func(ctx context.Context) (int, error) {
			return b.ask(ctx, "GET", rows+"?limit=20&order=id", "")
		},
		func(ctx context.Context) (int, error) { return b.ask(ctx, "POST", rows, `{"name": "y"}`) },
		func(ctx context.Context) (int, error) { return b.ask(ctx, "GET", "/tables", "") },
	} {
		b.repeat(ctx, time.Duration(200+50*i)*time.Millisecond, func() {
			began := time.Now()

			bounded, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()

			status, err := ask(bounded)

			if ctx.Err() != nil {
				return
			}

			b.mu.Lock()
			defer b.mu.Unlock()

			b.took = append(b.took, time.Since(began))
			b.total++

			if err != nil || status >= 400 {
				b.failed++
			}
		})
	}

	b.repeat(ctx, 500*time.Millisecond, func() {
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()

		status, err := b.ask(bounded, "GET", "/readyz?full=1", "")

		if ctx.Err() != nil {
			return
		}

		b.mu.Lock()
		defer b.mu.Unlock()

		if b.ready++; err != nil || status != http.StatusOK {
			b.notReady++
		}
	})
}

func (b *bystander) ask(ctx context.Context, method, path, body string) (int, error) {
	status, _, err := b.server.send(ctx, method, path, b.account, []byte(body), "application/json")
	return status, err
}

// repeat calls f at an interval, each time in a new goroutine, so that a slow response does not
// delay other requests.
func (b *bystander) repeat(ctx context.Context, every time.Duration, f func()) {
	b.wg.Go(func() {
		clock := time.NewTicker(every + rand.N(tick))
		defer clock.Stop()

		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
				b.wg.Go(f)
			}
		}
	})
}

func (b *bystander) stop() {
	b.cancel()
	b.wg.Wait()
}

func (b *bystander) percentile(p int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	if len(b.took) == 0 {
		return 0
	}

	slices.Sort(b.took)
	return b.took[(len(b.took)-1)*p/100]
}

func (b *bystander) readiness() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.notReady == 0 {
		return "ready"
	}

	return fmt.Sprintf("not %d/%d", b.notReady, b.ready)
}

// memoryWatch records the peak memory of Socle and PostgreSQL together.
type memoryWatch struct {
	server          *server
	socle, postgres int64
	cancel          context.CancelFunc
	done            chan struct{}
}

func newWatch(s *server) *memoryWatch { return &memoryWatch{server: s, done: make(chan struct{})} }

func (w *memoryWatch) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.done)

		clock := time.NewTicker(sampleInterval)
		defer clock.Stop()

		for {
			w.socle = max(w.socle, w.server.rss())
			sum := int64(0)
			for _, pid := range w.server.postgres() {
				sum += memoryOf(pid, "RssAnon:")
			}

			w.postgres = max(w.postgres, sum)

			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			}
		}
	}()
}

func (w *memoryWatch) stop() {
	w.cancel()
	<-w.done
}

// rss returns the resident memory of Socle, in bytes.
func (s *server) rss() int64 { return memoryOf(s.process.PID(), "VmRSS:") }

func memoryOf(pid int, what string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), what)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}

	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}

// postgres returns the processes of the server's PostgreSQL.
func (s *server) postgres() []int {
	names, _ := filepath.Glob(filepath.Join(s.data, "*", "*", "postmaster.pid"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(first); err == nil {
			return processTree(pid)
		}
	}

	return nil
}

// processTree returns a process and its children.
func processTree(parent int) []int {
	all := []int{parent}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name) // the process can have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			all = append(all, pid)
		}
	}

	return all
}

// cpu returns the processor time of Socle, its ended children, and PostgreSQL with its ended
// backends.
func (s *server) cpu() (sum time.Duration) {
	sum = ticks(s.process.PID(), 11, 15)
	for i, pid := range s.postgres() {
		last := 13
		if i == 0 { // ended backends are children of the postmaster
			last = 15
		}

		sum += ticks(pid, 11, last)
	}

	return sum
}

// ticks sums fields after the name in a process's stat file, in hundredths of a second.
func ticks(pid, from, to int) (sum time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < to {
		return 0
	}

	for _, field := range fields[from:to] {
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += time.Duration(n) * 10 * time.Millisecond
	}

	return sum
}
