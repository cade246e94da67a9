package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"socle/internal/fault"
)

const (
	// partSize is the initial size of a part in bytes. S3 accepts 10,000 parts of at least 5 MiB.
	// The size doubles every thousand parts, which suffices for the largest object of S3 and keeps
	// small uploads cheap in memory.
	partSize   = 8 << 20
	sameParts  = 1000
	firstChunk = 64 << 10

	// settleTime limits the cleanup after a failed Put, whose ctx may have ended.
	settleTime = 10 * time.Second

	// markName is the metadata that identifies the Put that stored an object.
	markName = "socle-put"
)

// upload is a Put in progress.
type upload struct {
	bucket *bucket
	key    *string
	mark   string  // unique to this Put
	id     *string // of the multipart upload; nil before it starts
	parts  []types.CompletedPart
}

// put stores a small blob in one request and a larger one as a multipart upload, which becomes
// visible when completed. The service rejects existing keys.
func (b *bucket) put(ctx context.Context, key string, in *incoming) (Object, error) {
	u := &upload{bucket: b, key: b.key(key), mark: rand.Text()}
	err := u.send(ctx, in)
	if err != nil {
		err = u.settle(ctx, err)
	}
	if err != nil {
		return Object{}, err
	}

	return in.object(), nil
}

// send stores the bytes of in.
func (u *upload) send(ctx context.Context, in io.Reader) error {
	part, last, err := readPart(in, nil, partSize)
	if err != nil {
		return err
	}

	if last {
		return u.whole(ctx, part)
	}

	if err := u.begin(ctx); err != nil {
		return err
	}

	for {
		if err := u.part(ctx, part); err != nil {
			return err
		}

		if last {
			return u.complete(ctx)
		}

		if part, last, err = readPart(in, part[:0], partSize<<(len(u.parts)/sameParts)); err != nil {
			return err
		}
	}
}

// readPart appends bytes of r to buffer until it has size bytes or r ends. The buffer grows on
// demand.
func readPart(r io.Reader, buffer []byte, size int) (part []byte, last bool, err error) {
	for len(buffer) < size {
		if len(buffer) == cap(buffer) {
			larger := make([]byte, len(buffer), min(max(2*cap(buffer), firstChunk), size))
			copy(larger, buffer)
			buffer = larger
		}

		n, err := r.Read(buffer[len(buffer):min(cap(buffer), size)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF {
			return buffer, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}

	return buffer, false, nil
}

func (u *upload) whole(ctx context.Context, content []byte) error {
	return u.bucket.ask(ctx, len(content), func(ctx context.Context) error {
		_, err := u.bucket.client.PutObject(ctx, &s3.PutObjectInput{Bucket: u.bucket.name,
			Key: u.key, IfNoneMatch: aws.String("*"),
			Body: bytes.NewReader(content), Metadata: map[string]string{markName: u.mark}})
		return err
	})
}

func (u *upload) begin(ctx context.Context) error {
	return u.bucket.ask(ctx, 0, func(ctx context.Context) error {
		begun, err := u.bucket.client.CreateMultipartUpload(ctx,
			&s3.CreateMultipartUploadInput{Bucket: u.bucket.name, Key: u.key,
				Metadata: map[string]string{markName: u.mark}})
		if err == nil {
			u.id = begun.UploadId
		}

		return err
	})
}

func (u *upload) part(ctx context.Context, content []byte) error {
	number := aws.Int32(int32(len(u.parts) + 1))
	return u.bucket.ask(ctx, len(content), func(ctx context.Context) error {
		stored, err := u.bucket.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: u.bucket.name,
			Key: u.key, UploadId: u.id,
			PartNumber: number, Body: bytes.NewReader(content)})
		if err == nil {
			u.parts = append(u.parts, types.CompletedPart{ETag: stored.ETag, PartNumber: number})
		}

		return err
	})
}

func (u *upload) complete(ctx context.Context) error {
	// Combining the parts may take as long as sending some of them.
	return u.bucket.ask(ctx, partSize, func(ctx context.Context) error {
		_, err := u.bucket.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: u.bucket.name,
			Key: u.key, UploadId: u.id,
			IfNoneMatch: aws.String("*"), MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts}})
		return err
	})
}

// settle cleans up after a failed Put: neither parts nor an object remain. It returns nil if the
// object exists and is wanted, since a response can be lost, and a retry then finds the key taken.
func (u *upload) settle(ctx context.Context, failure error) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(settleTime, 2*u.bucket.timeout))
	defer cancel()

	var aborted error
	if u.id != nil {
		if aborted = u.bucket.abort(after, u.key, u.id); errors.Is(aborted, fs.ErrNotExist) {
			aborted = nil
		}
	}

	if !sent(failure) {
		return errors.Join(failure, aborted)
	}

	mine, err := u.stored(after)
	if err != nil || !mine {
		return errors.Join(notFound(failure), aborted, err)
	}
	if ctx.Err() == nil {
		return nil
	}

	return errors.Join(failure, u.bucket.remove(after, (*u.key)[len(u.bucket.prefix):]))
}

// sent reports whether the object may exist despite the failure. It does not if the content failed.
func sent(failure error) bool {
	return fault.Is(failure, fault.Unavailable) || fault.Is(failure, fault.Conflict) ||
		errors.Is(failure, fs.ErrNotExist) || errors.Is(failure, context.Canceled) ||
		errors.Is(failure, context.DeadlineExceeded)
}

// notFound turns a missing bucket or upload into Unavailable; NotFound is reserved for blobs.
func notFound(failure error) error {
	if errors.Is(failure, fs.ErrNotExist) {
		return unavailable(failure)
	}
	return failure
}

// stored reports whether this Put stored the object under the key.
func (u *upload) stored(ctx context.Context) (bool, error) {
	var mark string
	err := u.bucket.ask(ctx, 0, func(ctx context.Context) error {
		head, err := u.bucket.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: u.bucket.name, Key: u.key})
		if err == nil {
			mark = head.Metadata[markName]
		}

		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}

	return mark == u.mark, err
}

// abort aborts a multipart upload and deletes its parts.
func (b *bucket) abort(ctx context.Context, key, id *string) error {
	return b.ask(ctx, 0, func(ctx context.Context) error {
		_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket:   b.name,
			Key:      key,
			UploadId: id,
		})
		return err
	})
}
