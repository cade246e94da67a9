package server_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// postForm sends a form with a file and returns the response and its body.
func (p *s3Project) postForm(bucket string, fields map[string]string, fileName, file string) (*http.Response, string) {
	p.t.Helper()

	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for name, value := range fields {
		must(p.t, 0, w.WriteField(name, value))
	}
	if fileName != "" {
		part, err := w.CreateFormFile("file", fileName)
		must(p.t, part, err)
		_, err = io.WriteString(part, file)
		must(p.t, 0, err)
	}
	must(p.t, 0, w.WriteField("submit", "behind the file"))
	must(p.t, 0, w.Close())

	r, err := http.NewRequestWithContext(p.t.Context(), "POST", p.root+"/"+bucket, &text)
	must(p.t, r, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	must(p.t, resp, err)
	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	return resp, string(must(p.t, body, err))
}

// TestS3Forms stores objects by forms that the SDK has signed, and refuses what their policies do.
func TestS3Forms(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Create("/containers", `{"name": "files"}`)
	p.Create("/containers", `{"name": "other"}`)

	sign := func(key string, expires time.Duration, conditions ...any) map[string]string {
		t.Helper()

		signed, err := s3.NewPresignClient(p.client).PresignPostObject(t.Context(),
			&s3.PutObjectInput{Bucket: aws.String("files"), Key: &key},
			func(o *s3.PresignPostOptions) { o.Expires, o.Conditions = expires, conditions })
		return must(t, signed, err).Values
	}
	with := func(fields map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			fields[more[i]] = more[i+1]
		}
		return fields
	}

	size := []any{"content-length-range", 2, 5}
	kind := []any{"starts-with", "$Content-Type", "text/"}
	status := []any{"starts-with", "$success_action_status", ""}
	redirect := map[string]string{"success_action_redirect": "https://app.example.com/done?a=1"}

	hostile := "dir/a?b#c%2F+é &.txt"
	resp, body := p.postForm("files", with(sign(hostile, time.Minute, kind, map[string]string{"x-amz-meta-a": "b"}),
		"Content-Type", "text/plain", "x-amz-meta-a", "b"), "a.txt", "one")
	if resp.StatusCode != 200 || body != "" || p.read(hostile) != "one" {
		t.Fatalf("got %d %s", resp.StatusCode, body)
	}
	head, err := p.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("files"), Key: &hostile})
	if must(t, head, err); *head.ContentType != "text/plain" || head.Metadata["a"] != "b" ||
		resp.Header.Get("ETag") != *head.ETag {
		t.Errorf("got %+v of %v", head, resp.Header)
	}
	at, err := url.Parse(resp.Header.Get("Location"))
	if must(t, at, err); !strings.HasSuffix(at.Path, "/s3/files/"+hostile) {
		t.Errorf("got the location %s", at)
	}

	// Browsers of old send the folder, too.
	resp, body = p.postForm("files", with(sign("up/${filename}", time.Minute, status,
		[]any{"starts-with", "$key", "up/"}), "success_action_status", "201"),
		`C:\x\n.txt`, "two")
	if resp.StatusCode != 201 || !strings.Contains(body, "<Key>up/n.txt</Key>") || p.read("up/n.txt") != "two" {
		t.Errorf("with the name of the file: got %d %s", resp.StatusCode, body)
	}

	resp, _ = p.postForm("files", with(sign("r", time.Minute, redirect), "success_action_redirect",
		redirect["success_action_redirect"]), "a", "three")
	if got := resp.Header.Get("Location"); resp.StatusCode != 303 ||
		!strings.HasPrefix(got, "https://app.example.com/done?a=1&bucket=files&etag=") {
		t.Errorf("redirect: got %d %s", resp.StatusCode, got)
	}

	if resp, _ := p.postForm("files", with(sign("s", time.Minute, status), "success_action_status", "204"), "a",
		"x"); resp.StatusCode != 204 {
		t.Errorf("status 204: got %d", resp.StatusCode)
	}

	forged := sign("k", time.Minute)
	forged["policy"] = sign("k", time.Hour)["policy"]
	for name, tt := range map[string]struct {
		fields       map[string]string
		bucket, file string
		status       int
		want         string
	}{
		"expired":        {sign("k", -time.Minute), "files", "x", 403, "Policy expired"},
		"another policy": {forged, "files", "x", 403, "SignatureDoesNotMatch"},
		"another key":    {with(sign("k", time.Minute), "key", "a"), "files", "x", 403, "Policy Condition failed"},
		"another bucket": {sign("k", time.Minute), "other", "x", 403, "Policy Condition failed"},
		"an unsigned field": {with(sign("k", time.Minute), "x-amz-meta-x", "1"), "files", "x", 403,
			"Extra input fields"},
		"too large": {sign("k", time.Minute, size), "files", "123456", 400, "EntityTooLarge"},
		"too small": {sign("k", time.Minute, size), "files", "1", 400, "EntityTooSmall"},
		"an access list": {with(sign("k", time.Minute, map[string]string{"acl": "public-read"}), "acl", "public-read"),
			"files", "x", 501, "x-amz-acl"},
		"tags": {with(sign("k", time.Minute, []any{"starts-with", "$tagging", ""}), "tagging", "<T/>"),
			"files", "x", 501, "x-amz-tagging"},
		"a wrong checksum": {with(sign("k", time.Minute, []any{"starts-with", "$x-amz-checksum-crc32", ""}),
			"x-amz-checksum-crc32", "AAAAAA=="), "files", "x", 400, "BadDigest"},
		"a null character": {with(sign("k", time.Minute, []any{"starts-with", "$Cache-Control", ""}),
			"Cache-Control", "a\x00"), "files", "x", 400, "InvalidArgument"},
		"no signature": {map[string]string{"key": "k"}, "files", "x", 403, "no signed policy"},
		"many bytes": {map[string]string{"key": strings.Repeat("x", 70_000)}, "files", "x", 400,
			"MaxPostPreDataLengthExceeded"},
		"many bytes of file": {sign("k", time.Minute, size), "files", strings.Repeat("x", 1<<20), 400,
			"EntityTooLarge"},
	} {
		resp, body := p.postForm(tt.bucket, tt.fields, "a", tt.file)
		if resp.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", name, resp.StatusCode, body, tt.status, tt.want)
		}
	}
	if resp, body := p.postForm("files", sign("k", time.Minute), "", ""); resp.StatusCode != 400 ||
		!strings.Contains(body, "exactly one file") {
		t.Errorf("no file: got %d %s", resp.StatusCode, body)
	}

	_, err = p.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("files"), Key: aws.String("k")})
	wantCode(t, "refused forms", err, "NotFound")
}

