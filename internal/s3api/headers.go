package s3api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// headers are the headers that an operation obeys. Each function fails on a value that this server
// can't obey.
type headers map[string]func(c *call, name, value string) error

// conditions are the standard HTTP headers that change a request's meaning. The server must not
// ignore one that the operation does not check.
var conditions = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
	"Content-Range"}

// nullVersion is every object's version: buckets are not versioned.
const nullVersion = "null"

// Headers by subject. For those that ask for the default, there is nothing to do.
var (
	commonHeaders = headers{
		"X-Amz-Date": obeyed, "X-Amz-Content-Sha256": obeyed, "X-Amz-User-Agent": obeyed,
		"X-Amz-Expected-Bucket-Owner": isOwner, "X-Amz-Request-Payer": only("requester"),
		"X-Amz-Security-Token": refuseToken,
	}

	// bodyHeaders describe a request body.
	bodyHeaders = join(sumHeaders(), headers{
		"X-Amz-Decoded-Content-Length": obeyed, "X-Amz-Trailer": obeyed,
		"X-Amz-Sdk-Checksum-Algorithm": isAlgorithm, "X-Amz-Checksum-Algorithm": isAlgorithm,
	})

	// objectHeaders describe an object to store.
	objectHeaders = headers{
		metadataPrefix: obeyed, "X-Amz-Acl": isObjectACL, "X-Amz-Storage-Class": only("STANDARD"),
		"X-Amz-Tagging": only(""), "X-Amz-Object-Lock-Legal-Hold": only("OFF"),
		"X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": only("false"),
	}
	absentOnly  = headers{"If-None-Match": only("*")}
	copyHeaders = headers{
		"X-Amz-Metadata-Directive": isDirective, "X-Amz-Tagging-Directive": isDirective,
	}
	sourceHeaders = headers{
		"X-Amz-Copy-Source": obeyed, "X-Amz-Source-Expected-Bucket-Owner": isOwner,
		"X-Amz-Copy-Source-If-Match": obeyed, "X-Amz-Copy-Source-If-None-Match": obeyed,
		"X-Amz-Copy-Source-If-Modified-Since": isTime, "X-Amz-Copy-Source-If-Unmodified-Since": isTime,
	}
	rangeHeaders = headers{"X-Amz-Copy-Source-Range": obeyed}

	partsHeaders = headers{
		"X-Amz-Checksum-Algorithm": isAlgorithm, "X-Amz-Checksum-Type": only("FULL_OBJECT", "COMPOSITE"),
	}
	completeHeaders = join(sumHeaders(), headers{
		"X-Amz-Mp-Object-Size": isSize, "X-Amz-Checksum-Type": only("FULL_OBJECT", "COMPOSITE"),
	})

	readHeaders = headers{
		"X-Amz-Checksum-Mode": only("ENABLED"), "If-Match": obeyed, "If-None-Match": obeyed,
		"If-Modified-Since": obeyed, "If-Unmodified-Since": obeyed, "If-Range": obeyed,
	}
	attributeHeaders = headers{
		"X-Amz-Object-Attributes": obeyed, "X-Amz-Max-Parts": isSize, "X-Amz-Part-Number-Marker": isSize,
	}
	listHeaders   = headers{"X-Amz-Optional-Object-Attributes": only("RestoreStatus")}
	deleteHeaders = headers{"X-Amz-Bypass-Governance-Retention": only("true", "false")}
	bucketHeaders = headers{
		"X-Amz-Acl": only("private", publicRead), "X-Amz-Bucket-Object-Lock-Enabled": only("false"),
		"X-Amz-Object-Ownership": only("BucketOwnerEnforced"), "X-Amz-Bucket-Namespace": only("global"),
	}
)

const publicRead = "public-read"

// join returns the union of header sets.
func join(sets ...headers) headers {
	all := headers{}
	for _, set := range sets {
		maps.Copy(all, set)
	}

	return all
}

// sumHeaders returns the S3 checksum headers.
func sumHeaders() headers {
	all := headers{}
	for name := range sums {
		if isProtocolHeader(name) {
			all[name] = obeyed
		}
	}

	return all
}

// obeyed accepts all values: the operation checks them.
func obeyed(*call, string, string) error { return nil }

// only accepts the values that ask for what this server does anyway.
func only(values ...string) func(c *call, name, value string) error {
	return func(_ *call, name, value string) error {
		if !slices.Contains(values, value) {
			return unknownHeader(name)
		}
		return nil
	}
}

func unknownHeader(name string) error {
	return fault.New(fault.Invalid, "A header you provided implies functionality that is not implemented: %s",
		strings.ToLower(name)).WithCode("NotImplemented")
}

// isOwner fails if a client expects another bucket owner.
func isOwner(c *call, name, value string) error {
	if value != c.owner().ID {
		return denied("AccessDenied", "Access Denied: "+strings.ToLower(name)+" is not the owner of the bucket")
	}
	return nil
}

func refuseToken(*call, string, string) error {
	return malformed("InvalidToken",
		"The provided token is malformed or otherwise invalid: keys have no session tokens")
}

func isAlgorithm(_ *call, name, value string) error {
	if sums[http.CanonicalHeaderKey("x-amz-checksum-"+value)] == nil {
		return unknownHeader(name)
	}
	return nil
}

// isObjectACL accepts ACLs that give no one more than the bucket does.
func isObjectACL(c *call, name, value string) error {
	switch value {
	case "private", "bucket-owner-read", "bucket-owner-full-control":
		return nil
	case publicRead:
		if c.bucket.IsPublic {
			return nil
		}
	}

	return unknownHeader(name)
}

func isDirective(_ *call, name, value string) error {
	if value != "COPY" && value != "REPLACE" {
		return malformed("InvalidArgument", "Unknown "+strings.ToLower(name))
	}
	return nil
}

func isTime(_ *call, name, value string) error {
	if _, err := http.ParseTime(value); err != nil {
		return malformed("InvalidArgument", strings.ToLower(name)+" must be a date of HTTP")
	}
	return nil
}

func isSize(_ *call, name, value string) error {
	if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < 0 {
		return malformed("InvalidArgument", strings.ToLower(name)+" must be a number")
	}
	return nil
}
