// Package storageapi serves applications' files over HTTP by the Supabase Storage contract, so that
// its clients work unchanged: routes, bodies and errors.
//
// Rules and rows belong to package object. Package gateway finds a request's project and verifies
// keys and tokens.
package storageapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
	"github.com/socle-dev/socle/internal/tus"
)

// maxBody is the maximum size in bytes for a JSON body: 1000 names.
const maxBody = 2 << 20

// Prefix is the interface's path below the project's.
const Prefix = "/storage/v1"

// Config has the dependencies that projects share.
type Config struct {
	Blobs    *blob.Store
	Variants *object.Variants // shared with the platform API, which bounds the memory of both
	// Discard enqueues removing the bytes that deleted objects leave.
	Discard func(ctx context.Context, project uuid.UUID)
	// SignKey is the HMAC key for tokens in signed URLs.
	SignKey []byte
	// Bodies bounds the memory for JSON bodies in all requests.
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
	w     http.ResponseWriter
	r     *http.Request
	path  string // escaped, behind /storage/v1
	actor actor.Actor
	// member is the platform user behind the request; nil: none.
	member *gateway.Member
	// trueStatus reports that failures have the true status, not 400.
	trueStatus bool
}

type route struct {
	method, prefix string // the rest of the path is passed to serve
	access         access
	work           work
	serve          func(c *call, rest string) error
}

// access tells how a route's caller is identified.
type access int

const (
	byKey  access = iota // by a key or an end user's token
	anyone               // not at all, or by the token in the URL
)

// work decides about a route's limits.
type work int

const (
	brief     work = iota // ends within requestTimeout
	streaming             // sends or receives bytes as long as the client goes on
)

// requestTimeout bounds a request that transfers no object bytes.
const requestTimeout = 30 * time.Second

// A request takes the route with the longest prefix.
var routes = []route{
	{"GET", "/status", anyone, brief, (*call).status},
	{"HEAD", "/status", anyone, brief, (*call).status},
	{"GET", "/version", anyone, brief, (*call).version},
	{"HEAD", "/version", anyone, brief, (*call).version},

	{"GET", "/bucket", byKey, brief, (*call).listBuckets},
	{"POST", "/bucket", byKey, brief, (*call).createBucket},
	{"GET", "/bucket/", byKey, brief, (*call).getBucket},
	{"PUT", "/bucket/", byKey, brief, (*call).updateBucket},
	{"DELETE", "/bucket/", byKey, brief, (*call).deleteBucket},
	{"POST", "/bucket/", byKey, brief, (*call).emptyBucket},

	{"GET", "/object/public/", anyone, streaming, (*call).downloadPublic},
	{"HEAD", "/object/public/", anyone, streaming, (*call).downloadPublic},
	{"GET", "/object/authenticated/", byKey, streaming, (*call).download},
	{"HEAD", "/object/authenticated/", byKey, streaming, (*call).download},
	{"GET", "/object/", byKey, streaming, (*call).download},
	{"HEAD", "/object/", byKey, streaming, (*call).download},
	{"POST", "/object/", byKey, streaming, (*call).upload},
	{"PUT", "/object/", byKey, streaming, (*call).replace},
	{"DELETE", "/object/", byKey, brief, (*call).remove},

	{"GET", "/object/info/public/", anyone, brief, (*call).infoPublic},
	{"HEAD", "/object/info/public/", anyone, brief, (*call).infoPublic},
	{"GET", "/object/info/authenticated/", byKey, brief, (*call).info},
	{"HEAD", "/object/info/authenticated/", byKey, brief, (*call).info},
	{"GET", "/object/info/", byKey, brief, (*call).info},
	{"HEAD", "/object/info/", byKey, brief, (*call).info},

	{"POST", "/object/list/", byKey, brief, (*call).list},
	{"POST", "/object/list-v2/", byKey, brief, (*call).listByCursor},
	{"POST", "/object/move", byKey, brief, (*call).move},
	{"POST", "/object/copy", byKey, streaming, (*call).copy},

	{"POST", "/object/sign/", byKey, brief, (*call).signDownload},
	{"GET", "/object/sign/", anyone, streaming, (*call).downloadSigned},
	{"HEAD", "/object/sign/", anyone, streaming, (*call).downloadSigned},
	{"POST", "/object/upload/sign/", byKey, brief, (*call).signUpload},
	{"PUT", "/object/upload/sign/", anyone, streaming, (*call).uploadSigned},

	{"GET", "/render/image/public/", anyone, streaming, (*call).renderPublic},
	{"GET", "/render/image/authenticated/", byKey, streaming, (*call).render},
	{"GET", "/render/image/sign/", anyone, streaming, (*call).renderSigned},

	{"POST", tusPath, byKey, streaming, (*call).tus},
	{"HEAD", tusPath + "/", byKey, brief, (*call).tus},
	{"PATCH", tusPath + "/", byKey, streaming, (*call).tus},
	{"DELETE", tusPath + "/", byKey, brief, (*call).tus},
	{"POST", tusSignPath, anyone, streaming, (*call).tusSigned},
	{"HEAD", tusSignPath + "/", anyone, brief, (*call).tusSigned},
	{"PATCH", tusSignPath + "/", anyone, streaming, (*call).tusSigned},
	{"DELETE", tusSignPath + "/", anyone, brief, (*call).tusSigned},
}

