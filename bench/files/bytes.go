package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const mebi = 1 << 20

// transfer is a file of one size, and how often and by how many it is carried in one round.
type transfer struct{ size, times, atOnce int }

var transfers = []transfer{{mebi, 100, 1}, {mebi, 200, 8}, {100 * mebi, 4, 1}, {100 * mebi, 8, 4}}

// bytes measures uploads and downloads, in turn by Socle and by nginx.
func (b *bench) transfers(ctx context.Context) error {
	other, stop, err := b.startNginx(ctx)
	if err != nil {
		return err
	}
	defer stop()
	public := fmt.Sprintf("/files/%s/%s/", b.project, b.container)
	fmt.Printf("%-42s %10s %10s %8s %8s %12s\n", "MiB/s, median of the rounds", "Socle", "nginx", "ratio", "best", "peak of heap")
	for _, t := range transfers {
		content := func() io.Reader { return io.LimitReader(&endless{}, int64(t.size)) }
		name := fmt.Sprintf("%d.bin", t.size/mebi)
		made, err := b.put(b.url+public+name, content(), t.size)
		if err != nil {
			return err
		}
		if _, err := b.put(other+"/"+name, content(), t.size); err != nil {
			return err
		}
		private := fmt.Sprintf("/containers/%s/files/%s/download", b.container, made)
		var n atomic.Int64
		upload := func(to string) func() error {
			return func() error {
				_, err := b.put(fmt.Sprintf("%sup-%d", to, n.Add(1)%8), content(), t.size)
				return err
			}
		}
		for _, way := range []struct {
			name         string
			ours, theirs func() error
		}{
			{"download", func() error { return b.get(b.url+private, t.size) }, func() error { return b.get(other+"/"+name, t.size) }},
			{"download, public", func() error { return b.get(b.url+public+name, t.size) }, func() error { return b.get(other+"/"+name, t.size) }},
			{"upload", upload(b.url + public), upload(other + "/")},
		} {
			var mine, theirs []float64
			var ratios []float64
			var peak uint64
			for range *repeats {
				var a, o float64
				if a, err = t.rate(way.ours, &peak); err == nil {
					o, err = t.rate(way.theirs, nil)
				}
				if err != nil {
					return err
				}
				mine, theirs, ratios = append(mine, a), append(theirs, o), append(ratios, a/o)
			}
			m, _ := middle(mine)
			o, _ := middle(theirs)
			ratio, best := middle(ratios)
			fmt.Printf("%-42s %10.0f %10.0f %8.2f %8.2f %8d MiB\n", fmt.Sprintf("%s, %d MiB, %d at once", way.name, t.size/mebi, t.atOnce), m, o, ratio, best, peak/mebi)
		}
	}
	return nil
}

// rate has f run t.times times by t.atOnce at once, and returns MiB per second. peak grows to the heap's size while it runs.
func (t transfer) rate(f func() error, peak *uint64) (float64, error) {
	watched := make(chan struct{})
	var watch, wg sync.WaitGroup
	if peak != nil {
		watch.Go(func() {
			heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
			for {
				metrics.Read(heap)
				*peak = max(*peak, heap[0].Value.Uint64())
				select {
				case <-watched:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	began := time.Now()
	errs := make([]error, t.atOnce)
	for i := range t.atOnce {
		wg.Go(func() {
			for range t.times / t.atOnce {
				if errs[i] = f(); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	close(watched)
	watch.Wait()
	return float64(t.times) * float64(t.size) / mebi / took.Seconds(), errors.Join(errs...)
}

func (b *bench) get(url string, size int) error {
	q, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+b.token)
	q.Header.Set("X-Project", b.project)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(discard{}, res.Body)
	if err == nil && (n != int64(size) || res.StatusCode != 200) {
		err = fmt.Errorf("GET %s: %s, %d bytes", url, res.Status, n)
	}
	return err
}

// block is what all content is made of.
var block = func() []byte {
	b := make([]byte, mebi)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}()

// endless repeats the block.
type endless struct{ at int }

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, block[e.at:])
	e.at = (e.at + n) % len(block)
	return n, nil
}

// discard takes bytes in large pieces, so that the client is not what is measured.
type discard struct{}

var pieces = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (discard) ReadFrom(r io.Reader) (n int64, err error) {
	piece := pieces.Get().(*[]byte)
	defer pieces.Put(piece)
	for {
		got, err := r.Read(*piece)
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// put sends bytes, and returns the UUID of the file if it was made by Socle.
func (b *bench) put(url string, content io.Reader, size int) (string, error) {
	q, err := http.NewRequest("PUT", url, content)
	if err != nil {
		return "", err
	}
	q.ContentLength = int64(size)
	q.Header.Set("Authorization", "Bearer "+b.token)
	q.Header.Set("Content-Type", "application/octet-stream")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 204 {
		return "", fmt.Errorf("PUT %s: %s %s %v", url, res.Status, text, err)
	}
	return fileOf(text), nil
}

// startNginx has nginx serve and receive the files of a folder beside Socle's.
func (b *bench) startNginx(ctx context.Context) (url string, stop func(), err error) {
	program, err := exec.LookPath(*nginx)
	if err != nil {
		return "", nil, fmt.Errorf("nginx is what transfers are measured beside: %w", err)
	}
	folder := filepath.Join(b.dir, "nginx")
	if err := errors.Join(os.MkdirAll(filepath.Join(folder, "files"), 0o777), os.MkdirAll(filepath.Join(folder, "temp"), 0o777)); err != nil {
		return "", nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	owner := ""
	if os.Geteuid() == 0 {
		owner = "user root;"
	}
	settings := fmt.Sprintf(`
%s
daemon off;
worker_processes auto;
pid %[2]s/pid;
error_log %[2]s/error.log;
events { worker_connections 1024; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000000;
	client_max_body_size 0;
	client_body_temp_path %[2]s/temp;
	proxy_temp_path %[2]s/temp/proxy;
	fastcgi_temp_path %[2]s/temp/fastcgi;
	uwsgi_temp_path %[2]s/temp/uwsgi;
	scgi_temp_path %[2]s/temp/scgi;
	server {
		listen %[3]s;
		root %[2]s/files;
		location / { dav_methods PUT; }
	}
}
`, owner, folder, address)
	if err := os.WriteFile(filepath.Join(folder, "nginx.conf"), []byte(settings), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-c", filepath.Join(folder, "nginx.conf"), "-p", folder, "-e", filepath.Join(folder, "error.log"))
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Cancel(); _ = cmd.Wait() }
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			return "http://" + address, stop, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("nginx does not listen")
}

// middle returns the middle of what was measured, and the largest.
func middle(all []float64) (middle, most float64) {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

func least(all []float64) float64 { return slices.Min(all) }
