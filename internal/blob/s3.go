package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"socle/internal/config"
	"socle/internal/fault"
)

// attempts are made of a request that failed in a way that may pass.
const attempts = 3

// slowest is the rate at which bytes must go to the service at least, in bytes a second.
const slowest = 256 << 10

// deleteBatch is how many blobs one request deletes: S3 takes no more.
const deleteBatch = 1000

// checkKey is where check writes. No blob's key begins with a dot.
const checkKey = ".check"

// bucket is a place in a service that speaks S3. Every request ends within a bounded time.
type bucket struct {
	client  *s3.Client
	name    *string
	prefix  string // "" or with a slash at its end
	timeout time.Duration
	where   string // the service is, for people
}

func openBucket(c config.S3) (*bucket, error) {
	credentials, err := credentialsOf(c)
	if err != nil {
		return nil, err
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	transport.DisableCompression = true // a blob is what it is

	o := s3.Options{
		Region: c.Region, UsePathStyle: c.PathStyle,
		Credentials: credentials,
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = attempts, 2*time.Second
		}),
		// Other services than Amazon's don't know its newer checksums. The signature covers the content, or else TLS.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}

	if c.Endpoint != "" {
		o.BaseEndpoint = &c.Endpoint
	}

	b := &bucket{
		client:  s3.New(o),
		name:    &c.Bucket,
		prefix:  c.Prefix,
		timeout: cmp.Or(c.Timeout, 30*time.Second),
		where:   cmp.Or(c.Endpoint, "Amazon S3 in "+c.Region),
	}
	if b.prefix != "" {
		b.prefix += "/"
	}

	return b, nil
}

// space is not known: a bucket has no end.
func (b *bucket) space() (free, total int64, err error) { return 0, 0, nil }

// key returns where a blob is in the bucket.
func (b *bucket) key(key string) *string { return aws.String(b.prefix + key) }

// ask makes a request, within the time for it and for sending so many bytes.
func (b *bucket) ask(ctx context.Context, bytes int, request func(context.Context) error) error {
	asking, cancel := context.WithTimeout(ctx, b.timeout+time.Duration(bytes/slowest)*time.Second)
	defer cancel()

	err := request(asking)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}

	return s3Fault(err)
}

// s3Fault gives an error of a request its kind.
func s3Fault(err error) error {
	if err == nil {
		return nil
	}

	if e, none := errors.AsType[*noCredentials](err); none {
		return unavailable(e)
	}

	answer, answered := errors.AsType[*awshttp.ResponseError](err)
	if !answered || answer.Response == nil {
		return unavailable(err)
	}

	switch status := answer.HTTPStatusCode(); {
	case status == http.StatusNotFound && !hasCode(err, "NoSuchBucket"):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return fault.New(fault.Conflict, "this is stored already").Because(err)
	case status == http.StatusBadRequest && !hasCode(err, "RequestTimeout"), status == http.StatusMethodNotAllowed,
		status == http.StatusRequestedRangeNotSatisfiable:
		return err // we have asked for something that there is not
	}

	return unavailable(err) // what it refuses for now, or until its operator lets us in
}

// hasCode reports whether S3 named an error so.
func hasCode(err error, code string) bool {
	e, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && e.ErrorCode() == code
}

func (b *bucket) remove(ctx context.Context, key string) error {
	err := b.ask(ctx, 0, func(ctx context.Context) error {
		_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.name, Key: b.key(key)})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}

func (b *bucket) removeAll(ctx context.Context, prefix string) error {
	var batch []types.ObjectIdentifier
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}

		err := b.ask(ctx, 0, func(ctx context.Context) error {
			done, err := b.client.DeleteObjects(ctx,
				&s3.DeleteObjectsInput{Bucket: b.name, Delete: &types.Delete{Objects: batch, Quiet: aws.Bool(true)}})
			if err == nil && len(done.Errors) > 0 {
				err = fmt.Errorf("%d of %d blobs were not deleted: %s", len(done.Errors), len(batch),
					aws.ToString(done.Errors[0].Message))
			}

			return err
		})

		batch = batch[:0]
		return err
	}

	for e, err := range b.list(ctx, prefix) {
		if err != nil {
			return err
		}

		if batch = append(batch, types.ObjectIdentifier{Key: b.key(e.Key)}); len(batch) == deleteBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}

	return errors.Join(flush(), b.remove(ctx, prefix))
}

func (b *bucket) list(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		pages := s3.NewListObjectsV2Paginator(b.client,
			&s3.ListObjectsV2Input{Bucket: b.name, Prefix: b.key(prefix + "/")})
		for pages.HasMorePages() {
			var page *s3.ListObjectsV2Output
			if err := b.ask(ctx, 0, func(ctx context.Context) (err error) {
				page, err = pages.NextPage(ctx)
				return err
			}); err != nil {
				yield(Entry{}, err)
				return
			}

			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
				if valid(key) != nil { // not ours
					continue
				}
				if !yield(Entry{key, aws.ToInt64(o.Size), aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

func (b *bucket) folders(ctx context.Context, prefix string) ([]string, error) {
	within := b.key(prefix + "/")
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
		Bucket:    b.name,
		Prefix:    within,
		Delimiter: aws.String("/"),
	})

	var names []string
	for pages.HasMorePages() {
		if err := b.ask(ctx, 0, func(ctx context.Context) error {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}

			for _, p := range page.CommonPrefixes {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), *within), "/"))
			}

			return nil
		}); err != nil {
			return nil, err
		}
	}

	return names, nil
}

func (b *bucket) check(ctx context.Context) error {
	return b.explained(b.ask(ctx, 0, func(ctx context.Context) error {
		_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: b.name,
			Key:    b.key(checkKey),
			Body:   strings.NewReader("check " + rand.Text()),
		})
		if err == nil {
			_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.name, Key: b.key(checkKey)})
		}

		return err
	}))
}

// sweep ends uploads in parts of which no part has arrived for so long.
func (b *bucket) sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	swept, before := 0, time.Now().Add(-olderThan)
	pages := s3.NewListMultipartUploadsPaginator(b.client,
		&s3.ListMultipartUploadsInput{Bucket: b.name, Prefix: &b.prefix})
	for pages.HasMorePages() {
		var page *s3.ListMultipartUploadsOutput
		if err := b.ask(ctx, 0, func(ctx context.Context) (err error) {
			page, err = pages.NextPage(ctx)
			return err
		}); err != nil {
			return swept, err
		}

		for _, u := range page.Uploads {
			touched, err := b.touched(ctx, u)
			if err == nil && touched.Before(before) {
				if err = b.abort(ctx, u.Key, u.UploadId); err == nil {
					swept++
				}
			}

			if err != nil && !errors.Is(err, fs.ErrNotExist) { // its Put, or another sweep, was quicker
				return swept, err
			}
		}
	}

	return swept, nil
}

// touched returns when the last part of an upload has arrived, or when it began.
func (b *bucket) touched(ctx context.Context, u types.MultipartUpload) (time.Time, error) {
	last := aws.ToTime(u.Initiated)
	pages := s3.NewListPartsPaginator(b.client, &s3.ListPartsInput{Bucket: b.name, Key: u.Key, UploadId: u.UploadId})
	for pages.HasMorePages() {
		if err := b.ask(ctx, 0, func(ctx context.Context) error {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}

			for _, p := range page.Parts {
				if at := aws.ToTime(p.LastModified); at.After(last) {
					last = at
				}
			}

			return nil
		}); err != nil {
			return last, err
		}
	}

	return last, nil
}
