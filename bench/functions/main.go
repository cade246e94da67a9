// Command functions measures edge functions: calls of a warm one beside a bare handler in Go, first
// calls, and the memory of idle processes. Server, clients and the handler share this process.
//
//	go run ./bench/functions [-calls 4000] [-clients 8] [-functions 16]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/function/sandbox"
)

var (
	calls     = flag.Int("calls", 4000, "calls of a warm function in a round")
	clients   = flag.Int("clients", 8, "number of clients")
	functions = flag.Int("functions", 16, "number of functions, each with a process")
	rounds    = flag.Int("rounds", 5, "number of rounds; the median is printed")
	deno      = flag.String("deno", "bin/deno", "folder of Deno")
)

func main() {
	sandbox.Init()
	flag.Parse()

	folder, err := filepath.Abs(*deno)
	if err == nil {
		err = socle.Run(context.Background(), "", []string{"SOCLE_DENO_BIN=" + folder},
			slog.New(slog.DiscardHandler), run)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(_ context.Context, s *socle.Socle) error {
	project := "/projects/" + s.Project.String()
	body, err := json.Marshal(map[string]any{"code": `Deno.serve(() => new Response("hello"));`, "verify_jwt": false})
	if err != nil {
		return err
	}
	for i := range *functions {
		if _, err := s.Do("PUT", project+"/edge-functions/f"+strconv.Itoa(i), bytes.NewReader(body)); err != nil {
			return err
		}
	}

	url := func(i int) string { return s.URL + project + "/functions/v1/f" + strconv.Itoa(i) }
	first := make([]time.Duration, *functions)
	for i := range first {
		if first[i], err = get(url(i)); err != nil {
			return err
		}
	}
	slices.Sort(first)
	fmt.Printf("first call of %d functions: p50 %v, max %v\n", *functions,
		first[len(first)/2].Round(time.Millisecond/10), first[len(first)-1].Round(time.Millisecond/10))

	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer bare.Close()

	var ratios, perCall []float64
	for range *rounds {
		before := processorTime()
		function, err := median(url(0))
		if err != nil {
			return err
		}
		perCall = append(perCall, float64((processorTime()-before).Microseconds())/float64(*calls))

		limit, err := median(bare.URL)
		if err != nil {
			return err
		}
		ratios = append(ratios, float64(function)/float64(limit))
	}
	slices.Sort(ratios)
	slices.Sort(perCall)
	fmt.Printf("warm call: p50 %.2f times that of a bare handler, %.0f µs of Deno's processor time\n",
		ratios[len(ratios)/2], perCall[len(perCall)/2])

	count, memory := idleMemory()
	if count == 0 {
		return errors.New("no process of a function was found")
	}
	fmt.Printf("%d processes: %.1f MB each, in proportion of what they share\n", count, float64(memory)/float64(count)/1e3)

	return nil
}

// get calls a function and returns how long the answer took.
func get(url string) (time.Duration, error) {
	start := time.Now()
	res, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err == nil && string(body) != "hello" {
		err = fmt.Errorf("%s answers %d %s", url, res.StatusCode, body)
	}

	return time.Since(start), err
}

// median calls a URL by all clients and returns the median of their times.
func median(url string) (time.Duration, error) {
	times := make([]time.Duration, *calls)
	errs := make([]error, *clients)
	var next atomic.Int64
	var wg sync.WaitGroup
	for c := range *clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(*calls); i = next.Add(1) - 1 {
				var err error
				if times[i], err = get(url); err != nil {
					errs[c] = err
					return
				}
			}
		})
	}
	wg.Wait()

	slices.Sort(times)
	return times[len(times)/2], errors.Join(errs...)
}

// processes returns the folders in /proc of the processes that run functions.
func processes() []string {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	return slices.DeleteFunc(folders, func(folder string) bool {
		status, err := os.ReadFile(folder + "/status")
		parent := "PPid:\t" + strconv.Itoa(os.Getpid()) + "\n"
		name, _ := os.ReadFile(folder + "/cmdline")

		return err != nil || !bytes.Contains(status, []byte(parent)) || !bytes.HasPrefix(name, []byte("/program\x00"))
	})
}

// processorTime returns the processor time that all functions have used.
func processorTime() time.Duration {
	var ticks int64
	for _, folder := range processes() {
		stat, err := os.ReadFile(folder + "/stat")
		if err != nil {
			continue
		}

		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 12 {
			user, _ := strconv.ParseInt(fields[11], 10, 64)
			system, _ := strconv.ParseInt(fields[12], 10, 64)
			ticks += user + system
		}
	}

	return time.Duration(ticks) * time.Second / 100
}

// idleMemory returns the number of processes and their memory together, in kB.
func idleMemory() (count int, kilobytes int64) {
	for _, folder := range processes() {
		rollup, err := os.ReadFile(folder + "/smaps_rollup")
		if err != nil {
			continue
		}

		for line := range strings.Lines(string(rollup)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				size, _ := strconv.ParseInt(fields[1], 10, 64)
				count, kilobytes = count+1, kilobytes+size
			}
		}
	}

	return count, kilobytes
}
