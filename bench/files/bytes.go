package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const mebi = 1 << 20

// transfer is a file size, with the numbers of downloads, uploads and concurrent clients of a
// round.
type transfer struct{ size, times, uploads, atOnce int }

var transfers = []transfer{
	{mebi, 1000, 50, 1}, {mebi, 2000, 100, 8}, {100 * mebi, 4, 2, 1}, {100 * mebi, 8, 4, 4}, {1024 * mebi, 1, 1, 1},
}

// cost is the result of a round.
type cost struct {
	rate             float64 // MiB per second
	server, database float64 // milliseconds of processor time per transfer
}

// transfers measures uploads and downloads, alternating between Socle and nginx. The client is a
// separate process, so that the processor time of this process is the server's. Socle syncs
// acknowledged files to the disk; nginx does not.
func (b *bench) transfers(ctx context.Context) error {
	other, processes, stop, err := b.startNginx(ctx)
	if err != nil {
		return err
	}
	defer stop()

	c, err := startClientProcess(ctx)
	if err != nil {
		return err
	}
	defer c.stop()

	public := fmt.Sprintf("/files/%s/%s/", b.Project, b.container)
	fmt.Printf("%-42s %32s   %43s %10s\n", "medians of the rounds; ratios of each round", "MiB/s",
		"processor, ms a transfer", "peak RSS")
	fmt.Printf("%-42s %7s %7s %8s %7s   %7s %11s %7s %7s %7s %10s\n", "", "Socle", "nginx", "ratio", "best", "Socle",
		"PostgreSQL", "nginx", "ratio", "best", "of Socle")

	for _, t := range transfers {
		if !slices.Contains(strings.Split(*sizes, ","), strconv.Itoa(t.size/mebi)) {
			continue
		}

		name := fmt.Sprintf("%d.bin", t.size/mebi)
		put := load{Method: "PUT", URL: b.URL + public + name, Token: b.Token, Size: t.size, Times: 1, AtOnce: 1}
		upload, err := c.carry(put)
		if err != nil {
			return err
		}

		put.URL = other + "/" + name
		if _, err := c.carry(put); err != nil {
			return err
		}

		time.Sleep(3 * time.Second) // package blob caches no checksum of a file this young

		ways := []struct{ name, method, ours, theirs string }{
			{"download", "GET", fmt.Sprintf("%s/containers/%s/files/%s/download", b.URL, b.container, upload.File),
				other + "/" + name},
			{"download, public", "GET", b.URL + public + name, other + "/" + name},
			{"upload", "PUT", b.URL + public + "up-%d", other + "/up-%d"},
		}
		for _, way := range ways {
			title := fmt.Sprintf("%s, %d MiB, %d at once", way.name, t.size/mebi, t.atOnce)
			if !strings.HasPrefix(title, *only) {
				continue
			}

			l := load{
				Method:  way.method,
				Token:   b.Token,
				Project: b.Project.String(),
				Size:    t.size,
				Times:   t.times,
				AtOnce:  t.atOnce,
			}

			switch way.name {
			case "upload":
				l.Times = t.uploads
			case "download, public":
				l.Token = "" // anonymous
			}

			if err := b.compareTransfers(c, title, l, way.ours, way.theirs, processes); err != nil {
				return err
			}
		}
	}

	fmt.Println("Before Socle acknowledges an upload, its bytes and its row are synced to the disk; nginx leaves that to the system.")
	return nil
}

// compareTransfers runs a load against both addresses, in rounds, and prints what it cost.
func (b *bench) compareTransfers(
	c *clientProcess, title string, l load, oursURL, theirsURL string, theirProcesses func() []int,
) error {
	var ours, theirs []cost
	var peak atomic.Int64

	for i := range *repeats {
		err := alternate(i, func() error {
			// reset the peak
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
				return err
			}

			l.URL = oursURL
			one, err := b.round(c, l, []int{os.Getpid()}, b.postgresProcesses())
			ours = append(ours, one)
			peak.Store(max(peak.Load(), peakRSS()))

			return err
		}, func() error {
			l.URL = theirsURL
			one, err := b.round(c, l, theirProcesses(), nil)
			theirs = append(theirs, one)

			return err
		})
		if err != nil {
			return err
		}
	}

	printCosts(title, ours, theirs, peak.Load())
	return nil
}

// round runs a load, and measures the processor time of server and database.
func (b *bench) round(c *clientProcess, l load, server, database []int) (cost, error) {
	s, d := processorTime(server), processorTime(database)
	did, err := c.carry(l)
	each := func(t time.Duration) float64 { return t.Seconds() * 1000 / float64(l.Times) }

	return cost{
		float64(l.Times) * float64(l.Size) / mebi / did.Seconds, each(processorTime(server) - s),
		each(processorTime(database) - d),
	}, err
}

func printCosts(name string, ours, theirs []cost, peak int64) {
	of := func(all []cost, what func(cost) float64) float64 {
		var values []float64
		for _, c := range all {
			values = append(values, what(c))
		}

		m, _ := medianMax(values)
		return m
	}

	rate, server, database := func(c cost) float64 {
		return c.rate
	}, func(c cost) float64 { return c.server }, func(c cost) float64 { return c.database }

	var rates, times []float64
	for i, c := range ours {
		rates, times = append(rates, c.rate/theirs[i].rate), append(times, theirs[i].server/c.server)
	}

	ratio, best := medianMax(rates)
	cheap, cheapest := medianMax(times)
	fmt.Printf("%-42s %7.0f %7.0f %8.2f %7.2f   %7.2f %11.2f %7.2f %7.2f %7.2f %6d MiB\n", name, of(ours, rate),
		of(theirs, rate), ratio, best,
		of(ours, server), of(ours, database), of(theirs, server), cheap, cheapest, peak/mebi)
}

// startNginx starts nginx on a folder beside Socle's, for downloads and uploads.
func (b *bench) startNginx(ctx context.Context) (url string, processes func() []int, stop func(), err error) {
	program, err := exec.LookPath(*nginx)
	if err != nil {
		return "", nil, nil, fmt.Errorf("find nginx for comparison: %w", err)
	}

	folder := filepath.Join(b.Dir, "nginx")
	if err := errors.Join(os.MkdirAll(filepath.Join(folder, "files"), 0o777),
		os.MkdirAll(filepath.Join(folder, "temp"), 0o777)); err != nil {
		return "", nil, nil, err
	}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, nil, err
	}

	address := free.Addr().String()

	if err := free.Close(); err != nil {
		return "", nil, nil, err
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
		return "", nil, nil, err
	}

	cmd := exec.CommandContext(ctx, program, "-c", filepath.Join(folder, "nginx.conf"), "-p", folder, "-e",
		filepath.Join(folder, "error.log"))
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }

	if err := cmd.Start(); err != nil {
		return "", nil, nil, err
	}

	stop = func() { _ = cmd.Cancel(); _ = cmd.Wait() }
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			return "http://" + address, func() []int { return processTree(cmd.Process.Pid) }, stop, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}

	stop()
	return "", nil, nil, errors.New("timeout waiting for nginx")
}

// medianMax returns the median and the maximum of measurements.
func medianMax(all []float64) (middle, most float64) {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

func least(all []float64) float64 { return slices.Min(all) }
