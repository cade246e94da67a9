package s3api

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/projectdb"
)

// modelHeaders are the headers of requests in Amazon's model of the protocol, each with a value
// that asks for something beyond the default, and If-… headers.
const modelHeaders = `
	x-amz-abort-date=1 x-amz-acl=public-read x-amz-acl=authenticated-read x-amz-bucket-namespace=account-regional
	x-amz-bucket-object-lock-enabled=true x-amz-bucket-object-lock-token=1 x-amz-bypass-governance-retention=maybe
	x-amz-checksum-algorithm=XXHASH3 x-amz-checksum-mode=DISABLED x-amz-checksum-type=OTHER x-amz-checksum-xxhash3=1
	x-amz-checksum-xxhash64=1 x-amz-checksum-xxhash128=1 x-amz-client-token=1 x-amz-confirm-remove-self-bucket-access=1
	x-amz-copy-source-if-modified-since=yesterday x-amz-copy-source-if-unmodified-since=yesterday
	x-amz-copy-source-server-side-encryption-customer-algorithm=AES256
	x-amz-copy-source-server-side-encryption-customer-key=1 x-amz-copy-source-server-side-encryption-customer-key-md5=1
	x-amz-create-session-mode=1 x-amz-expected-bucket-owner=111122223333 x-amz-grant-full-control=1 x-amz-grant-read=1
	x-amz-grant-read-acp=1 x-amz-grant-write=1 x-amz-grant-write-acp=1 x-amz-if-match-initiated-time=1
	x-amz-if-match-last-modified-time=1 x-amz-if-match-size=1 x-amz-metadata-directive=OTHER x-amz-mfa=1
	x-amz-mp-object-size=-1 x-amz-object-annotation-directive=1 x-amz-object-if-match=1 x-amz-object-lock-event-hold=1
	x-amz-object-lock-event-hold-duration-days=1 x-amz-object-lock-event-hold-duration-years=1
	x-amz-object-lock-legal-hold=ON x-amz-object-lock-mode=GOVERNANCE x-amz-object-lock-retain-until-date=1
	x-amz-object-ownership=ObjectWriter x-amz-optional-object-attributes=Other x-amz-rename-source=1
	x-amz-request-payer=owner x-amz-sdk-checksum-algorithm=XXHASH3 x-amz-security-token=1
	x-amz-server-side-encryption=AES256 x-amz-server-side-encryption=aws:kms
	x-amz-server-side-encryption-aws-kms-key-id=1 x-amz-server-side-encryption-bucket-key-enabled=true
	x-amz-server-side-encryption-context=1 x-amz-server-side-encryption-customer-algorithm=AES256
	x-amz-server-side-encryption-customer-key=1 x-amz-server-side-encryption-customer-key-md5=1
	x-amz-skip-destination-validation=1 x-amz-source-expected-bucket-owner=111122223333 x-amz-storage-class=GLACIER
	x-amz-tagging=a=b x-amz-tagging-directive=OTHER x-amz-transition-default-minimum-object-size=1
	x-amz-website-redirect-location=/ x-amz-write-offset-bytes=7 x-amz-write-offset-bytes=0 x-amz-new-idea=1
	content-range=bytes0-1/2`

