package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/openapi"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/session"
)

const (
	openAPIType     = "application/openapi+json; charset=utf-8"
	descriptionTTL  = 5 * time.Second // lifetime of a cached description, since GRANT is not notified
	maxDescriptions = 16              // cached per server
)

// Description returns the OpenAPI description of a role's privileges, for a server whose root has
// the given URL. It fails as requests of that role do.
func (s *Server) Description(ctx context.Context, role, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}

	recorder := &responseRecorder{header: http.Header{}}
	c := call{
		server:   s,
		w:        recorder,
		r:        r,
		path:     "/",
		caller:   Caller{Role: role, Claims: []byte("{}")},
		route:    route{target: catalog.Name{Schema: s.Schemas[0]}},
		deadline: time.Now().Add(s.Limits.Timeout),
	}

	var ok bool
	if c.role, ok = s.Auth.Role(role); !ok {
		return nil, errors.New("describe the schema: unknown role " + role)
	}

	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	snapshot, err := s.Catalog.get(ctx)
	if err != nil {
		return nil, catalogFailure(ctx, err)
	}

	c.snapshot = snapshot
	if err := c.describe(ctx); err != nil {
		return nil, err
	}

	return recorder.body, nil
}

// responseRecorder is an http.ResponseWriter that keeps the response.
type responseRecorder struct {
	header http.Header
	status int
	body   []byte
	max    int // bytes of the body; 0 means any number

	isCut bool // the body is longer than max, and not kept
}

func (r *responseRecorder) Header() http.Header    { return r.header }
func (r *responseRecorder) WriteHeader(status int) { r.status = status }
func (r *responseRecorder) Write(b []byte) (int, error) {
	r.isCut = r.isCut || (r.max > 0 && len(r.body)+len(b) > r.max)
	if !r.isCut {
		r.body = append(r.body, b...)
	}

	return len(b), nil
}

// describe answers requests for the root with the OpenAPI description of the role's privileges in a
// schema.
func (c *call) describe(ctx context.Context) error {
	s := c.server

	kind, err := descriptionType(c.r.Header["Accept"])
	if err != nil {
		return err
	}

	where, err := c.serverURL()
	if err != nil {
		return err
	}

	head, err := openapi.ServerMembers(where)
	if err != nil {
		return err
	}

	c.timings.mark(&c.timings.parse)
	h := c.w.Header()
	vary(h)

	status := http.StatusOK
	c.refresh(ctx)
	schema := c.route.target.Schema
	key := descriptionKey{c.snapshot.Catalog, c.caller.Role, schema}
	body := s.descriptions.get(key)
	if body == nil || s.preRequestSQL != "" { // the pre-request function may refuse
		res, err := c.readPrivileges(ctx)
		if err != nil {
			return err
		}
		defer res.Release()

		c.timings.mark(&c.timings.transaction)

		may := openapi.AllPrivileges
		if s.OpenAPI.Mode != "ignore-privileges" {
			if may, err = openapi.ParsePrivileges(res.Body); err != nil {
				return err
			}
		}

		key.catalog = c.snapshot.Catalog
		described := openapi.Schema{Catalog: key.catalog, Name: schema, Security: s.OpenAPI.Security,
			Credentials: s.OpenAPI.Credentials, Transactions: s.Features.Transactions}
		if body, err = described.Members(may); err != nil {
			return err
		}

		s.descriptions.put(key, body)
		if status, err = s.applyOverrides(h, status, res); err != nil {
			return err
		}
	}

	if h["Content-Type"] == nil {
		c.setHeader(h, "Content-Type", kind)
	}
	if len(s.Schemas) > 1 || c.r.Header["Accept-Profile"] != nil {
		c.setHeader(h, "Content-Profile", c.route.target.Schema)
	}

	head[len(head)-1], body = ',', body[1:]
	if c.writeHead(status, len(head)+len(body)) {
		c.writeBody(head)
		c.writeBody(body)
	}

	return nil
}

// readPrivileges reads the privileges of the role in the schema, with a current catalog.
func (c *call) readPrivileges(ctx context.Context) (*session.Result, error) {
	statement := plan.Plan{SQL: openapi.PrivilegesSQL, Args: []any{c.route.target.Schema}}
	c.planned = plannedRequest{Plan: statement, readOnly: true}

	res, err := c.execute(ctx)
	for attempts := 0; session.IsStaleCatalog(err); attempts++ {
		if err := c.replaceSnapshot(ctx, attempts); err != nil {
			return nil, err
		}
		res, err = c.execute(ctx)
	}

	if isConcurrentDrop(err) {
		return c.execute(ctx)
	}

	return res, err
}

// descriptionType returns the Content-Type of a description for Accept headers.
func descriptionType(header []string) (string, error) {
	all := parseAccept(header)
	if len(all) == 0 {
		return openAPIType, nil
	}

	for _, w := range all {
		switch w.name {
		case "application/openapi+json", "*/*":
			return openAPIType, nil
		case "application/json":
			return jsonType, nil
		}
	}

	return "", notAcceptable(all)
}

// serverURL returns the URL of the root for a description.
func (c *call) serverURL() (*url.URL, error) {
	where := &url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path}
	if c.r.TLS != nil {
		where.Scheme = "https"
	}

	if configured := c.server.OpenAPI.Server; configured != "" {
		var err error
		if where, err = url.Parse(configured); err != nil {
			return nil, fmt.Errorf("parse the server URL of the description: %w", err)
		}
	}

	return where, nil
}

// descriptions caches the descriptions of one catalog.
type descriptions struct {
	ttl time.Duration

	mu      sync.Mutex
	entries map[descriptionKey]cachedDescription
}

// descriptionKey identifies a description.
type descriptionKey struct {
	catalog      *catalog.Catalog
	role, schema string
}

type cachedDescription struct {
	text      []byte
	createdAt time.Time
}

// get returns a fresh description, or nil.
func (d *descriptions) get(key descriptionKey) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()

	if one, ok := d.entries[key]; ok && time.Since(one.createdAt) < d.ttl {
		return one.text
	}

	return nil
}

// put caches a description and evicts outdated ones.
func (d *descriptions) put(key descriptionKey, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.entries == nil {
		d.entries = map[descriptionKey]cachedDescription{}
	}

	for other, one := range d.entries {
		if other.catalog != key.catalog || time.Since(one.createdAt) >= d.ttl || len(d.entries) >= maxDescriptions {
			delete(d.entries, other)
		}
	}

	d.entries[key] = cachedDescription{text, time.Now()}
}

func (d *descriptions) size() (size int) {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, one := range d.entries {
		size += len(one.text)
	}

	return size
}
