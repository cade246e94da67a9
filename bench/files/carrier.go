package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// client keeps one connection per concurrent transfer open.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}

// load is a client's work: a number of files of one size, transferred by concurrent workers.
type load struct {
	Method, URL    string // %d in the URL becomes a number from 0 to 7
	Token, Project string
	Size           int
	Times, AtOnce  int
}

// loadResult is the result of a load.
type loadResult struct {
	Seconds float64
	File    string // UUID of the last file, if it is Socle's
	Error   string
}

// clientProcess is this program as a client, in a separate process.
type clientProcess struct {
	in   *json.Encoder
	out  *json.Decoder
	stop func()
}

func startClientProcess(ctx context.Context) (*clientProcess, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-what", "carry")
	cmd.Stderr = os.Stderr

	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	return &clientProcess{json.NewEncoder(in), json.NewDecoder(out), func() { _ = in.Close(); _ = cmd.Wait() }}, nil
}

func (c *clientProcess) carry(l load) (did loadResult, err error) {
	if err = c.in.Encode(l); err == nil {
		err = c.out.Decode(&did)
	}

	if err == nil && did.Error != "" {
		err = errors.New(did.Error)
	}

	return did, err
}

// serveLoads runs the loads of a carrier in its process.
func serveLoads(in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var l load
		if err := from.Decode(&l); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}

		if err := to.Encode(l.carry()); err != nil {
			return err
		}
	}
}

func (l load) carry() loadResult {
	var wg sync.WaitGroup
	var n atomic.Int64
	files, errs := make([]string, l.AtOnce), make([]error, l.AtOnce)
	began := time.Now()

	for i := range l.AtOnce {
		wg.Go(func() {
			for range l.Times / l.AtOnce {
				url := l.URL
				if strings.Contains(url, "%d") {
					url = fmt.Sprintf(url, n.Add(1)%8)
				}

				if files[i], errs[i] = l.transferOne(url); errs[i] != nil {
					return
				}
			}
		})
	}

	wg.Wait()
	did := loadResult{Seconds: time.Since(began).Seconds(), File: files[0]}
	if err := errors.Join(errs...); err != nil {
		did.Error = err.Error()
	}

	return did
}

// transferOne transfers one file, and returns its UUID if Socle created it.
func (l load) transferOne(url string) (string, error) {
	var body io.Reader
	if l.Method == http.MethodPut {
		body = io.LimitReader(&repeatedBlock{}, int64(l.Size))
	}

	q, err := http.NewRequest(l.Method, url, body)
	if err != nil {
		return "", err
	}

	if l.Token != "" {
		q.Header.Set("Authorization", "Bearer "+l.Token)
	}

	if body != nil {
		q.ContentLength = int64(l.Size)
		q.Header.Set("Content-Type", "application/octet-stream")
	} else {
		q.Header.Set("X-Project", l.Project)
	}

	res, err := client.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()

	if body != nil {
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode > 204 {
			return "", fmt.Errorf("PUT %s: %s %s %v", url, res.Status, text, err)
		}

		return fileOf(text), nil
	}

	n, err := io.Copy(discard{}, res.Body)
	if err == nil && (n != int64(l.Size) || res.StatusCode != 200) {
		err = fmt.Errorf("GET %s: %s, %d bytes", url, res.Status, n)
	}

	return "", err
}

// block is repeated to form all content.
var block = func() []byte {
	b := make([]byte, mebi)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}

	return b
}()

// repeatedBlock repeats the block.
type repeatedBlock struct{ at int }

func (e *repeatedBlock) Read(b []byte) (int, error) {
	n := copy(b, block[e.at:])
	e.at = (e.at + n) % len(block)

	return n, nil
}

// discard reads in large pieces, so that the client is not the bottleneck.
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