// operations are requests for each operation that has one, with the headers beyond the common ones
// that it must obey.
var operations = []struct{ name, request, obeys string }{
	{"ListBuckets", "GET /", ""},
	{"CreateBucket", "PUT /b", "x-amz-acl=private x-amz-acl=public-read x-amz-object-ownership=BucketOwnerEnforced"},
	{"HeadBucket", "HEAD /b", ""},
	{"DeleteBucket", "DELETE /b", ""},
	{"ListObjects", "GET /b?prefix=a&marker=a&delimiter=x&max-keys=1&encoding-type=url", ""},
	{"ListObjectsV2", "GET /b?list-type=2&start-after=x&fetch-owner=true&continuation-token=x",
		"x-amz-optional-object-attributes=RestoreStatus"},
	{"ListObjectVersions", "GET /b?versions&key-marker=a", ""},
	{"ListMultipartUploads", "GET /b?uploads&key-marker=a&upload-id-marker=1&max-uploads=1&encoding-type=url", ""},
	{"DeleteObjects", "POST /b?delete", "x-amz-sdk-checksum-algorithm=CRC32 x-amz-checksum-crc32=AAAAAA=="},
	{"GetBucketTagging", "GET /b?tagging", ""},
	{"DeleteBucketTagging", "DELETE /b?tagging", ""},
	{"GetBucketMetricsConfiguration", "GET /b?metrics&id=1", ""},
	{"PutObject", "PUT /b/k", "if-none-match=* x-amz-acl=private x-amz-acl=bucket-owner-full-control x-amz-meta-a=b " +
		"x-amz-storage-class=STANDARD x-amz-sdk-checksum-algorithm=CRC64NVME x-amz-checksum-sha256=x " +
		"x-amz-trailer=x-amz-checksum-crc32 x-amz-decoded-content-length=3 x-amz-object-lock-legal-hold=OFF"},
	{"CopyObject", "PUT /b/k x-amz-copy-source=b/a", "if-none-match=* x-amz-acl=private x-amz-meta-a=b " +
		"x-amz-metadata-directive=REPLACE x-amz-tagging-directive=COPY x-amz-copy-source-if-match=x " +
		"x-amz-copy-source-if-unmodified-since=Wed,~02~Jan~2030~03:04:05~GMT"},
	{"CreateMultipartUpload", "POST /b/k?uploads", "x-amz-checksum-algorithm=CRC32 x-amz-checksum-type=FULL_OBJECT " +
		"x-amz-acl=private x-amz-meta-a=b"},
	{"UploadPart", "PUT /b/k?partNumber=1&uploadId=1",
		"x-amz-checksum-crc32=AAAAAA== x-amz-sdk-checksum-algorithm=SHA1"},
	{"UploadPartCopy", "PUT /b/k?partNumber=1&uploadId=1 x-amz-copy-source=b/a", "x-amz-copy-source-range=bytes=0-1 " +
		"x-amz-copy-source-if-none-match=x"},
	{"CompleteMultipartUpload", "POST /b/k?uploadId=1", "if-none-match=* x-amz-mp-object-size=3 " +
		"x-amz-checksum-crc32=AAAAAA== x-amz-checksum-type=COMPOSITE"},
	{"AbortMultipartUpload", "DELETE /b/k?uploadId=1", ""},
	{"ListParts", "GET /b/k?uploadId=1&max-parts=1&part-number-marker=1", ""},
	{"GetObject", "GET /b/k?versionId=null&partNumber=1&response-content-type=a/b&x-id=GetObject",
		"x-amz-checksum-mode=ENABLED if-match=x if-none-match=x if-modified-since=x if-unmodified-since=x if-range=x"},
	{"HeadObject", "HEAD /b/k", "x-amz-checksum-mode=ENABLED if-match=x if-none-match=x " +
		"if-modified-since=x if-unmodified-since=x if-range=x"},
	{"DeleteObject", "DELETE /b/k?versionId=null", "x-amz-bypass-governance-retention=true"},
	{"GetObjectTagging", "GET /b/k?tagging&versionId=null", ""},
	{"GetObjectAcl", "GET /b/k?acl", ""},
	{"GetObjectAttributes", "GET /b/k?attributes", "x-amz-object-attributes=ETag x-amz-max-parts=3"},
}

