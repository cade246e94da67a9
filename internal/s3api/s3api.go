// Package s3api serves a project's files over the S3 protocol, so that programs made for Amazon S3
// work unchanged: signatures, chunked bodies, routes, XML and errors.
//
// Rules and rows belong to package object. Keys bypass policies. Package gateway finds a request's
// project and its keys.
package s3api

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	// maxBody is the maximum XML body size in bytes: 10,000 parts with checksums.
	maxBody   = 4 << 20
	maxDelete = 1000 // objects per request
	maxList   = 1000 // entries per list
	namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
)

// server is the actor in all requests: a key has the same rights as a project's secret key.
var server = actor.Service()

// Prefix is the S3 root path below the project's.
const Prefix = "/storage/v1/s3"

// Config has the dependencies that projects share.
type Config struct {
	Blobs *blob.Store
	// Discard enqueues removing the bytes that deleted objects leave.
	Discard func(ctx context.Context, project uuid.UUID)
	// Bodies bounds the memory for XML bodies in all requests.
	Bodies *fair.Pool
}

// New returns the gateway interface.
func New(c Config) gateway.Interface {
	open := func(p *gateway.Project, _ gateway.Cache) (gateway.Handler, error) {
		return gateway.Handler{Serve: (&project{&c, p}).serve}, nil
	}

	return gateway.Interface{Prefix: Prefix, Open: open, Fail: fail}
}

type project struct {
	*Config
	*gateway.Project
}

// call is a request in progress.
type call struct {
	*project
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values
	body   *body
	name   string // bucket name
	key    string // object key, "" for a bucket request
	bucket object.Container
	start  time.Time

	signature *signature
	rootPath  string // escaped path of the S3 root
}

// serve serves a request. path is the escaped URL path after [Prefix].
func (p *project) serve(w http.ResponseWriter, r *http.Request, path string) {
	if httpx.ApplicationCORS(w, r) {
		return
	}

	c := &call{project: p, w: w, r: r, query: r.URL.Query(), start: time.Now(),
		rootPath: strings.TrimSuffix(r.URL.EscapedPath(), path)}
	if err := c.dispatch(path); err != nil {
		c.fail(err)
	}
}

// fail answers a request whose project does not exist or could not be opened.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !httpx.ApplicationCORS(w, r) {
		(&call{w: w, r: r}).fail(err)
	}
}

func (c *call) dispatch(path string) error {
	request := httpx.From(c.r.Context())
	request.Route = "/projects/{projectUUID}" + Prefix
	request.Target, _, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/") // the bucket

	plainPath, err := url.PathUnescape(path)
	if err != nil || !pg.Storable(plainPath) {
		return malformed("InvalidURI", "Couldn't parse the specified URI")
	}
	if part := httpx.HostileText(c.r); part == "query" {
		return malformed("InvalidArgument", "Parameters must be UTF-8 without null characters")
	}
	c.name, c.key, _ = strings.Cut(strings.TrimPrefix(plainPath, "/"), "/")

	if c.isForm() {
		return c.postObject()
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	if c.Inactive != nil {
		return c.Inactive
	}

	route, err := c.route()
	if err != nil {
		return err
	}

	if c.name != "" && !route.creates {
		if err := c.findBucket(); err != nil {
			return err
		}
	}
	if err := c.checkRequest(route); err != nil {
		return err
	}

	content := httpx.NewPacedReader(c.w, c.r)
	if c.body, err = newBody(c.requestSums(route), c.signature, content); err != nil {
		return err
	}

	return route.serve(c)
}

// findBucket finds the request's bucket.
func (c *call) findBucket() (err error) {
	c.bucket, err = object.GetContainer(c.r.Context(), c.Database, server, object.ContainerRef{ID: c.name})
	if fault.Is(err, fault.NotFound) {
		return errNoBucket
	}

	return err
}

// authenticate verifies the signature.
func (c *call) authenticate() error {
	s, err := parseSignature(c.r, c.query, c.start)
	if err != nil {
		return err
	}
	if err := s.verify(c.r, c.query, c.S3Secret(s.key)); err != nil {
		return err
	}
	if err := c.hasKey(s.key); err != nil {
		return err
	}

	c.awaitEmptyBody()
	c.signature = s

	return c.hoist()
}

// hasKey fails unless the access key exists. A key is looked up only for a request that is signed
// with its secret.
func (c *call) hasKey(key uuid.UUID) error {
	err := c.VerifyS3Key(c.r.Context(), key)
	if fault.Is(err, fault.Unauthenticated) {
		return denied("InvalidAccessKeyId", "The access key does not exist in our records")
	}
	if err == nil {
		httpx.From(c.r.Context()).Key = key
	}

	return err
}

// hoist moves S3 headers from a presigned URL's query, where clients put them, to the headers.
func (c *call) hoist() error {
	if !c.signature.isPresigned {
		return nil
	}

	for name, values := range c.query {
		if !isProtocolHeader(name) || slices.Contains(signatureParams, strings.ToLower(name)) {
			continue
		}

		value := strings.Join(values, ",")
		if headers := c.r.Header.Values(name); len(headers) > 0 && strings.Join(headers, ",") != value {
			return malformed("InvalidArgument", name+" has another value in the query than in the headers")
		}
		c.r.Header.Set(name, value)
	}

	return nil
}

// awaitEmptyBody sends 100 Continue to a client that expects it before an empty body, as S3 does.
// net/http sends it before other bodies only. Amazon's client for Python misreads the next response
// on the connection without it.
func (c *call) awaitEmptyBody() {
	if c.r.ContentLength == 0 && c.r.ProtoMajor == 1 && strings.EqualFold(c.r.Header.Get("Expect"), "100-continue") {
		c.w.WriteHeader(http.StatusContinue)
	}
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

// readFailure returns the failure for a body that could not be read.
func readFailure(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return malformed("IncompleteBody", "The request body could not be read").WithCause(err)
}

// respond writes an XML response.
func (c *call) respond(v any) error { return c.respondWith(http.StatusOK, v) }

func (c *call) respondWith(status int, v any) error {
	text, err := xml.Marshal(v)
	if err != nil {
		return err
	}

	c.w.Header().Set("Content-Type", "application/xml")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append([]byte(xml.Header), text...)) // fails only if the client has disconnected

	return nil
}

// empty writes a response without a body.
func (c *call) empty(status int) error {
	c.w.WriteHeader(status)
	return nil
}
