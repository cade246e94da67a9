// Command import measures the import of a large CSV file into a new table, and its export:
// duration, and growth of the server's memory at its peak. The server runs in this process; the
// file is generated while it is sent.
//
//	go run ./bench/import [-megabytes 1024]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var megabytes = flag.Int64("megabytes", 1024, "size of the file")

func main() {
	flag.Parse()
	if err := socle.Run(context.Background(), "", nil, slog.New(slog.DiscardHandler), run); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s *socle.Socle) error {
	file := &csvFile{left: *megabytes << 20}
	err := measure(fmt.Sprintf("import of %d MiB", *megabytes), func() (string, error) {
		r, err := socle.Send[struct{ Rows float64 }](s, "POST", "/tables/import?name=big", file, "text/csv")
		return fmt.Sprintf("%.0f rows", r.Content.Rows), err
	})
	if err != nil {
		return err
	}

	for _, format := range []string{"csv", "jsonl"} {
		err = measure("export as "+format, func() (string, error) {
			n, err := drain(s, "/tables/big/export?format="+format)
			return fmt.Sprintf("%d MiB", n>>20), err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// measure prints the duration of f and the growth of memory meanwhile.
func measure(what string, f func() (string, error)) error {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // reset the peak
		return err
	}

	before, err := resident("VmRSS")
	if err != nil {
		return err
	}

	start := time.Now()

	result, err := f()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	took := time.Since(start)
	peak, err := resident("VmHWM")
	fmt.Printf("%-20s %8s  %-16s memory %d MiB before, %d MiB more at the peak\n", what,
		took.Round(100*time.Millisecond), result, before>>20, (peak-before)>>20)

	return err
}

// resident returns a field of this process's memory statistics, in bytes.
func resident(name string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}

	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s", name)
	}

	kilobytes, err := strconv.ParseInt(string(m[1]), 10, 64)
	return kilobytes << 10, err
}

// csvFile is a CSV file generated on read.
type csvFile struct {
	n      int
	left   int64
	buffer bytes.Buffer
}

func (r *csvFile) Read(b []byte) (int, error) {
	if r.buffer.Len() == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}

		if r.n == 0 {
			r.buffer.WriteString("id,name,price,at,ok,note\n")
		}

		for range 200 {
			r.n++
			fmt.Fprintf(&r.buffer, "%d,\"name, %d\",%d.%02d,2026-01-%02d 10:%02d:00,%t,%s\n", r.n, r.n, r.n%1000,
				r.n%100, 1+r.n%28, r.n%60, r.n%2 == 0, strings.Repeat("lorem ipsum ", r.n%8))
		}

		r.left -= int64(r.buffer.Len())
	}

	return r.buffer.Read(b)
}

// drain reads a response and returns its length.
func drain(s *socle.Socle, path string) (int64, error) {
	q, err := s.Request("GET", path, nil)
	if err != nil {
		return 0, err
	}

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()

	return io.Copy(io.Discard, res.Body)
}