// serve serves a request. path is the escaped URL path after [Prefix].
func (p *project) serve(w http.ResponseWriter, r *http.Request, path string) {
	resumable := strings.HasPrefix(path, tusPath)
	if resumable {
		tusHeaders(w.Header())
		tus.OverrideMethod(r)
	}
	if httpx.ApplicationCORS(w, r) {
		return
	}

	c := &call{project: p, w: w, r: r, path: path, trueStatus: resumable}
	if err := c.dispatch(); err != nil {
		c.fail(err)
	}
}

// fail answers a request whose project does not exist or could not be opened.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !httpx.ApplicationCORS(w, r) {
		(&call{w: w, r: r}).fail(err)
	}
}

func (c *call) dispatch() error {
	path, err := url.PathUnescape(c.path)
	if err != nil {
		return fault.New(fault.Invalid, "Invalid path")
	}
	if !pg.Storable(path) {
		return fault.New(fault.Invalid, "Invalid key: %q", path).WithCode("InvalidKey")
	}
	switch part := httpx.HostileText(c.r); part {
	case "":
	case "query":
		return fault.New(fault.Invalid, "querystring must be UTF-8 without null characters")
	default:
		return fault.New(fault.Invalid, "%s must be UTF-8 without null characters", part)
	}

	var match route
	for _, route := range routes {
		if route.matches(c.r.Method, path) && len(route.prefix) > len(match.prefix) {
			match = route
		}
	}
	if match.serve == nil {
		return c.noRoute()
	}

	request := httpx.From(c.r.Context())
	request.Route = "/projects/{projectUUID}" + Prefix + strings.TrimSuffix(match.prefix, "/")
	if strings.HasSuffix(match.prefix, "/") && !strings.HasPrefix(match.prefix, tusPath) { // a bucket follows
		request.Target, _, _ = strings.Cut(c.path[min(len(match.prefix), len(c.path)):], "/")
	}
	if err := c.identify(match); err != nil {
		return err
	}

	if c.Inactive != nil {
		return c.Inactive
	}
	if err := c.checkHeaders(match); err != nil {
		return err
	}
	if err := c.clearWrite(match); err != nil {
		return err
	}

	if match.work == brief {
		ctx, cancel := context.WithTimeout(c.r.Context(), requestTimeout)
		defer cancel()

		c.r = c.r.WithContext(ctx)
	}

	return match.serve(c, path[len(match.prefix):])
}

// matches reports whether the route serves a path. A prefix without a trailing slash is the whole
// path.
func (r route) matches(method, path string) bool {
	if r.method != method {
		return false
	}
	if strings.HasSuffix(r.prefix, "/") {
		return strings.HasPrefix(path, r.prefix) && path != r.prefix
	}

	return strings.TrimSuffix(path, "/") == r.prefix
}

// unsupportedHeaders change a request's meaning, and no change here obeys them: ignoring one would,
// for example, replace an object by a part.
var unsupportedHeaders = []string{
	"Content-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
}

// unsupportedTusHeaders are headers from tus extensions that the server does not announce.
var unsupportedTusHeaders = []string{"Upload-Concat", "Upload-Checksum"}

// checkHeaders fails if the request is a change with a header that the change would ignore.
func (c *call) checkHeaders(r route) error {
	if r.method == http.MethodGet || r.method == http.MethodHead {
		return nil
	}

	names := unsupportedHeaders
	if strings.HasPrefix(r.prefix, tusPath) {
		names = slices.Concat(unsupportedHeaders, unsupportedTusHeaders)
	}
	for _, name := range names {
		if c.r.Header.Get(name) != "" {
			return fault.New(fault.Invalid, "The header %s is not supported here", strings.ToLower(name)).
				WithCode("NotImplemented")
		}
	}

	return nil
}

