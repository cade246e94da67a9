package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// openDump returns the plain text of a dump in any format of a single file.
func openDump(ctx context.Context, in io.Reader, environ []string) (io.ReadCloser, error) {
	head := bufio.NewReader(in)
	start, err := head.Peek(tarHeader)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the dump: %w", err)
	}

	switch {
	case len(start) == 0:
		return nil, errors.New("the dump is empty")
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		unzipped, err := gzip.NewReader(head)
		if err != nil {
			return nil, fmt.Errorf("read the dump: %w", err)
		}
		return openDump(ctx, unzipped, environ)
	case bytes.HasPrefix(start, []byte("PGDMP")), isTar(start):
		return restoreToText(ctx, head, environ)
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return nil, errors.New("the dump is in UTF-16, as PowerShell writes it: dump with pg_dump --file")
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, _ = head.Discard(3) // already buffered
	}

	return io.NopCloser(head), nil
}

// tarHeader is the size of the header of a file in a tar archive.
const tarHeader = 512

// isTar reports whether a file begins like an archive of pg_dump in the format tar.
func isTar(start []byte) bool {
	return len(start) == tarHeader && bytes.HasPrefix(start, []byte("toc.dat\x00")) &&
		bytes.HasPrefix(start[257:], []byte("ustar"))
}

// restoreToText runs pg_restore, which turns an archive into a plain dump. The archive is in, or a
// directory named by an argument.
func restoreToText(ctx context.Context, in io.Reader, environ []string, args ...string) (io.ReadCloser, error) {
	name, err := exec.LookPath("pg_restore")
	if err != nil {
		return nil, errors.New("the dump is an archive, and pg_restore is not installed; " +
			"on Debian and Ubuntu: apt install postgresql-client")
	}

	ctx, cancel := context.WithCancel(ctx)
	r := &restored{cancel: cancel, cmd: exec.CommandContext(ctx, name, append([]string{"--file=-"}, args...)...)}
	r.cmd.Env, r.cmd.Stdin, r.cmd.Stderr = environ, in, &r.stderr
	if r.out, err = r.cmd.StdoutPipe(); err != nil {
		cancel()
		return nil, err
	}

	if err := r.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("pg_restore: %w", err)
	}

	return r, nil
}

// restored is the output of pg_restore.
type restored struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	out    io.Reader
	stderr bytes.Buffer
	ended  bool
	err    error
}

// Read fails at the end if pg_restore has failed.
func (r *restored) Read(p []byte) (int, error) {
	if r.ended {
		return 0, r.err
	}

	n, err := r.out.Read(p)
	if err == nil || !errors.Is(err, io.EOF) {
		return n, err
	}

	r.ended, r.err = true, io.EOF
	if err := r.cmd.Wait(); err != nil {
		r.err = fmt.Errorf("%w: %s", err, oneLine(strings.TrimSpace(r.stderr.String())))
	}

	return n, r.err
}

// Close ends pg_restore if it still runs.
func (r *restored) Close() error {
	r.cancel()

	if !r.ended {
		r.ended, r.err = true, io.EOF
		_ = r.cmd.Wait() // killed
	}

	return nil
}

// canceledReader is a reader that can block, such as a pipe. Its Read returns when ctx ends.
type canceledReader struct {
	ctx context.Context
	in  io.Reader
}

// Read leaves a read behind if ctx ends, which still writes to p.
func (r canceledReader) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}

	results := make(chan result, 1)
	go func() {
		n, err := r.in.Read(p)
		results <- result{n, err}
	}()

	select {
	case got := <-results:
		return got.n, got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// teeCloser reads from one and closes the other.
type teeCloser struct {
	io.Reader
	io.Closer
}

// closers closes both a dump and its file.
type closers struct {
	io.ReadCloser
	file io.Closer
}

// Close closes the dump, then its file.
func (c closers) Close() error { return errors.Join(c.ReadCloser.Close(), c.file.Close()) }
