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
	if err := b.do(ctx, 0, func(ctx context.Context) error {
		head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: b.name, Key: b.key(key)})
		if err == nil {
			size, tag = aws.ToInt64(head.ContentLength), head.ETag
		}

		return err
	}); err != nil {
		return nil, 0, err
	}

	// A download may outlast the request that opened it.
	readCtx, cancelRead := context.WithCancel(context.WithoutCancel(ctx))
	get := func(offset int64) (io.ReadCloser, *time.Timer, error) {
		// The timeout applies to the response, and then to each read of the body; see
		// [rangeReader.Read].
		requestCtx, cancel := context.WithCancel(readCtx)
		timer := time.AfterFunc(b.timeout, cancel)

		response, err := b.client.GetObject(requestCtx, &s3.GetObjectInput{
			Bucket:  b.name,
			Key:     b.key(key),
			IfMatch: tag,
			Range:   aws.String(fmt.Sprintf("bytes=%d-", offset)),
		})
		timer.Stop()
		if err != nil {
			cancel()
			return nil, nil, wrapError("read", key, s3Error(err))
		}

		body := &cancelOnClose{response.Body, cancel}

		// A proxy may ignore ranges.
		contentRange := aws.ToString(response.ContentRange)
		if offset > 0 && !strings.HasPrefix(contentRange, fmt.Sprintf("bytes %d-", offset)) {
			return nil, nil, errors.Join(
				unavailable(fmt.Errorf("read %s from byte %d: the service responded with range %q",
					key, offset, contentRange)),
				body.Close(),
			)
		}

		return body, timer, nil
	}

	return &rangeReader{size: size, timeout: b.timeout, get: get, cancel: cancelRead}, size, nil
}

// rangeReader reads an object with a request per position. It resumes an interrupted body at the
// current offset.
type rangeReader struct {
	size    int64
	offset  int64 // offset of the next Read
	timeout time.Duration
	get     func(offset int64) (io.ReadCloser, *time.Timer, error)
	cancel  func() // cancels all requests, including future ones

	body   io.ReadCloser // starts at offset; nil: no request
	timer  *time.Timer   // cancels the request for body
	unread bool          // nothing was read from body yet
}

// Read implements io.Reader. The timeout covers each read from the service, not the client's pauses
// between reads.
func (r *rangeReader) Read(p []byte) (int, error) {
	if r.offset >= r.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}

	for {
		if r.body == nil {
			var err error
			if r.body, r.timer, err = r.get(r.offset); err != nil {
				return 0, err
			}

			r.unread = true
		}

		r.timer.Reset(r.timeout)
		n, err := r.body.Read(p[:min(int64(len(p)), r.size-r.offset)])
		r.timer.Stop()
		r.offset += int64(n)

		if n > 0 {
			r.unread = false

			if err != nil {
				r.closeBody()
			}

			return n, nil
		}

		if err == nil {
			continue
		}

		retry := !r.unread
		r.closeBody()

		if !retry {
			return 0, unavailable(fmt.Errorf("read blob at byte %d of %d: %w", r.offset, r.size, err))
		}
	}
}

// Seek implements io.Seeker.
func (r *rangeReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}

	if offset < 0 {
		return r.offset, errors.New("seek before the beginning of a blob")
	}

	if offset != r.offset {
		r.closeBody()
	}

	r.offset = offset
	return r.offset, nil
}

// Close cancels the current request, also while another goroutine reads, as closing a file does:
// multipart ranges are read in a separate goroutine.
func (r *rangeReader) Close() error {
	r.cancel()
	return nil
}

func (r *rangeReader) closeBody() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

// cancelOnClose is a body that cancels its request when closed.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelOnClose) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}
