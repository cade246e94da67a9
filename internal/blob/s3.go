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
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/trace"
)

// maxAttempts is the maximum number of attempts per request on transient errors.
const maxAttempts = 3

// minUploadRate is the minimum upload rate in bytes per second, which determines a request's
// timeout.
const minUploadRate = 256 << 10

// deleteBatch is the number of blobs per delete request, S3's maximum.
const deleteBatch = 1000

// probeKey is the key that check writes to. No blob's key begins with a dot.
const probeKey = ".check"

// bucket stores blobs in an S3 bucket. Every request has a timeout.
type bucket struct {
	client  *s3.Client
	name    *string
	prefix  string // "" or ending in a slash
	timeout time.Duration
	address string // service address for messages
}

func openBucket(c config.S3) (*bucket, error) {
	credentials, err := newCredentials(c)
	if err != nil {
		return nil, err
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	transport.DisableCompression = true // blobs are returned unchanged

	o := s3.Options{
		Region: c.Region, UsePathStyle: c.PathStyle,
		Credentials: credentials,
		HTTPClient: &http.Client{
			Transport: otelhttp.NewTransport(transport, otelhttp.WithFilter(isTraced),
				otelhttp.WithPropagators(propagation.TraceContext{}),
				otelhttp.WithMeterProvider(noop.MeterProvider{}), otelhttp.WithSpanNameFormatter(methodOf)),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = maxAttempts, 2*time.Second
		}),
		// Other services than Amazon's do not support the newer checksums. The signature or TLS
		// protects the content.
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
		address: cmp.Or(c.Endpoint, "Amazon S3 in "+c.Region),
	}
	if b.prefix != "" {
		b.prefix += "/"
	}

	return b, nil
}

// isTraced reports whether a request to the service is within a trace.
func isTraced(r *http.Request) bool { return trace.Active(r.Context()) }

// methodOf returns a request's span name.
func methodOf(_ string, r *http.Request) string { return r.Method }

// newCredentials returns the credentials for requests: the configured keys, or the AWS default
// chain's, which are renewed before they expire.
func newCredentials(c config.S3) (aws.CredentialsProvider, error) {
	if c.AccessKey != "" {
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     string(c.AccessKey),
				SecretAccessKey: string(c.SecretKey),
				SessionToken:    string(c.SessionToken),
			}, nil
		}), nil
	}

	// reads the environment and files, without network access
	awsConfig, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithRegion(c.Region))
	if err != nil {
		return nil, fmt.Errorf("load credentials for the storage: %w", err)
	}

	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		credentials, err := awsConfig.Credentials.Retrieve(ctx)
		if err != nil {
			return credentials, &credentialsError{err}
		}

		return credentials, nil
	})), nil
}

// space returns 0: a bucket has no known limit.
func (b *bucket) space() (free, total int64, err error) { return 0, 0, nil }

// key returns a blob's object key.
func (b *bucket) key(key string) *string { return aws.String(b.prefix + key) }

// do runs a request within the timeout plus the time to send bytes.
func (b *bucket) do(ctx context.Context, bytes int, request func(context.Context) error) error {
	requestCtx, cancel := context.WithTimeout(ctx, b.timeout+time.Duration(bytes/minUploadRate)*time.Second)
	defer cancel()

	err := request(requestCtx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}

	return s3Error(err)
}

func (b *bucket) remove(ctx context.Context, key string) error {
	err := b.do(ctx, 0, func(ctx context.Context) error {
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

		err := b.do(ctx, 0, func(ctx context.Context) error {
			output, err := b.client.DeleteObjects(ctx,
				&s3.DeleteObjectsInput{Bucket: b.name, Delete: &types.Delete{Objects: batch, Quiet: aws.Bool(true)}})
			if err == nil && len(output.Errors) > 0 {
				err = fmt.Errorf("%d of %d blobs were not deleted: %s", len(output.Errors), len(batch),
					aws.ToString(output.Errors[0].Message))
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
			if err := b.do(ctx, 0, func(ctx context.Context) (err error) {
				page, err = pages.NextPage(ctx)
				return err
			}); err != nil {
				yield(Entry{}, err)
				return
			}

			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
				if validateKey(key) != nil { // a foreign object
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
	base := b.key(prefix + "/")
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
		Bucket:    b.name,
		Prefix:    base,
		Delimiter: aws.String("/"),
	})

	var names []string
	for pages.HasMorePages() {
		if err := b.do(ctx, 0, func(ctx context.Context) error {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}

			for _, p := range page.CommonPrefixes {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), *base), "/"))
			}

			return nil
		}); err != nil {
			return nil, err
		}
	}

	return names, nil
}

func (b *bucket) check(ctx context.Context) error {
	return b.diagnose(b.do(ctx, 0, func(ctx context.Context) error {
		_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: b.name,
			Key:    b.key(probeKey),
			Body:   strings.NewReader("check " + rand.Text()),
		})
		if err == nil {
			_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.name, Key: b.key(probeKey)})
		}

		return err
	}))
}

// sweep aborts multipart uploads that received no part for olderThan.
func (b *bucket) sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	swept, before := 0, time.Now().Add(-olderThan)
	pages := s3.NewListMultipartUploadsPaginator(b.client,
		&s3.ListMultipartUploadsInput{Bucket: b.name, Prefix: &b.prefix})
	for pages.HasMorePages() {
		var page *s3.ListMultipartUploadsOutput
		if err := b.do(ctx, 0, func(ctx context.Context) (err error) {
			page, err = pages.NextPage(ctx)
			return err
		}); err != nil {
			return swept, err
		}

		for _, u := range page.Uploads {
			lastPart, err := b.lastPartAt(ctx, u)
			if err == nil && lastPart.Before(before) {
				if err = b.abort(ctx, u.Key, u.UploadId); err == nil {
					swept++
				}
			}

			if err != nil && !errors.Is(err, fs.ErrNotExist) { // completed or swept concurrently
				return swept, err
			}
		}
	}

	return swept, nil
}

// lastPartAt returns when a multipart upload last received a part, or else when it started.
func (b *bucket) lastPartAt(ctx context.Context, u types.MultipartUpload) (time.Time, error) {
	last := aws.ToTime(u.Initiated)
	pages := s3.NewListPartsPaginator(b.client, &s3.ListPartsInput{Bucket: b.name, Key: u.Key, UploadId: u.UploadId})
	for pages.HasMorePages() {
		if err := b.do(ctx, 0, func(ctx context.Context) error {
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
