package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// s3Project is a project with a key for the S3 protocol.
type s3Project struct {
	*apitest.API
	t       *testing.T
	root    string
	key     aws.Credentials
	keyUUID string
	client  *s3.Client
}

func newS3Project(t *testing.T) *s3Project {
	t.Helper()

	a := apitest.Shared(t)
	made := a.Post("/projects/"+a.Project+"/s3-keys", `{"name": "sdk"}`).Want(201)
	p := &s3Project{API: a, t: t, root: a.URL + "/projects/" + a.Project + "/storage/v1/s3",
		keyUUID: made.Get("uuid").(string),
		key: aws.Credentials{AccessKeyID: made.Get("accessKeyId").(string),
			SecretAccessKey: made.Metadata("secretAccessKey").(string)}}
	p.client = p.connect(p.key)

	return p
}

func (p *s3Project) connect(key aws.Credentials) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: &p.root, UsePathStyle: true, Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return key, nil })})
}

// must returns the result of a call of the SDK, which must not fail.
func must[T any](t *testing.T, v T, err error) T {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wantCode checks the code of a failure.
func wantCode(t *testing.T, step string, err error, want string) {
	t.Helper()

	var failed smithy.APIError
	if !errors.As(err, &failed) || failed.ErrorCode() != want {
		t.Errorf("%s: got %v, want %s", step, err, want)
	}
}

func (p *s3Project) put(key, content string) *s3.PutObjectOutput {
	p.t.Helper()

	out, err := p.client.PutObject(p.t.Context(), &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key,
		Body: strings.NewReader(content), ContentType: aws.String("text/plain"),
		Metadata:     map[string]string{"mtime": "12.5"},
		CacheControl: aws.String("max-age=60")})
	return must(p.t, out, err)
}

func (p *s3Project) read(key string) string {
	p.t.Helper()

	got, err := p.client.GetObject(p.t.Context(), &s3.GetObjectInput{Bucket: aws.String("files"), Key: &key})
	must(p.t, got, err)
	defer got.Body.Close()

	text, err := io.ReadAll(got.Body)
	return string(must(p.t, text, err))
}

// TestS3 uses a project's files by Amazon's client for Go.
func TestS3(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	ctx, bucket, c := t.Context(), aws.String("files"), p.client

	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	must(t, 0, err)
	_, err = c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	wantCode(t, "the same bucket", err, "BucketAlreadyOwnedByYou")
	_, err = c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("with.dot")})
	wantCode(t, "a bucket with a dot", err, "InvalidBucketName")
	_, err = c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
	must(t, 0, err)
	_, err = c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("none")})
	wantCode(t, "head of no bucket", err, "NotFound")
	_, err = c.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: bucket})
	must(t, 0, err)

	buckets, err := c.ListBuckets(ctx, &s3.ListBucketsInput{})
	if must(t, buckets, err); len(buckets.Buckets) != 1 || *buckets.Buckets[0].Name != "files" {
		t.Errorf("got buckets %v", buckets.Buckets)
	}

	for prefix, want := range map[string]int{"fi": 1, "other": 0, "": 1} {
		buckets, err := c.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: aws.String(prefix)})
		if must(t, buckets, err); len(buckets.Buckets) != want || aws.ToString(buckets.Prefix) != prefix {
			t.Errorf("buckets of %q: got %v of %q", prefix, buckets.Buckets, aws.ToString(buckets.Prefix))
		}
	}

	key := "é dir/a+b & c.txt"
	made := p.put(key, "one")
	if got := p.read(key); got != "one" {
		t.Errorf("got %q", got)
	}

	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: &key})
	if must(t, head, err); *head.ContentLength != 3 || *head.ContentType != "text/plain" ||
		*head.CacheControl != "max-age=60" ||
		head.Metadata["mtime"] != "12.5" || *head.ETag != *made.ETag || head.LastModified == nil {
		t.Errorf("got %+v", head)
	}

	ranged, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key, Range: aws.String("bytes=1-")})
	if part, _ := io.ReadAll(must(t, ranged, err).Body); string(part) != "ne" || *ranged.ContentRange != "bytes 1-2/3" {
		t.Errorf("got %q %s", part, *ranged.ContentRange)
	}

	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key, Range: aws.String("bytes=9-")})
	wantCode(t, "a range behind the end", err, "InvalidRange")
	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key, IfMatch: aws.String(`"x"`)})
	wantCode(t, "another tag", err, "PreconditionFailed")
	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key, IfNoneMatch: made.ETag})
	wantCode(t, "the same tag", err, "NotModified")
	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("none")})
	wantCode(t, "no object", err, "NoSuchKey")
	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("none"), Key: &key})
	wantCode(t, "no bucket", err, "NoSuchBucket")
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, IfNoneMatch: aws.String("*"),
		Body: strings.NewReader("x")})
	wantCode(t, "an existing object", err, "PreconditionFailed")
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("a/../b"),
		Body: strings.NewReader("x")})
	wantCode(t, "a name with ..", err, "InvalidArgument")
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String(strings.Repeat("k", 1025)),
		Body: strings.NewReader("x")})
	wantCode(t, "a long name", err, "KeyTooLongError")
	_, err = c.PutBucketAcl(ctx, &s3.PutBucketAclInput{Bucket: bucket, ACL: types.BucketCannedACLPublicRead})
	wantCode(t, "an operation that does not exist", err, "NotImplemented")
	_, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	wantCode(t, "a bucket with objects", err, "BucketNotEmpty")

	copied, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy"),
		CopySource: aws.String("files/%C3%A9%20dir/a%2Bb%20%26%20c.txt")})
	if must(t, copied, err); *copied.CopyObjectResult.ETag != *made.ETag || p.read("copy") != "one" {
		t.Errorf("got %+v", copied.CopyObjectResult)
	}
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy"),
		CopySource: aws.String("files/none")})
	wantCode(t, "a copy of nothing", err, "NoSuchKey")

	if _, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
		t.Error(err)
	}
	deleted, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("copy")}, {Key: aws.String("none")}}}})
	if must(t, deleted, err); len(deleted.Deleted) != 2 || len(deleted.Errors) != 0 {
		t.Errorf("got %+v", deleted)
	}

	_, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	must(t, 0, err)
}

