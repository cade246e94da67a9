package s3api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// route is an S3 operation with all that a request for it may have. A request with anything else is
// refused: a server that ignores what it does not know would, for example, replace an object by the
// bytes that the client asked to append.
type route struct {
	method   string
	resource string   // query parameter that selects the operation, "" for none
	header   string   // header that selects it, "" for none
	params   []string // other query parameters
	headers  headers  // headers that the operation obeys, beside the common ones
	serve    func(c *call) error

	creates bool // creates the request's bucket
	// objectSums reports that checksum headers cover the object, not the body.
	objectSums bool
}

// Query parameters for lists and downloads.
var (
	listParams    = []string{"prefix", "delimiter", "max-keys", "encoding-type"}
	versionParams = []string{"versionId"}
	readParams    = append([]string{"partNumber", "response-cache-control", "response-content-disposition",
		"response-content-encoding", "response-content-language", "response-content-type", "response-expires"},
		versionParams...)
)

// minioMetadata asks for metadata in a list, which Amazon has not. MinIO's programs always send it,
// and do without.
const minioMetadata = "metadata"

// The operations. A request takes the first that it matches, so those on sub-resources go first.
var (
	serviceRoutes = []route{{method: "GET", params: []string{"prefix", "max-buckets", "continuation-token"},
		serve: (*call).listBuckets}}

	bucketRoutes = append(configurationRoutes(bucketConfigurations), []route{
		{method: "GET", resource: "acl", serve: (*call).getACL},
		{method: "GET", resource: "uploads", serve: (*call).listUploads,
			params: []string{"prefix", "key-marker", "upload-id-marker", "max-uploads", "encoding-type"}},
		{method: "GET", resource: "versions", headers: listHeaders, serve: (*call).listVersions,
			params: append([]string{"key-marker", "version-id-marker"}, listParams...)},
		{method: "GET", resource: "list-type", headers: listHeaders, serve: (*call).listObjects,
			params: append([]string{"continuation-token", "start-after", "fetch-owner", minioMetadata}, listParams...)},
		{method: "GET", params: append([]string{"marker"}, listParams...), headers: listHeaders,
			serve: (*call).listObjects},
		{method: "HEAD", serve: (*call).headBucket},
		{method: "PUT", headers: bucketHeaders, creates: true, serve: (*call).createBucket},
		{method: "DELETE", serve: (*call).deleteBucket},
		{method: "POST", resource: "delete", headers: join(bodyHeaders, deleteHeaders), serve: (*call).deleteObjects},
	}...)

	objectRoutes = append(configurationRoutes(objectConfigurations, versionParams...), []route{
		{method: "GET", resource: "acl", params: versionParams, serve: (*call).getACL},
		{method: "GET", resource: "attributes", params: versionParams, headers: attributeHeaders,
			serve: (*call).getAttributes},
		{method: "GET", resource: "uploadId", params: []string{"max-parts", "part-number-marker"},
			serve: (*call).listParts},
		{method: "GET", params: readParams, headers: readHeaders, serve: (*call).getObject},
		{method: "HEAD", params: readParams, headers: readHeaders, serve: (*call).getObject},
		{method: "PUT", resource: "partNumber", header: "X-Amz-Copy-Source", params: []string{"uploadId"},
			headers: join(sourceHeaders, rangeHeaders), serve: (*call).copyPart},
		{method: "PUT", resource: "partNumber", params: []string{"uploadId"}, headers: bodyHeaders,
			serve: (*call).uploadPart},
		{method: "PUT", header: "X-Amz-Copy-Source", serve: (*call).copyObject,
			headers: join(objectHeaders, sourceHeaders, copyHeaders, absentOnly)},
		{method: "PUT", headers: join(objectHeaders, bodyHeaders, absentOnly), serve: (*call).putObject},
		{method: "DELETE", resource: "uploadId", serve: (*call).abortUpload},
		{method: "DELETE", params: versionParams, headers: deleteHeaders, serve: (*call).deleteObject},
		{method: "POST", resource: "uploads", headers: join(objectHeaders, partsHeaders), serve: (*call).createUpload},
		{method: "POST", resource: "uploadId", headers: join(completeHeaders, absentOnly), objectSums: true,
			serve: (*call).completeUpload},
	}...)
)

// signatureParams are the query parameters that make up a presigned URL's signature.
var signatureParams = []string{"x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires",
	"x-amz-signedheaders", "x-amz-signature", "x-amz-content-sha256"}

// route returns the request's operation.
func (c *call) route() (route, error) {
	routes := objectRoutes
	switch {
	case c.name == "":
		routes = serviceRoutes
	case c.key == "":
		routes = bucketRoutes
	}

	for _, r := range routes {
		if r.method == c.r.Method && (r.resource == "" || c.query.Has(r.resource)) &&
			(r.header == "" || c.r.Header.Get(r.header) != "") {
			return r, nil
		}
	}
	if len(c.query) > 0 {
		return route{}, errNotImplemented
	}

	return route{}, errMethod
}

// checkRequest fails unless the operation knows all the request's query parameters and obeys its
// headers.
func (c *call) checkRequest(r route) error {
	for name := range c.query {
		if name == r.resource || slices.Contains(r.params, name) || c.isForeign(name) {
			continue
		}
		return fault.New(fault.Invalid, "The parameter %s implies functionality that is not implemented", name).
			WithCode("NotImplemented")
	}
	if id := c.query.Get("versionId"); id != "" && id != nullVersion {
		return errNoVersion
	}

	for name, values := range c.r.Header {
		if !isProtocolHeader(name) && !slices.Contains(conditions, name) {
			continue
		}
		if strings.HasPrefix(name, metadataPrefix) {
			name = metadataPrefix
		}

		obey, ok := r.headers[name]
		if !ok {
			obey, ok = commonHeaders[name]
		}
		if !ok {
			return unknownHeader(name)
		}
		if err := obey(c, name, strings.Join(values, ",")); err != nil {
			return err
		}
	}

	return nil
}

// isForeign reports whether a query parameter belongs to no operation: the operation name, which
// clients add, a part of the signature, a header, which is checked as such, or a word for a request
// log.
func (c *call) isForeign(name string) bool {
	if isProtocolHeader(name) {
		return c.signature.isPresigned
	}
	return strings.HasPrefix(strings.ToLower(name), "x-")
}

// isProtocolHeader reports whether name is an S3 header, in any case.
func isProtocolHeader(name string) bool {
	const prefix = "x-amz-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// requestSums returns the request with only the checksums that cover the body. The operation checks
// those that cover the object.
func (c *call) requestSums(r route) *http.Request {
	if !r.objectSums {
		return c.r
	}

	without := *c.r
	without.Header = c.r.Header.Clone()
	for header := range sums {
		if isProtocolHeader(header) {
			without.Header.Del(header)
		}
	}

	return &without
}
