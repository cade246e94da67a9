package server_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// exchange sends a presigned request with further headers and returns the response as sent.
func (p *s3Project) exchange(method, presigned, header string) string {
	p.t.Helper()

	at, err := url.Parse(presigned)
	must(p.t, at, err)
	conn, err := net.Dial("tcp", at.Host)
	must(p.t, conn, err)
	defer conn.Close()

	_, err = io.WriteString(conn, method+" "+at.RequestURI()+" HTTP/1.1\r\nHost: "+at.Host+
		"\r\nConnection: close\r\n"+header+"\r\n")
	must(p.t, 0, err)
	text, err := io.ReadAll(conn)

	return string(must(p.t, text, err))
}

// TestS3Wire checks the spelling of headers and 100 Continue before an empty body, both of which
// Amazon's client for Python depends on.
func TestS3Wire(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	bucket, key := aws.String("files"), aws.String("a")
	_, err := p.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: bucket})
	must(t, 0, err)
	p.put("a", "one")

	urls := s3.NewPresignClient(p.client, s3.WithPresignExpires(time.Minute))
	get, err := urls.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key})
	must(t, get, err)
	if got := p.exchange(http.MethodGet, get.URL, ""); !strings.Contains(got, "\r\nx-amz-meta-mtime: 12.5\r\n") {
		t.Errorf("got %q, want lower-case metadata", got)
	}

	put, err := urls.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key})
	must(t, put, err)
	got := p.exchange(http.MethodPut, put.URL, "Expect: 100-continue\r\nContent-Length: 0\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n") || strings.Count(got, "HTTP/1.1 200 OK\r\n") != 1 {
		t.Errorf("got %q, want 100 and 200", got)
	}
}

// TestS3UnsupportedConditions refuses conditions that it can't check, rather than ignore them.
func TestS3UnsupportedConditions(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	ctx, bucket, key, other := t.Context(), aws.String("files"), aws.String("a"), aws.String(`"x"`)
	_, err := p.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	must(t, 0, err)
	p.put("a", "one")

	_, err = p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: other})
	wantCode(t, "delete", err, "NotImplemented")
	_, err = p.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket,
		Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key, ETag: other}}}})
	wantCode(t, "delete several", err, "NotImplemented")

	u, err := p.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	must(t, u, err)
	part, err := p.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: u.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("two")})
	must(t, part, err)
	_, err = p.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: key,
		UploadId: u.UploadId, IfMatch: other, MultipartUpload: &types.CompletedMultipartUpload{
			Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}}})
	wantCode(t, "complete", err, "NotImplemented")

	if got := p.read("a"); got != "one" {
		t.Errorf("got %q, want the object unchanged", got)
	}
}