// TestS3Lists lists objects by both versions of the list, with prefixes, delimiters and pages.
func TestS3Lists(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Post("/containers", `{"name":"files"}`).Want(201)
	for _, key := range []string{"a", "b/1", "b/2", "b/c/3", "b0", "d/é", "z"} {
		p.put(key, key)
	}

	for _, delimiter := range []string{"//", "é", "\x00"} {
		_, err := p.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("files"),
			Delimiter: &delimiter})
		wantCode(t, "delimiter "+delimiter, err, "InvalidArgument")
	}

	for _, tt := range []struct {
		prefix, delimiter, after string
		want                     string
	}{
		{"", "", "", "a b/1 b/2 b/c/3 b0 d/é z"},
		{"", "/", "", "a b/* b0 d/* z"},
		{"b/", "/", "", "b/1 b/2 b/c/*"},
		{"b", "", "", "b/1 b/2 b/c/3 b0"},
		{"b", "/", "", "b/* b0"},
		{"", "", "b/2", "b/c/3 b0 d/é z"},
		{"", "/", "b/", "b0 d/* z"},
		{"b/", "/", "b/", "b/1 b/2 b/c/*"},
		{"none", "", "", ""},
	} {
		for _, size := range []int32{1000, 1, 2} {
			var first, second []string
			pages := s3.NewListObjectsV2Paginator(p.client, &s3.ListObjectsV2Input{Bucket: aws.String("files"),
				MaxKeys: &size,
				Prefix:  &tt.prefix, Delimiter: &tt.delimiter, StartAfter: &tt.after})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				must(t, page, err)
				if int(*page.KeyCount) != len(page.Contents)+len(page.CommonPrefixes) {
					t.Errorf("got %d keys, want as many as there are", *page.KeyCount)
				}
				second = append(second, namesOf(page.Contents, page.CommonPrefixes)...)
			}

			for marker := tt.after; ; {
				page, err := p.client.ListObjects(t.Context(), &s3.ListObjectsInput{Bucket: aws.String("files"),
					MaxKeys: &size,
					Prefix:  &tt.prefix, Delimiter: &tt.delimiter, Marker: &marker})
				must(t, page, err)
				first = append(first, namesOf(page.Contents, page.CommonPrefixes)...)
				if !*page.IsTruncated {
					break
				}
				marker = *page.NextMarker
			}

			if got := strings.Join(second, " "); got != tt.want {
				t.Errorf("version 2 of %+v by %d: got %q", tt, size, got)
			}
			if got := strings.Join(first, " "); got != tt.want {
				t.Errorf("version 1 of %+v by %d: got %q", tt, size, got)
			}
		}
	}
}

