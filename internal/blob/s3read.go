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

	// A download may outlast the request that opened it.
	reading, end := context.WithCancel(context.WithoutCancel(ctx))
	get := func(at int64) (io.ReadCloser, *time.Timer, error) {
		// The timeout applies to the response, and then to each read of the body; see
		// [ranged.Read].
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

		// A proxy may ignore ranges.
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

// ranged reads an object with a request per position. It resumes an interrupted body at its offset.
type ranged struct {
	size     int64
	at       int64 // offset of the next Read
	patience time.Duration
	get      func(at int64) (io.ReadCloser, *time.Timer, error)
	end      func() // cancels all requests, including future ones

	body  io.ReadCloser // starts at offset at; nil: no request
	clock *time.Timer   // cancels the request of body
	fresh bool          // nothing was read of body yet
}

// Read implements io.Reader. The timeout covers each read from the service, not the pauses of the
// client between two reads.
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

// Seek implements io.Seeker.
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

// Close cancels the current request, also during a Read of another goroutine, as closing a file
// does: multipart ranges are read in a goroutine of their own.
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

// cancelling is a body that cancels its request when closed.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelling) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}
