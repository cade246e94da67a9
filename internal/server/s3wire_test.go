package server_test

import (
	"bytes"
	"compress/gzip"
	"errors"
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
	"github.com/google/go-cmp/cmp"
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

// TestS3Headers checks which headers of an upload its object keeps, and that every download of
// encoded bytes says so, with their length.
func TestS3Headers(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	ctx, c := t.Context(), p.client
	files := p.Create("/containers", `{"name": "files", "is_public": true}`)
	bucket, key := aws.String("files"), aws.String("a.txt")

	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, "hello")
	must(t, 0, errors.Join(err, w.Close()))
	size, expires := int64(packed.Len()), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	want := map[string]string{"Content-Disposition": `attachment; filename="ä.txt"`, "Content-Encoding": "gzip",
		"Content-Language": "de", "Expires": "Wed, 02 Jan 2030 03:04:05 GMT", "Cache-Control": "max-age=60"}
	check := func(key string) {
		t.Helper()

		o, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: &key})
		must(t, o, err)
		got := map[string]string{"Content-Disposition": aws.ToString(o.ContentDisposition),
			"Content-Encoding": aws.ToString(o.ContentEncoding), "Content-Language": aws.ToString(o.ContentLanguage),
			"Expires": aws.ToString(o.ExpiresString), "Cache-Control": aws.ToString(o.CacheControl)}
		if diff := cmp.Diff(want, got); diff != "" || aws.ToInt64(o.ContentLength) != size {
			t.Errorf("%s: length %d, want %d; headers: %s", key, aws.ToInt64(o.ContentLength), size, diff)
		}
	}

	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader(packed.Bytes()),
		ContentType: aws.String("text/plain"), CacheControl: aws.String("max-age=60"), Expires: &expires,
		ContentDisposition: aws.String(want["Content-Disposition"]), ContentEncoding: aws.String("gzip"),
		ContentLanguage: aws.String("de")})
	must(t, 0, err)
	check("a.txt")

	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy.txt"),
		CopySource: aws.String("files/a.txt")})
	must(t, 0, err)
	check("copy.txt")

	u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("parts.txt"),
		CacheControl: aws.String("max-age=60"), Expires: &expires, ContentLanguage: aws.String("de"),
		ContentDisposition: aws.String(want["Content-Disposition"]), ContentEncoding: aws.String("gzip")})
	must(t, u, err)
	part, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: u.Key, UploadId: u.UploadId,
		PartNumber: aws.Int32(1), Body: bytes.NewReader(packed.Bytes())})
	must(t, part, err)
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: u.Key,
		UploadId: u.UploadId, MultipartUpload: &types.CompletedMultipartUpload{
			Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}}})
	must(t, 0, err)
	check("parts.txt")

	// The other downloads. Go's client decodes the bytes.
	for _, address := range []string{p.URL + "/projects/" + p.Project + "/storage/v1/object/public/files/a.txt",
		p.Get("/containers/"+files).Want(200).Get("url").(string) + "/a.txt"} {
		res, err := http.Get(address)
		must(t, res, err)
		text, err := io.ReadAll(res.Body)
		if got := string(must(t, text, errors.Join(err, res.Body.Close()))); got != "hello" || !res.Uncompressed ||
			res.Header.Get("Content-Language") != "de" {
			t.Errorf("%s: got %q with %v, want the text in German", address, got, res.Header)
		}
	}

	// A copy with headers of its own, and other bytes in place of the encoded ones, have none.
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy.txt"),
		CopySource: aws.String("files/a.txt"), MetadataDirective: types.MetadataDirectiveReplace,
		ContentLanguage: aws.String("en")})
	must(t, 0, err)
	o, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("copy.txt")})
	if must(t, o, err); aws.ToString(o.ContentLanguage) != "en" || o.ContentEncoding != nil {
		t.Errorf("got the headers %v %v, want those of the copy", o.ContentLanguage, o.ContentEncoding)
	}

	p.Send("PUT", "/files/"+p.Project+"/"+files+"/a.txt", "plain", "Content-Type: text/plain").Want(200)
	o, err = c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if must(t, o, err); o.ContentEncoding != nil || aws.ToInt64(o.ContentLength) != 5 {
		t.Errorf("got the encoding %v of %d bytes, want none of 5", aws.ToString(o.ContentEncoding),
			aws.ToInt64(o.ContentLength))
	}

	// Bytes that no text has are replaced.
	put, err := s3.NewPresignClient(c).PresignPutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key})
	must(t, put, err)
	got := p.exchange(http.MethodPut, put.URL, "Cache-Control: a\xff\r\nContent-Encoding: ,\r\nContent-Length: 0\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("got %q, want 200", got)
	}
	o, err = c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if must(t, o, err); aws.ToString(o.CacheControl) != "a?" || o.ContentEncoding != nil {
		t.Errorf("got Cache-Control %q, encoding %q, want a? and none", aws.ToString(o.CacheControl),
			aws.ToString(o.ContentEncoding))
	}

	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x"),
		ContentDisposition: aws.String(strings.Repeat("x", 8<<10+1))})
	wantCode(t, "long headers", err, "MetadataTooLarge")
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