// TestS3Folders marks empty folders by keys that end in a slash.
func TestS3Folders(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Post("/containers", `{"name":"files"}`).Want(201)
	ctx, bucket, c := t.Context(), aws.String("files"), p.client

	for _, key := range []string{"a/-1", "a/1", "b"} {
		p.put(key, key)
	}
	for _, key := range []string{"a/", "a/e/", "f/"} {
		p.put(key, "")
	}

	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("g/"), Body: strings.NewReader("x")})
	wantCode(t, "a folder with bytes", err, "InvalidArgument")
	_, err = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("g/")})
	wantCode(t, "a folder in parts", err, "InvalidArgument")
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("g/"),
		CopySource: aws.String("files/b")})
	wantCode(t, "a copy of bytes to a folder", err, "InvalidArgument")
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("g/"),
		CopySource: aws.String("files/f/")})
	must(t, 0, err)

	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("g/")})
	if must(t, head, err); *head.ContentLength != 0 || head.Metadata["mtime"] != "12.5" || p.read("f/") != "" {
		t.Errorf("got %+v", head)
	}

	list := func(prefix, delimiter, after string) string {
		t.Helper()

		page, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: &prefix, Delimiter: &delimiter,
			StartAfter: &after, MaxKeys: aws.Int32(4)})
		must(t, page, err)
		return fmt.Sprint(strings.Join(namesOf(page.Contents, page.CommonPrefixes), " "), " ", *page.IsTruncated)
	}
	for _, tt := range []struct{ prefix, delimiter, after, want string }{
		{"a/", "/", "", "a/ a/-1 a/1 a/e/* false"},
		{"a/", "/", "a/", "a/-1 a/1 a/e/* false"},
		{"a/", "", "", "a/ a/-1 a/1 a/e/ false"},
		{"", "", "a/", "a/-1 a/1 a/e/ b true"},
		{"", "/", "", "a/* b f/* g/* false"},
		{"", "", "a/e/", "b f/ g/ false"},
		{"a/.e", "", "", "a/.emptyFolderPlaceholder false"},
	} {
		if got := list(tt.prefix, tt.delimiter, tt.after); got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}

	_, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("a/")})
	must(t, 0, err)
	_, err = c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("f/")}, {Key: aws.String("g/")}}}})
	must(t, 0, err)
	if got, want := list("", "", ""), "a/-1 a/1 a/e/ b false"; got != want {
		t.Errorf("after the deletion: got %s, want %s", got, want)
	}
	_, err = c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("a/")})
	wantCode(t, "a deleted folder", err, "NotFound")
}

// namesOf returns the entries of a page in order.
func namesOf(objects []types.Object, prefixes []types.CommonPrefix) []string {
	var names []string
	for _, o := range objects {
		names = append(names, *o.Key)
	}
	for _, prefix := range prefixes {
		names = append(names, *prefix.Prefix+"*")
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, "*"), strings.TrimSuffix(b, "*"))
	})

	return names
}