func (c *call) noRoute() error {
	path, err := url.PathUnescape(c.path)
	if err != nil {
		path = c.path
	}

	return fault.New(fault.NotFound, "Route %s:%s not found", c.r.Method, path).WithCode("RouteNotFound")
}

// identify identifies the caller as the route demands. A route without credentials refuses the
// header that acts as another caller, since it would ignore it.
func (c *call) identify(r route) error {
	if r.access == byKey {
		return c.authenticate()
	}

	if c.r.Header.Get(gateway.AsHeader) != "" {
		return fault.New(fault.Invalid, "The header %s is not supported here: the address takes no credentials",
			strings.ToLower(gateway.AsHeader))
	}

	return nil
}

// readingPosts are the prefixes of routes that read by POST. A viewer may sign downloads, as by the
// platform API.
var readingPosts = []string{"/object/list/", "/object/list-v2/", "/object/sign/"}

// reads reports whether a route changes nothing.
func (r route) reads() bool {
	return r.method == http.MethodGet || r.method == http.MethodHead ||
		(r.method == http.MethodPost && slices.Contains(readingPosts, r.prefix))
}

// clearWrite admits a member's change, and adds it to the project's audit log.
func (c *call) clearWrite(r route) error {
	if c.member == nil || r.reads() {
		return nil
	}

	if err := c.member.RequireWrite(); err != nil {
		return err
	}

	return c.Audit(c.r.Context(), c.r, c.member, gateway.Write{Action: audit.ChangeFiles})
}

// authenticate identifies the caller by its key or token. A token in the Authorization header goes
// first, but clients repeat the key there. A personal access token has no dot either.
func (c *call) authenticate() error {
	scheme, text, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	if key := c.r.Header.Get("Apikey"); !strings.EqualFold(scheme, "bearer") || text == "" ||
		(key != "" && !strings.Contains(text, ".") && !strings.HasPrefix(text, token.PersonalPrefix)) {
		text = key
	}
	if text == "" {
		return fault.New(fault.Forbidden, "Invalid Compact JWS").WithCode("AccessDenied")
	}

	caller, err := c.Identify(c.r, text)
	if fault.Is(err, fault.Unauthenticated) {
		return fault.New(fault.Forbidden, "%s", fault.Of(err).Detail).WithCode("AccessDenied").WithCause(err)
	}
	if err != nil {
		return err
	}

	switch caller.Role {
	case "anon", "authenticated", "service_role":
	case "":
		caller.Role = "anon"
	default:
		return fault.New(fault.Forbidden, "The role of the token is none of the Storage API").WithCode("AccessDenied")
	}

	c.member = caller.Member
	c.actor = actor.Actor{Role: caller.Role, Claims: caller.Claims, Subject: caller.Subject,
		Timeout: c.StatementTimeout(caller.Role)}
	return nil
}

// decode reads the JSON body into v.
func (c *call) decode(v any) error {
	ctx := c.r.Context()
	lease, err := c.Bodies.Acquire(ctx, httpx.In(ctx, c.Database.Key(ctx)), maxBody)
	if err != nil {
		return fault.New(fault.TooMany, "Too many requests").WithCode("SlowDown")
	}
	defer lease.Release()

	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fault.New(fault.TooLarge, "The body is larger than %d bytes", maxBody).WithCode("EntityTooLarge")
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if path, want := httpx.WrongType(body, err); path != "" {
		return fault.New(fault.Invalid, "body/%s must be %s", path, want).WithCause(err)
	}
	if err != nil {
		return fault.New(fault.Invalid, "The body must be a JSON object").WithCause(err)
	}
	if !pg.StorableJSON(body) {
		return fault.New(fault.Invalid, "The body must be UTF-8, without null characters, lone surrogates and numbers out "+
			"of range")
	}

	return nil
}

// status answers client probes, with an empty body.
func (c *call) status(string) error {
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// version sends the server's version.
func (c *call) version(string) error {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = io.WriteString(c.w, build.Version()) // fails only if the client has disconnected
	}

	return nil
}

// respond writes a response.
func (c *call) respond(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}

	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return nil
	}
	_, _ = c.w.Write(text) // fails only if the client has disconnected

	return nil
}
