package server_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// raw sends a signed request with headers such as "Name: value", and returns the status, the code
// of a failure and the body.
func (p *s3Project) raw(method, path, body string, headers ...string) (status int, code, text string) {
	p.t.Helper()

	r, err := http.NewRequestWithContext(p.t.Context(), method, p.root+path, strings.NewReader(body))
	must(p.t, r, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}

	const payload = "UNSIGNED-PAYLOAD"
	r.Header.Set("X-Amz-Content-Sha256", payload)
	err = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).
		SignHTTP(p.t.Context(), p.key, r, payload, "s3", "us-east-1", time.Now())
	must(p.t, 0, err)

	resp, err := http.DefaultClient.Do(r)
	must(p.t, resp, err)
	defer resp.Body.Close()

	all, err := io.ReadAll(resp.Body)
	must(p.t, 0, err)
	var failed struct{ Code string }
	_ = xml.Unmarshal(all, &failed) // without a body: none

	return resp.StatusCode, failed.Code, string(all)
}

// TestS3UnknownRequests checks that a request that asks for what the server does not do is refused
// and changes nothing, and that one that asks for what it does anyway is served.
func TestS3UnknownRequests(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Create("/containers", `{"name": "files"}`)
	p.Create("/containers", `{"name": "open", "is_public": true}`)
	p.put("a", "one")

	owner := "X-Amz-Expected-Bucket-Owner: " + p.Project
	for _, tt := range []struct {
		method, path, header string
		status               int
		code                 string
	}{
		{"PUT", "/files/a", "X-Amz-Write-Offset-Bytes: 3", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Tagging: a=b", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Acl: public-read", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Server-Side-Encryption: aws:kms", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Object-Lock-Legal-Hold: ON", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Storage-Class: GLACIER", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-New-Idea: 1", 501, "NotImplemented"},
		{"PUT", "/files/a", `If-None-Match: "x"`, 501, "NotImplemented"},
		{"PUT", "/files/a", "If-Unmodified-Since: Wed, 02 Jan 2030 03:04:05 GMT", 501, "NotImplemented"},
		{"PUT", "/files/a", "Content-Range: bytes 3-5/6", 501, "NotImplemented"},
		{"PUT", "/files/a", "X-Amz-Expected-Bucket-Owner: 111122223333", 403, "AccessDenied"},
		{"PUT", "/files/a", "X-Amz-Security-Token: x", 400, "InvalidToken"},
		{"PUT", "/files/a", "X-Amz-Trailer: x-amz-checksum-crc32", 400, "InvalidRequest"},
		{"PUT", "/files/a?versionId=2", "", 501, "NotImplemented"},
		{"PUT", "/files/a?uploadId=2", "", 501, "NotImplemented"},
		{"PUT", "/files/a?tagging", "", 501, "NotImplemented"},
		{"PUT", "/files/a?acl", "X-Amz-Acl: private", 501, "NotImplemented"},
		{"PUT", "/files/a?new-idea", "", 501, "NotImplemented"},
		{"POST", "/files/a?restore", "", 501, "NotImplemented"},
		{"PATCH", "/files/a", "", 405, "MethodNotAllowed"},
		{"DELETE", "/files/a", "X-Amz-Mfa: 1", 501, "NotImplemented"},
		{"DELETE", "/files/a?versionId=2", "", 404, "NoSuchVersion"},
		{"GET", "/files/a", "X-Amz-Server-Side-Encryption-Customer-Algorithm: AES256", 501, "NotImplemented"},
		{"GET", "/files/a?versionId=2", "", 404, "NoSuchVersion"},
		{"GET", "/files?list-type=3", "", 400, "InvalidArgument"},
		{"GET", "/files?encoding-type=x", "", 400, "InvalidArgument"},
		{"GET", "/files?uploads&delimiter=%2F", "", 501, "NotImplemented"},
		{"PUT", "/other", "X-Amz-Bucket-Object-Lock-Enabled: true", 501, "NotImplemented"},

		{"GET", "/files/a?versionId=null&x-id=GetObject", owner, 200, ""},
		{"HEAD", "/files", owner, 200, ""},
		{"PUT", "/files/b", "X-Amz-Acl: private", 200, ""},
		{"PUT", "/files/b", "X-Amz-Storage-Class: STANDARD", 200, ""},
		{"PUT", "/files/b", owner, 200, ""},
		{"PUT", "/open/b", "X-Amz-Acl: public-read", 200, ""},
		{"PUT", "/shared", "X-Amz-Acl: public-read", 200, ""},
		{"DELETE", "/files/b", "X-Amz-Bypass-Governance-Retention: true", 204, ""},
	} {
		var headers []string
		if tt.header != "" {
			headers = append(headers, tt.header)
		}

		status, code, text := p.raw(tt.method, tt.path, "", headers...)
		if status != tt.status || code != tt.code {
			t.Errorf("%s %s with %q: got %d %s, want %d %q", tt.method, tt.path, tt.header, status, text, tt.status,
				tt.code)
		}
	}

	if got := p.read("a"); got != "one" {
		t.Errorf("got %q after refused requests, want the object unchanged", got)
	}
	public := false
	row := p.ConnectProject().QueryRow(t.Context(), `select is_public from storage.containers where name = 'shared'`)
	if err := row.Scan(&public); err != nil || !public {
		t.Errorf("a bucket of public-read: got public %t, %v", public, err)
	}

	const body = `<CreateBucketConfiguration><LocationConstraint>x</LocationConstraint></CreateBucketConfiguration>`
	if status, _, text := p.raw("PUT", "/located", body); status != 200 {
		t.Errorf("a bucket with a location: got %d %s", status, text)
	}
	const tags = `<CreateBucketConfiguration><Tags><Tag><Key>a</Key></Tag></Tags></CreateBucketConfiguration>`
	if status, code, _ := p.raw("PUT", "/tagged", tags); status != 501 || code != "NotImplemented" {
		t.Errorf("a bucket with tags: got %d %s, want 501", status, code)
	}

	const versions = `<Delete><Object><Key>a</Key><VersionId>2</VersionId></Object></Delete>`
	if _, _, text := p.raw("POST", "/files?delete", versions); !strings.Contains(text, "NoSuchVersion") ||
		p.read("a") != "one" {
		t.Errorf("delete another version: got %s", text)
	}
}