// TestS3Multipart uploads an object in parts, which arrive out of order and twice.
func TestS3Multipart(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Post("/containers", `{"name":"files"}`).Want(201)
	ctx, bucket, key, c := t.Context(), aws.String("files"), aws.String("big"), p.client

	begun, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key,
		ContentType: aws.String("image/png"), Metadata: map[string]string{"a": "b"}})
	id := must(t, begun, err).UploadId
	part := func(n int32, content []byte) types.CompletedPart {
		out, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: id, PartNumber: &n,
			Body: bytes.NewReader(content)})
		return types.CompletedPart{PartNumber: &n, ETag: must(t, out, err).ETag}
	}
	complete := func(parts ...types.CompletedPart) (*s3.CompleteMultipartUploadOutput, error) {
		return c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: key, UploadId: id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
	}

	first, second := bytes.Repeat([]byte("1"), 5<<20), bytes.Repeat([]byte("2"), 5<<20)
	p3 := part(3, []byte("end"))
	stale := part(1, []byte("small"))
	p1 := part(1, first)

	p.put("source", "x"+string(second)+"y")
	out, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: bucket, Key: key, UploadId: id,
		PartNumber: aws.Int32(2),
		CopySource: aws.String("files/source"), CopySourceRange: aws.String(fmt.Sprintf("bytes=1-%d", 5<<20))})
	p2 := types.CompletedPart{PartNumber: aws.Int32(2), ETag: must(t, out, err).CopyPartResult.ETag}

	listed, err := c.ListParts(ctx, &s3.ListPartsInput{Bucket: bucket, Key: key, UploadId: id, MaxParts: aws.Int32(2)})
	if must(t, listed, err); len(listed.Parts) != 2 || *listed.NextPartNumberMarker != "2" || !*listed.IsTruncated {
		t.Errorf("got %+v", listed)
	}
	uploads, err := c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: bucket})
	if must(t, uploads, err); len(uploads.Uploads) != 1 || *uploads.Uploads[0].UploadId != *id {
		t.Errorf("got %+v", uploads)
	}

	other, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("later")})
	must(t, other, err)
	var names []string
	for in := (&s3.ListMultipartUploadsInput{Bucket: bucket, MaxUploads: aws.Int32(1)}); len(names) < 3; {
		page, err := c.ListMultipartUploads(ctx, in)
		must(t, page, err)
		names = append(names, *page.Uploads[0].Key)
		if !*page.IsTruncated {
			break
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
	if got := strings.Join(names, " "); got != "big later" {
		t.Errorf("got uploads %s by pages", got)
	}

	_, err = complete(p2, p1)
	wantCode(t, "parts in descending order", err, "InvalidPartOrder")
	_, err = complete(stale, p2)
	wantCode(t, "a replaced part", err, "InvalidPart")
	_, err = complete(types.CompletedPart{PartNumber: aws.Int32(4), ETag: p3.ETag})
	wantCode(t, "a part that does not exist", err, "InvalidPart")
	p4 := part(4, []byte("more"))
	_, err = complete(p1, p2, p3, p4)
	wantCode(t, "a small part in the middle", err, "EntityTooSmall")

	done, err := complete(p1, p2, p3)
	again, err2 := complete(p1, p2, p3)
	if must(t, done, err); *done.ETag != *must(t, again, err2).ETag {
		t.Errorf("completed twice: got %s, then %s", *done.ETag, *again.ETag)
	}
	if got := p.read("big"); got != string(first)+string(second)+"end" {
		t.Errorf("got %d bytes", len(got))
	}

	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if must(t, head, err); *head.ContentType != "image/png" || head.Metadata["a"] != "b" {
		t.Errorf("got %+v", head)
	}

	begun, err = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("gone")})
	id, key = must(t, begun, err).UploadId, aws.String("gone")
	p1 = part(1, []byte("x"))
	_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: bucket, Key: key, UploadId: id})
	must(t, 0, err)
	_, err = complete(p1)
	wantCode(t, "an aborted upload", err, "NoSuchUpload")
}

// TestS3OfFullDatabase checks that a full database takes no objects, and gives and deletes those
// that it has.
func TestS3OfFullDatabase(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Post("/containers", `{"name":"files"}`).Want(201)
	p.put("a", "one")
	ctx, bucket, key, c := t.Context(), aws.String("files"), aws.String("b"), p.client
	begun, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	must(t, begun, err)

	p.Exec(`update platform.projects set max_database_bytes = 1 where uuid = $1`, p.Project)
	titlesProject{API: p.API, t: t}.measure()

	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x")})
	wantCode(t, "an object", err, "QuotaExceeded")
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: key, CopySource: aws.String("files/a")})
	wantCode(t, "a copy", err, "QuotaExceeded")
	_, err = c.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: begun.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("x")})
	wantCode(t, "a part", err, "QuotaExceeded")
	_, err = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	wantCode(t, "a multipart upload", err, "QuotaExceeded")

	if got := p.read("a"); got != "one" {
		t.Errorf("got %q", got)
	}
	_, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("a")})
	must(t, 0, err)
}

