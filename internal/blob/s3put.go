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
	// partSize is how many bytes one request stores. S3 takes 10,000 parts of 5 MiB or more: the size doubles
	// every thousand parts, so that it suffices for the largest object that S3 knows, and small uploads take little memory.
	partSize   = 8 << 20
	sameParts  = 1000
	firstChunk = 64 << 10

	// settleTime is for tidying up after a Put that failed, when its ctx may have ended.
	settleTime = 10 * time.Second

	// markName is the metadata that says which Put has stored an object.
	markName = "socle-put"
)

// upload is a Put under way.
type upload struct {
	bucket *bucket
	key    *string
	mark   string  // of this Put alone
	id     *string // of the upload in parts; nil: not begun
	parts  []types.CompletedPart
}

// put stores a blob in one request if it is small, and else in parts, which become visible together. That the
// key must be new is for the service to see to.
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

// send stores what is read from in.
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

// readPart reads on until there are size bytes in buffer, which grows as they come, or r is at its end.
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
	// Putting the parts together may take as long as it takes to send some of them.
	return u.bucket.ask(ctx, partSize, func(ctx context.Context) error {
		_, err := u.bucket.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: u.bucket.name,
			Key: u.key, UploadId: u.id,
			IfNoneMatch: aws.String("*"), MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts}})
		return err
	})
}

// settle ends a Put that failed, so that nothing is left of it, neither parts nor an object. It returns nil if the object is there
// after all and wanted: an answer can be lost, and the next attempt then finds the key taken.
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

// sent reports whether a failure leaves open whether the object was made: not if the content is at fault.
func sent(failure error) bool {
	return fault.Is(failure, fault.Unavailable) || fault.Is(failure, fault.Conflict) ||
		errors.Is(failure, fs.ErrNotExist) || errors.Is(failure, context.Canceled) ||
		errors.Is(failure, context.DeadlineExceeded)
}

// notFound makes a bucket or an upload that is gone our loss; NotFound is for blobs.
func notFound(failure error) error {
	if errors.Is(failure, fs.ErrNotExist) {
		return unavailable(failure)
	}
	return failure
}

// stored reports whether the object under the key is the one of this Put.
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

// abort removes the parts of an upload.
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