// TestS3Absent checks the answers about what no bucket and no object has.
func TestS3Absent(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Create("/containers", `{"name": "files"}`)
	p.put("a", "one")

	for _, tt := range []struct {
		method, path string
		status       int
		want         string // code of a failure, or a part of the body
	}{
		{"GET", "/files/a?tagging", 200, "<TagSet></TagSet>"},
		{"GET", "/files/none?tagging", 404, "NoSuchKey"},
		{"GET", "/none/a?tagging", 404, "NoSuchBucket"},
		{"GET", "/files/a?acl", 200, "<Permission>FULL_CONTROL</Permission>"},
		{"GET", "/files?acl", 200, "<ID>" + p.Project + "</ID>"},
		{"GET", "/files/none?acl", 404, "NoSuchKey"},
		{"GET", "/files/a?legal-hold", 400, "InvalidRequest"},
		{"GET", "/files/a?retention", 400, "InvalidRequest"},
		{"DELETE", "/files/a?tagging", 204, ""},

		{"GET", "/files?location", 200, "<LocationConstraint"},
		{"GET", "/files?versioning", 200, "<VersioningConfiguration"},
		{"GET", "/files?accelerate", 200, "<AccelerateConfiguration"},
		{"GET", "/files?logging", 200, "<BucketLoggingStatus"},
		{"GET", "/files?notification", 200, "<NotificationConfiguration"},
		{"GET", "/files?requestPayment", 200, "<Payer>BucketOwner</Payer>"},
		{"GET", "/files?ownershipControls", 200, "BucketOwnerEnforced"},
		{"GET", "/files?tagging", 404, "NoSuchTagSet"},
		{"GET", "/files?policy", 404, "NoSuchBucketPolicy"},
		{"GET", "/files?policyStatus", 404, "NoSuchBucketPolicy"},
		{"GET", "/files?lifecycle", 404, "NoSuchLifecycleConfiguration"},
		{"GET", "/files?cors", 404, "NoSuchCORSConfiguration"},
		{"GET", "/files?website", 404, "NoSuchWebsiteConfiguration"},
		{"GET", "/files?encryption", 404, "ServerSideEncryptionConfigurationNotFoundError"},
		{"GET", "/files?replication", 404, "ReplicationConfigurationNotFoundError"},
		{"GET", "/files?publicAccessBlock", 404, "NoSuchPublicAccessBlockConfiguration"},
		{"GET", "/files?object-lock", 404, "ObjectLockConfigurationNotFoundError"},
		{"GET", "/files?analytics&x-id=ListBucketAnalyticsConfigurations", 200, "<IsTruncated>false"},
		{"GET", "/files?inventory&id=x", 404, "NoSuchConfiguration"},
		{"GET", "/files?metrics", 200, "<IsTruncated>false"},
		{"GET", "/files?intelligent-tiering", 200, "<IsTruncated>false"},
		{"DELETE", "/files?policy", 204, ""},
		{"DELETE", "/files?lifecycle", 204, ""},
		{"DELETE", "/files?metrics&id=x", 404, "NoSuchConfiguration"},
		{"PUT", "/files?policy", 501, "NotImplemented"},
		{"GET", "/files?versions", 200, "<VersionId>null</VersionId><IsLatest>true</IsLatest>"},
		{"GET", "/files?versions&key-marker=a&version-id-marker=null", 200, "<IsTruncated>false"},
		{"GET", "/files?versions&version-id-marker=x", 400, "InvalidArgument"},
	} {
		status, _, text := p.raw(tt.method, tt.path, "")
		if status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: got %d %s, want %d %s", tt.method, tt.path, status, text, tt.status, tt.want)
		}
	}

	attributes := "X-Amz-Object-Attributes: ETag,ObjectSize,Checksum"
	if status, _, text := p.raw("GET", "/files/a?attributes", "", attributes); status != 200 ||
		!strings.Contains(text, "<ObjectSize>3</ObjectSize>") || strings.Contains(text, "StorageClass") {
		t.Errorf("attributes: got %d %s", status, text)
	}
	if status, code, _ := p.raw("GET", "/files/a?attributes", ""); status != 400 || code != "InvalidArgument" {
		t.Errorf("no attributes: got %d %s", status, code)
	}
}