// TestS3Signatures checks signed, presigned and forged requests.
func TestS3Signatures(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Post("/containers", `{"name":"files"}`).Want(201)
	p.put("a", "one")
	get := &s3.GetObjectInput{Bucket: aws.String("files"), Key: aws.String("a")}
	presigner := s3.NewPresignClient(p.client)

	url := func(lifetime time.Duration) string {
		signed, err := presigner.PresignGetObject(t.Context(), get, s3.WithPresignExpires(lifetime))
		return must(t, signed, err).URL
	}
	send := func(method, url, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		resp, err := http.DefaultClient.Do(must(t, r, err))
		must(t, resp, err)
		defer resp.Body.Close()

		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(must(t, text, err))
	}
	want := func(step, method, url string, status int, text string) {
		t.Helper()
		if got, body := send(method, url, ""); got != status || !strings.Contains(body, text) {
			t.Errorf("%s: got %d %s, want %d %s", step, got, body, status, text)
		}
	}

	valid := url(time.Minute)
	want("presigned", "GET", valid, 200, "one")
	want("another method", "DELETE", valid, 403, "SignatureDoesNotMatch")
	want("another key", "GET", strings.Replace(valid, "/a?", "/b?", 1), 403, "SignatureDoesNotMatch")
	want("a longer lifetime", "GET", strings.Replace(valid, "Expires=60", "Expires=61", 1), 403,
		"SignatureDoesNotMatch")
	want("eight days", "GET", url(8*24*time.Hour), 400, "AuthorizationQueryParametersError")
	want("no signature", "GET", p.root+"/files/a", 403, "AccessDenied")
	want("another project", "GET", strings.Replace(valid, p.Project, p.CreateProject("other"), 1), 403,
		"SignatureDoesNotMatch")
	want("no project", "GET", strings.Replace(valid, p.Project, apitest.MissingUUID, 1), 404, "<Error>")

	upload, err := presigner.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("files"),
		Key: aws.String("up")})
	if status, text := send("PUT", must(t, upload, err).URL, "by link"); status != 200 || p.read("up") != "by link" {
		t.Errorf("presigned upload: got %d %s", status, text)
	}

	at := func(at time.Time, payload string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.root+"/files/a", nil)
		must(t, r, err)
		r.Header.Set("X-Amz-Content-Sha256", payload)
		must(t, 0, v4.NewSigner().SignHTTP(t.Context(), p.key, r, payload, "s3", "eu-central-1", at))
		for _, h := range header {
			r.Header.Set(h, "1")
		}

		resp, err := http.DefaultClient.Do(r)
		must(t, resp, err)
		defer resp.Body.Close()

		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(must(t, text, err))
	}
	for _, tt := range []struct {
		skew   time.Duration
		header []string
		status int
		want   string
	}{
		{0, nil, 200, "one"},
		{-14 * time.Minute, nil, 200, "one"},
		{-16 * time.Minute, nil, 403, "RequestTimeTooSkewed"},
		{16 * time.Minute, nil, 403, "RequestTimeTooSkewed"},
		{0, []string{"X-Amz-Meta-Extra"}, 403, "not signed"},
	} {
		if status, text := at(time.Now().Add(tt.skew), "UNSIGNED-PAYLOAD", tt.header...); status != tt.status ||
			!strings.Contains(text, tt.want) {
			t.Errorf("%+v: got %d %s", tt, status, text)
		}
	}

	forged := p.key
	forged.SecretAccessKey += "x"
	_, err = p.connect(forged).GetObject(t.Context(), get)
	wantCode(t, "another secret", err, "SignatureDoesNotMatch")

	p.Delete("/projects/" + p.Project + "/s3-keys/" + p.keyUUID).Want(200)
	eventually(t, "the revoked key is refused", func() bool {
		_, err := p.client.GetObject(t.Context(), get)
		var failed smithy.APIError
		return errors.As(err, &failed) && failed.ErrorCode() == "InvalidAccessKeyId"
	})
}

// TestS3ByClient uses a project's files by Amazon's client for JavaScript.
func TestS3ByClient(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	runNode(t, clients, append(os.Environ(), "SOCLE_S3="+p.root, "SOCLE_KEY="+p.key.AccessKeyID,
		"SOCLE_SECRET="+p.key.SecretAccessKey), "s3.mjs")
}