// TestS3Completions checks what a client announces of the object of a multipart upload.
func TestS3Completions(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Create("/containers", `{"name": "files"}`)
	ctx, bucket, key := t.Context(), aws.String("files"), aws.String("a b?c")

	u, err := p.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	must(t, u, err)
	part, err := p.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: u.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("123456789")})
	must(t, part, err)

	complete := func(in s3.CompleteMultipartUploadInput) (*s3.CompleteMultipartUploadOutput, error) {
		in.Bucket, in.Key, in.UploadId = bucket, key, u.UploadId
		in.MultipartUpload = &types.CompletedMultipartUpload{
			Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}}
		return p.client.CompleteMultipartUpload(ctx, &in)
	}

	_, err = complete(s3.CompleteMultipartUploadInput{MpuObjectSize: aws.Int64(8)})
	wantCode(t, "another size", err, "InvalidRequest")
	_, err = complete(s3.CompleteMultipartUploadInput{ChecksumCRC32: aws.String("AAAAAA==")})
	wantCode(t, "another checksum", err, "BadDigest")
	_, err = complete(s3.CompleteMultipartUploadInput{ChecksumCRC32: aws.String("AAAAAA==-1")})
	wantCode(t, "a checksum of checksums", err, "NotImplemented")

	out, err := complete(s3.CompleteMultipartUploadInput{MpuObjectSize: aws.Int64(9),
		ChecksumCRC32: aws.String("y/Q5Jg==")})
	if must(t, out, err); !strings.HasSuffix(*out.Location, "/s3/files/a%20b%3Fc") || p.read(*key) != "123456789" {
		t.Errorf("got %+v", out)
	}
}
