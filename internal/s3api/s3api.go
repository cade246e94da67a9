// Package s3api serves a project's files by the S3 protocol, so that programs made for Amazon S3
// work unchanged: signatures, chunked bodies, routes, XML and errors.
//
// Rules and rows belong to package object. Keys bypass policies. Package server finds the project
// of a request and knows the keys.
package s3api

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// maxBody is the maximum number of bytes of an XML body: 10,000 parts with checksums.
	maxBody   = 4 << 20
	maxDelete = 1000 // objects of one request
	maxList   = 1000 // entries of a list
	namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
)

// server is the actor of all requests: a key has the rights of a secret key of the project.
var server = object.Actor{Role: "service_role"}

// Project is a project that requests are served for.
type Project struct {
	Database *projectdb.Project
	Blobs    *blob.Store
	// Secret returns the secret of an access key, whether it exists or not.
	Secret func(key uuid.UUID) string
	// HasKey fails with NotFound unless the access key exists.
	HasKey func(ctx context.Context, key uuid.UUID) error
	// Discard enqueues the removal of the bytes of deleted objects.
	Discard func(ctx context.Context, project uuid.UUID)
	// Unavailable is the failure of every request to an inactive project, nil of an active one.
	Unavailable *fault.Error
	// Bodies bounds the memory of the XML bodies of all requests.
	Bodies *fair.Pool
}

// call is a request under way.
type call struct {
	*Project
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	body    *body
	name    string // of the bucket
	key     string // of the object, "" for a request on a bucket
	bucket  object.Bucket
	started time.Time
}

// Serve serves a request. path is the escaped part of the path behind the root of the protocol.
func Serve(w http.ResponseWriter, r *http.Request, p *Project, path string) {
	if httpx.ApplicationCORS(w, r) {
		return
	}

	c := &call{Project: p, w: w, r: r, query: r.URL.Query(), started: time.Now()}
	if err := c.serve(path); err != nil {
		c.fail(err)
	}
}

// ServeUnknown answers a request whose project does not exist or could not be found.
func ServeUnknown(w http.ResponseWriter, r *http.Request, err error) {
	if !httpx.ApplicationCORS(w, r) {
		(&call{w: w, r: r}).fail(err)
	}
}

func (c *call) serve(path string) error {
	httpx.From(c.r.Context()).Route = "/projects/{projectUUID}/storage/v1/s3"

	decoded, err := url.PathUnescape(path)
	if err != nil || !pg.Storable(decoded) {
		return malformed("InvalidURI", "Couldn't parse the specified URI")
	}
	if !pg.StorableValues(c.query) {
		return malformed("InvalidArgument", "Parameters must be UTF-8 without null characters")
	}
	c.name, c.key, _ = strings.Cut(strings.TrimPrefix(decoded, "/"), "/")

	if err := c.authenticate(); err != nil {
		return err
	}
	if c.Unavailable != nil {
		return c.Unavailable
	}

	handler, err := c.route()
	if err != nil {
		return err
	}

	if c.name != "" && !(c.key == "" && c.r.Method == http.MethodPut) {
		c.bucket, err = object.FindBucket(c.r.Context(), c.Database, c.name)
		if fault.Is(err, fault.NotFound) {
			return errNoBucket
		}
		if err != nil {
			return err
		}
	}

	return handler(c)
}

// authenticate verifies the signature. A key is looked up only for a request that is signed with
// its secret.
func (c *call) authenticate() error {
	s, err := parseSignature(c.r, c.query, c.started)
	if err != nil {
		return err
	}
	if err := s.verify(c.r, c.query, c.Secret(s.key)); err != nil {
		return err
	}

	err = c.HasKey(c.r.Context(), s.key)
	if fault.Is(err, fault.NotFound) {
		return denied("InvalidAccessKeyId", "The access key does not exist in our records")
	}
	if err != nil {
		return err
	}

	c.awaitEmptyBody()
	httpx.From(c.r.Context()).Key = s.key
	c.body, err = newBody(c.r, s, httpx.NewPacedReader(c.w, c.r))
	return err
}

// awaitEmptyBody sends 100 Continue to a client that expects it before an empty body, as S3 does.
// net/http sends it before other bodies only. Amazon's client for Python misreads the next response
// on the connection without it.
func (c *call) awaitEmptyBody() {
	if c.r.ContentLength == 0 && c.r.ProtoMajor == 1 && strings.EqualFold(c.r.Header.Get("Expect"), "100-continue") {
		c.w.WriteHeader(http.StatusContinue)
	}
}