// newRequest returns a verified request, such as "PUT /b/k x-amz-a=b".
func newRequest(t *testing.T, text string) *call {
	t.Helper()

	words := strings.Fields(text)
	at, err := url.Parse(words[1])
	if err != nil {
		t.Fatal(err)
	}

	r, err := http.NewRequestWithContext(t.Context(), words[0], words[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range words[2:] {
		name, value, _ := strings.Cut(header, "=")
		r.Header.Set(name, strings.ReplaceAll(value, "~", " "))
	}

	c := &call{project: &project{Project: &gateway.Project{Database: &projectdb.Project{UUID: uuid.New()}}},
		r: r, query: at.Query(), bucket: object.Container{}, signature: &signature{}}
	c.name, c.key, _ = strings.Cut(strings.TrimPrefix(at.Path, "/"), "/")

	return c
}

// codeOf returns the code of a failure, "" of none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func (c *call) routed() error {
	route, err := c.route()
	if err != nil {
		return err
	}
	return c.checkRequest(route)
}

// TestHeadersOfOperations checks each operation with each header: all but those that the operation
// obeys are refused.
func TestHeadersOfOperations(t *testing.T) {
	t.Parallel()

	for _, op := range operations {
		if err := newRequest(t, op.request).routed(); err != nil {
			t.Errorf("%s: got %v", op.name, err)
		}

		common := " x-amz-date=1 x-amz-user-agent=x x-amz-request-payer=requester"
		for _, header := range strings.Fields(op.obeys + common) {
			if err := newRequest(t, op.request+" "+header).routed(); err != nil {
				t.Errorf("%s with %s: got %v", op.name, header, err)
			}
		}

		for _, header := range strings.Fields(modelHeaders) {
			if strings.Contains(" "+op.obeys+" ", " "+header+" ") {
				continue
			}
			if err := newRequest(t, op.request+" "+header).routed(); err == nil {
				t.Errorf("%s with %s: accepted", op.name, header)
			}
		}

		for _, name := range conditions {
			if strings.Contains(" "+op.obeys, " "+strings.ToLower(name)+"=") {
				continue
			}
			if got := newRequest(t, op.request+" "+name+"=x").routed(); codeOf(got) != "NotImplemented" {
				t.Errorf("%s with %s: got %v, want NotImplemented", op.name, name, got)
			}
		}
	}
}

// TestParametersOfOperations checks that parameters of other operations are refused.
func TestParametersOfOperations(t *testing.T) {
	t.Parallel()

	for _, param := range []string{"append", "torrent", "restore", "select", "session", "renameObject", "annotation",
		"metadataJournalTable", "new-idea", "version-id", "X-Amz-Signature"} {
		for _, op := range operations {
			at, headers, _ := strings.Cut(strings.TrimSpace(op.request), " x-amz-")
			if headers != "" {
				headers = " x-amz-" + headers
			}
			separator := "?"
			if strings.Contains(at, "?") {
				separator = "&"
			}

			got := newRequest(t, at+separator+param+"=1"+headers).routed()
			if codeOf(got) != "NotImplemented" {
				t.Errorf("%s with the parameter %s: got %v, want NotImplemented", op.name, param, got)
			}
		}
	}

	for request, want := range map[string]string{
		"PUT /b/k?versionId=2": "NotImplemented", "GET /b/k?versionId=2": "NoSuchVersion",
		"PATCH /b/k":        "MethodNotAllowed",
		"POST /b/k?restore": "NotImplemented", "PUT /b?versioning": "NotImplemented",
		"PUT /b/k?uploadId=1": "NotImplemented",
		"GET /b/k?x-log=1":    "",
	} {
		if err := newRequest(t, request).routed(); codeOf(err) != want {
			t.Errorf("%s: got %v, want %q", request, err, want)
		}
	}
}

// TestHoist checks that headers in the query of a presigned URL count as such.
func TestHoist(t *testing.T) {
	t.Parallel()

	c := newRequest(t, "PUT /b/k?X-Amz-Signature=1&X-Amz-Date=2&x-amz-meta-a=b&X-Amz-Acl=private&x-id=PutObject")
	c.signature.isPresigned = true
	if err := c.hoist(); err != nil || c.r.Header.Get("X-Amz-Meta-A") != "b" || c.routed() != nil {
		t.Errorf("got %v, %v", c.r.Header, err)
	}
	if got := c.r.Header.Get("X-Amz-Signature") + c.r.Header.Get("X-Amz-Date"); got != "" {
		t.Errorf("got %q of the signature in the headers", got)
	}

	c = newRequest(t, "PUT /b/k?x-amz-tagging=a")
	c.signature.isPresigned = true
	if err := c.hoist(); err != nil || codeOf(c.routed()) != "NotImplemented" {
		t.Errorf("tags in the query: got %v", c.routed())
	}

	c = newRequest(t, "PUT /b/k?x-amz-meta-a=b x-amz-meta-a=c")
	c.signature.isPresigned = true
	if got := codeOf(c.hoist()); got != "InvalidArgument" {
		t.Errorf("two values: got %q, want InvalidArgument", got)
	}
}
