// Command functions measures edge functions: first calls, calls of a warm one, and the memory of
// idle processes. Servers, clients and a bare handler share this process.
//
// A warm call is compared with two others in turn: that of a handler in Go behind the same route,
// which is this program in the place of Deno, and that of a handler in Go without Socle.
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
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
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
	module    = flag.String("module", "", "a bundle, whose first call is measured too")
	profile   = flag.String("profile", "", "file for a profile of the warm calls")
)

const helloCode = `Deno.serve(() => new Response("hello"));`

func main() {
	sandbox.Init()
	if os.Getpid() == 1 && len(os.Args) > 1 && os.Args[1] == "run" {
		log.Fatal(serveInSandbox())
	}
	flag.Parse()

	if err := measure(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// serveInSandbox is a function's process without Deno.
func serveInSandbox() error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // the module
		return err
	}

	listener, err := net.Listen("unix", sandbox.SocketPath)
	if err != nil {
		return err
	}

	res, err := http.Post("http://"+sandbox.ProxyAddress+"/listening", "", nil)
	if err != nil {
		return err
	}
	_ = res.Body.Close()

	return http.Serve(listener, http.HandlerFunc(hello))
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// measure starts a server whose functions are handlers in Go, and one with Deno.
func measure(ctx context.Context) error {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = *clients

	folder, err := filepath.Abs(*deno)
	if err != nil {
		return err
	}

	inGo, err := os.MkdirTemp("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(inGo)

	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(program, filepath.Join(inGo, "deno")); err != nil {
		return err
	}

	quiet := slog.New(slog.DiscardHandler)
	withGo, withDeno := []string{"SOCLE_DENO_BIN=" + inGo}, []string{"SOCLE_DENO_BIN=" + folder}
	return socle.Run(ctx, "", withGo, quiet, func(ctx context.Context, s *socle.Socle) error {
		handler, err := deploy(s, "handler", "// the handler is in this program")
		if err != nil {
			return err
		}
		if _, err := get(handler); err != nil {
			return err
		}

		settle()
		others := processes()

		return socle.Run(ctx, "", withDeno, quiet, func(_ context.Context, s *socle.Socle) error {
			return errors.Join(measureFirst(s), measureWarm(s, handler), measureMemory(others))
		})
	})
}

// deploy deploys a function that anybody may call, and returns its URL.
func deploy(s *socle.Socle, name, code string) (string, error) {
	project := "/projects/" + s.Project.String()
	body, err := json.Marshal(map[string]any{"code": code, "verify_jwt": false})
	if err != nil {
		return "", err
	}

	_, err = s.Do("PUT", project+"/edge-functions/"+name, bytes.NewReader(body))
	return s.URL + project + "/functions/v1/" + name, err
}

// measureFirst measures the first call of functions, each while blank processes wait.
func measureFirst(s *socle.Socle) error {
	codes := map[string]string{"hello": helloCode}
	if code, err := os.ReadFile(*module); *module != "" {
		if err != nil {
			return err
		}
		codes[filepath.Base(*module)] = string(code)
	}

	for name, code := range codes {
		first := make([]time.Duration, *functions)
		for i := range first {
			url, err := deploy(s, strings.TrimSuffix(name, ".js")+strconv.Itoa(i), code)
			if err != nil {
				return err
			}
			settle()
			if first[i], err = get(url); err != nil {
				return err
			}
		}

		slices.Sort(first)
		fmt.Printf("first call of %d functions (%s, %d kB): p50 %v, max %v\n", *functions, name, len(code)>>10,
			first[len(first)/2].Round(time.Millisecond/10), first[len(first)-1].Round(time.Millisecond/10))
	}

	return nil
}

// settle waits until the processes of functions are idle, those that were started meanwhile too.
func settle() {
	const rest = 300 * time.Millisecond
	for before := time.Duration(-1); before != processorTime(); time.Sleep(rest) {
		before = processorTime()
	}
}

// measureWarm measures calls of one function in rounds, beside those of a handler in Go behind the
// same route, and of one without Socle.
func measureWarm(s *socle.Socle, handler string) error {
	function, err := deploy(s, "warm", helloCode)
	if err != nil {
		return err
	}

	bare := httptest.NewServer(http.HandlerFunc(hello))
	defer bare.Close()

	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()

		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	var toHandler, toBare, medians, perCall []float64
	for range *rounds {
		before := processorTime()
		called, err := median(function)
		if err != nil {
			return err
		}
		perCall = append(perCall, float64((processorTime()-before).Microseconds())/float64(*calls))

		routed, err := median(handler)
		if err != nil {
			return err
		}
		limit, err := median(bare.URL)
		if err != nil {
			return err
		}

		medians = append(medians, float64(called.Microseconds()))
		toHandler = append(toHandler, float64(called)/float64(routed))
		toBare = append(toBare, float64(called)/float64(limit))
	}

	fmt.Printf("warm call, %d clients: p50 %.0f µs; %.2f times that of a handler in Go behind the same route, %.2f times "+
		"that of one without Socle; %.0f µs of the process's processor time\n", *clients, middle(medians), middle(toHandler),
		middle(toBare), middle(perCall))

	return nil
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// measureMemory measures the processes of functions but for others.
func measureMemory(others []string) error {
	settle()
	count, memory := idleMemory(others)
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

// idleMemory returns the number of processes but for others, and their memory together, in kB.
func idleMemory(others []string) (count int, kilobytes int64) {
	for _, folder := range processes() {
		if slices.Contains(others, folder) {
			continue
		}

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