// route is an operation of the protocol.
type route struct {
	method string
	param  string // query parameter that selects the operation, "" for none
	header string // header that selects it, "" for none
	serve  func(c *call) error
}

var (
	serviceRoutes = []route{{"GET", "", "", (*call).listBuckets}}
	bucketRoutes  = []route{
		{"GET", "location", "", (*call).getLocation},
		{"GET", "versioning", "", (*call).getVersioning},
		{"GET", "uploads", "", (*call).listUploads},
		{"GET", "", "", (*call).listObjects},
		{"HEAD", "", "", (*call).headBucket},
		{"PUT", "", "", (*call).createBucket},
		{"DELETE", "", "", (*call).deleteBucket},
		{"POST", "delete", "", (*call).deleteObjects},
	}
	objectRoutes = []route{
		{"GET", "uploadId", "", (*call).listParts},
		{"GET", "", "", (*call).getObject},
		{"HEAD", "", "", (*call).getObject},
		{"PUT", "partNumber", "X-Amz-Copy-Source", (*call).copyPart},
		{"PUT", "partNumber", "", (*call).uploadPart},
		{"PUT", "", "X-Amz-Copy-Source", (*call).copyObject},
		{"PUT", "", "", (*call).putObject},
		{"DELETE", "uploadId", "", (*call).abortUpload},
		{"DELETE", "", "", (*call).deleteObject},
		{"POST", "uploads", "", (*call).createUpload},
		{"POST", "uploadId", "", (*call).completeUpload},
	}
)

// unsupported are the parameters of operations that this server does not have. Without this list,
// a request for an object's tags would return the object.
var unsupported = []string{"acl", "policy", "policyStatus", "tagging", "lifecycle", "cors", "website", "logging",
	"notification", "encryption", "replication", "object-lock", "legal-hold", "retention", "torrent", "versions",
	"accelerate", "requestPayment", "inventory", "analytics", "metrics", "ownershipControls", "publicAccessBlock",
	"attributes", "select", "restore", "versionId", "append", "renameObject"}

// unsupportedConditions are the headers of conditions on writes that this server can't check.
var unsupportedConditions = []string{"If-Match", "X-Amz-If-Match-Last-Modified-Time", "X-Amz-If-Match-Size"}

// route returns the operation of the request.
func (c *call) route() (func(*call) error, error) {
	for _, name := range unsupported {
		if c.query.Has(name) {
			return nil, errNotImplemented
		}
	}

	for _, name := range unsupportedConditions {
		if c.r.Header.Get(name) != "" && c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
			return nil, errNotImplemented
		}
	}

	routes := objectRoutes
	switch {
	case c.name == "":
		routes = serviceRoutes
	case c.key == "":
		routes = bucketRoutes
	}

	for _, route := range routes {
		if route.method == c.r.Method && (route.param == "" || c.query.Has(route.param)) &&
			(route.header == "" || c.r.Header.Get(route.header) != "") {
			return route.serve, nil
		}
	}

	return nil, errMethod
}

// decode reads the XML body into v.
func (c *call) decode(v any) error {
	ctx := c.r.Context()
	lease, err := c.Bodies.Acquire(ctx, httpx.In(ctx, c.Database.Key(ctx)), maxBody)
	if err != nil {
		return fault.New(fault.TooMany, "Please reduce your request rate").WithCode("SlowDown")
	}
	defer lease.Release()

	text, err := io.ReadAll(io.LimitReader(c.body, maxBody+1))
	if err != nil {
		return readFailure(err)
	}
	if len(text) > maxBody {
		return malformed("MaxMessageLengthExceeded", "Your request was too big")
	}
	if err := xml.Unmarshal(text, v); err != nil {
		return errMalformedXML
	}

	return nil
}

// readFailure returns the failure of a body that could not be read.
func readFailure(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return malformed("IncompleteBody", "The request body could not be read").WithCause(err)
}

// respond writes an XML response.
func (c *call) respond(v any) error {
	text, err := xml.Marshal(v)
	if err != nil {
		return err
	}

	c.w.Header().Set("Content-Type", "application/xml")
	_, _ = c.w.Write(append([]byte(xml.Header), text...)) // fails only if the client has disconnected

	return nil
}

// empty writes a response without a body.
func (c *call) empty(status int) error {
	c.w.WriteHeader(status)
	return nil
}
