package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func (b *bucket) open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error) {
	var size int64
	var tag *string
	if err := b.ask(ctx, 0, func(ctx context.Context) error {
		head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: b.name, Key: b.key(key)})
		if err == nil {
			size, tag = aws.ToInt64(head.ContentLength), head.ETag
		}

		return err
	}); err != nil {
		return nil, 0, err
	}

	// a download may last longer than the request's time for opening it
	reading, end := context.WithCancel(context.WithoutCancel(ctx))
	get := func(at int64) (io.ReadCloser, *time.Timer, error) {
		// The time is that for the answer, and then that between two reads of a body; see [ranged.Read].
		getting, cancel := context.WithCancel(reading)
		clock := time.AfterFunc(b.timeout, cancel)

		got, err := b.client.GetObject(getting, &s3.GetObjectInput{
			Bucket:  b.name,
			Key:     b.key(key),
			IfMatch: tag,
			Range:   aws.String(fmt.Sprintf("bytes=%d-", at)),
		})

		clock.Stop()

		if err != nil {
			cancel()
			return nil, nil, failed("read", key, s3Fault(err))
		}

		body := &cancelling{got.Body, cancel}

		// whoever stands between may not know ranges
		if from := aws.ToString(got.ContentRange); at > 0 && !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", at)) {
			return nil, nil, errors.Join(
				unavailable(fmt.Errorf("read %s from byte %d: the service answers with %q", key, at, from)),
				body.Close(),
			)
		}

		return body, clock, nil
	}

	return &ranged{size: size, patience: b.timeout, get: get, end: end}, size, nil
}

// ranged reads an object with a request for each place that it is read from. A body that breaks off is taken up where it did.
type ranged struct {
	size     int64
	at       int64 // where the next Read begins
	patience time.Duration
	get      func(at int64) (io.ReadCloser, *time.Timer, error)
	end      func() // ends all requests, those to come too

	body  io.ReadCloser // from at on; nil: none
	clock *time.Timer   // ends the body
	fresh bool          // nothing was read of the body yet
}

// Read reads on. A client may take its time between two reads; the service may not within one.
func (r *ranged) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}

	for {
		if r.body == nil {
			var err error
			if r.body, r.clock, err = r.get(r.at); err != nil {
				return 0, err
			}

			r.fresh = true
		}

		r.clock.Reset(r.patience)
		n, err := r.body.Read(p[:min(int64(len(p)), r.size-r.at)])
		r.clock.Stop()
		r.at += int64(n)

		if n > 0 {
			r.fresh = false

			if err != nil {
				r.drop()
			}

			return n, nil
		}

		if err == nil {
			continue
		}

		again := !r.fresh
		r.drop()

		if !again {
			return 0, unavailable(fmt.Errorf("read a blob at byte %d of %d: %w", r.at, r.size, err))
		}
	}
}

// Seek moves the place of the next Read.
func (r *ranged) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}

	if offset < 0 {
		return r.at, errors.New("seek to before the beginning of a blob")
	}

	if offset != r.at {
		r.drop()
	}

	r.at = offset
	return r.at, nil
}

// Close ends the reading, a Read under way too, as that of a file does: whoever answers with several ranges reads in a goroutine of its own.
func (r *ranged) Close() error {
	r.end()
	return nil
}

func (r *ranged) drop() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

// cancelling is a body whose request ends with it.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body.
func (c *cancelling) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}
