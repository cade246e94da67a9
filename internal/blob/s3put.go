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

	"github.com/socle-dev/socle/internal/fault"
)

const (
	// partSize is the initial part size in bytes. S3 accepts 10,000 parts of at least 5 MiB. The
	// size doubles every thousand parts, which suffices for S3's largest object and keeps small
	// uploads cheap in memory.
	partSize      = 8 << 20
	partsPerSize  = 1000
	minPartBuffer = 64 << 10

	// cleanupTimeout limits the cleanup after a failed Put, whose ctx may have ended.
	cleanupTimeout = 10 * time.Second

	// putIDKey is the metadata key that identifies the Put that stored an object.
	putIDKey = "socle-put"
)

// upload is a Put in progress.
type upload struct {
	bucket *bucket
	key    *string
	putID  string  // unique to this Put
	id     *string // multipart upload ID; nil before it starts
	parts  []types.CompletedPart
}

// put stores a small blob in one request and a larger one as a multipart upload, which becomes
// visible when completed. The service rejects existing keys.
func (b *bucket) put(ctx context.Context, key string, in *measuredReader) (Object, error) {
	u := &upload{bucket: b, key: b.key(key), putID: rand.Text()}
	err := u.send(ctx, in)
	if err != nil {
		err = u.cleanUp(ctx, err)
	}
	if err != nil {
		return Object{}, err
	}

	return in.object(), nil
}

// send stores the bytes from in.
func (u *upload) send(ctx context.Context, in io.Reader) error {
	part, last, err := readPart(in, nil, partSize)
	if err != nil {
		return err
	}

	if last {
		return u.putObject(ctx, part)
	}

	if err := u.begin(ctx); err != nil {
		return err
	}

	for {
		if err := u.putPart(ctx, part); err != nil {
			return err
		}

		if last {
			return u.complete(ctx)
		}

		if part, last, err = readPart(in, part[:0], partSize<<(len(u.parts)/partsPerSize)); err != nil {
			return err
		}
	}
}

// readPart appends bytes from r to buffer until it has size bytes or r ends. The buffer grows on
// demand.
func readPart(r io.Reader, buffer []byte, size int) (part []byte, last bool, err error) {
	for len(buffer) < size {
		if len(buffer) == cap(buffer) {
			larger := make([]byte, len(buffer), min(max(2*cap(buffer), minPartBuffer), size))
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

func (u *upload) putObject(ctx context.Context, content []byte) error {
	return u.bucket.do(ctx, len(content), func(ctx context.Context) error {
		_, err := u.bucket.client.PutObject(ctx, &s3.PutObjectInput{Bucket: u.bucket.name,
			Key: u.key, IfNoneMatch: aws.String("*"),
			Body: bytes.NewReader(content), Metadata: map[string]string{putIDKey: u.putID}})
		return err
	})
}

func (u *upload) begin(ctx context.Context) error {
	return u.bucket.do(ctx, 0, func(ctx context.Context) error {
		output, err := u.bucket.client.CreateMultipartUpload(ctx,
			&s3.CreateMultipartUploadInput{Bucket: u.bucket.name, Key: u.key,
				Metadata: map[string]string{putIDKey: u.putID}})
		if err == nil {
			u.id = output.UploadId
		}

		return err
	})
}

func (u *upload) putPart(ctx context.Context, content []byte) error {
	number := aws.Int32(int32(len(u.parts) + 1))
	return u.bucket.do(ctx, len(content), func(ctx context.Context) error {
		output, err := u.bucket.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: u.bucket.name,
			Key: u.key, UploadId: u.id,
			PartNumber: number, Body: bytes.NewReader(content)})
		if err == nil {
			u.parts = append(u.parts, types.CompletedPart{ETag: output.ETag, PartNumber: number})
		}

		return err
	})
}

func (u *upload) complete(ctx context.Context) error {
	// Combining the parts may take as long as sending some of them.
	return u.bucket.do(ctx, partSize, func(ctx context.Context) error {
		_, err := u.bucket.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: u.bucket.name,
			Key: u.key, UploadId: u.id,
			IfNoneMatch: aws.String("*"), MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts}})
		return err
	})
}

// cleanUp cleans up after a failed Put: neither parts nor an object remain. It returns nil if the
// object exists and is wanted, since a response can be lost, and a retry then finds the key taken.
func (u *upload) cleanUp(ctx context.Context, failure error) error {
	cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(cleanupTimeout, 2*u.bucket.timeout))
	defer cancel()

	var abortErr error
	if u.id != nil {
		if abortErr = u.bucket.abort(cleanupCtx, u.key, u.id); errors.Is(abortErr, fs.ErrNotExist) {
			abortErr = nil
		}
	}

	if !mayExist(failure) {
		return errors.Join(failure, abortErr)
	}

	exists, err := u.isStored(cleanupCtx)
	if err != nil || !exists {
		return errors.Join(notFoundAsUnavailable(failure), abortErr, err)
	}
	if ctx.Err() == nil {
		return nil
	}

	return errors.Join(failure, u.bucket.remove(cleanupCtx, (*u.key)[len(u.bucket.prefix):]))
}

// mayExist reports whether the object may exist despite the failure. It does not if the content
// failed.
func mayExist(failure error) bool {
	return fault.Is(failure, fault.Unavailable) || fault.Is(failure, fault.Conflict) ||
		errors.Is(failure, fs.ErrNotExist) || errors.Is(failure, context.Canceled) ||
		errors.Is(failure, context.DeadlineExceeded)
}

// notFoundAsUnavailable turns a missing bucket or upload into Unavailable; NotFound is reserved for
// blobs.
func notFoundAsUnavailable(failure error) error {
	if errors.Is(failure, fs.ErrNotExist) {
		return unavailable(failure)
	}
	return failure
}

// isStored reports whether this Put stored the object under the key.
func (u *upload) isStored(ctx context.Context) (bool, error) {
	var putID string
	err := u.bucket.do(ctx, 0, func(ctx context.Context) error {
		head, err := u.bucket.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: u.bucket.name, Key: u.key})
		if err == nil {
			putID = head.Metadata[putIDKey]
		}

		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}

	return putID == u.putID, err
}

// abort aborts a multipart upload and deletes the parts.
func (b *bucket) abort(ctx context.Context, key, id *string) error {
	return b.do(ctx, 0, func(ctx context.Context) error {
		_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket:   b.name,
			Key:      key,
			UploadId: id,
		})
		return err
	})
}
