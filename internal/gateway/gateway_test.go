package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// echo is an interface that answers with what the gateway tells it. Its handlers note what happens
// to their caches.
type echo struct {
	prefix string
	opened []*echoCache
}

type echoCache struct {
	former    Cache
	size      int
	forgotten int
	closed    bool
}

func (c *echoCache) Size() int { return c.size }
func (c *echoCache) Forget()   { c.forgotten++ }
func (c *echoCache) Close()    { c.closed = true }

func (e *echo) Interface() Interface {
	open := func(p *Project, former Cache) (Handler, error) {
		c := &echoCache{former: former}
		e.opened = append(e.opened, c)

		return Handler{Cache: c, Serve: func(w http.ResponseWriter, r *http.Request, path string) {
			caller, err := p.Verify(r.Context(), r.Header.Get("apikey"))
			if err == nil && p.Inactive != nil {
				err = p.Inactive
			}
			if err != nil {
				e.fail(w, r, err)
				return
			}

			fmt.Fprintf(w, "%s %s as %s, %d rows", e.prefix, path, caller.Role, p.Settings.Rest.MaxRows)
		}}, nil
	}

	return Interface{Prefix: e.prefix, Open: open, Fail: e.fail}
}

func (e *echo) fail(w http.ResponseWriter, _ *http.Request, err error) {
	fmt.Fprintf(w, "%s fails: %s", e.prefix, fault.Of(err).CodeWord())
}

// door is a gateway on a platform database of its own.
type door struct {
	*Gateway
	platformtest.Install
	t       *testing.T
	handler http.Handler
	record  httpx.Finished // the last request
}

func newDoor(t *testing.T, interfaces ...*echo) *door {
	t.Helper()

	d := &door{Install: platformtest.New(t), t: t}
	c := Config{Platform: d.DB, Projects: projectdbtest.NewRegistry(t, 4), PublicURL: "https://socle.example",
		SigningKeys: func(uuid.UUID, int) ([]json.RawMessage, error) { return nil, nil }}
	for _, e := range interfaces {
		c.Interfaces = append(c.Interfaces, e.Interface())
	}

	d.Gateway = New(c)
	d.handler = httpx.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.Serve(w, r, r.URL.EscapedPath()) {
			fmt.Fprint(w, "none")
		}
	}), httpx.Config{Log: slog.New(slog.DiscardHandler), Answered: func(f httpx.Finished) { d.record = f }})

	return d
}

// get sends a request with a key and returns the answer.
func (d *door) get(path, key string) string {
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, path, nil)
	r.Header.Set("apikey", key)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)

	return w.Body.String()
}

func (d *door) want(path, key, want string) {
	d.t.Helper()

	if got := d.get(path, key); got != want {
		d.t.Errorf("%s: got %q, want %q", path, got, want)
	}
}

func TestMatchPath(t *testing.T) {
	t.Parallel()

	g := New(Config{Interfaces: []Interface{{Prefix: "/a/v1"}, {Prefix: "/a/v1/b"}, {Prefix: "/c/v1"}}})
	for path, want := range map[string]string{
		"/projects/p/a/v1": "/a/v1 p /", "/projects/p/a/v1/": "/a/v1 p /", "/projects/p/a/v1/x/y": "/a/v1 p /x/y",
		"/projects/p/a/v1/b": "/a/v1/b p /", "/projects/p/a/v1/b/x": "/a/v1/b p /x",
		"/projects/p/a/v1/bx": "/a/v1 p /bx",
		"/projects//c/v1/%2F": "/c/v1  /%2F", "/projects/p/c/v1/a/v1": "/c/v1 p /a/v1",
		"/projects/p/a/v10": "", "/projects/p/x/a/v1": "", "/projects/p": "", "/projects/": "", "/a/v1": "",
		"/project/p/a/v1": "",
	} {
		got := ""
		if i, project, rest, ok := g.matchPath(path); ok {
			got = strings.Join([]string{g.Interfaces[i].Prefix, project, rest}, " ")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestServeAllocates checks that the gateway adds little to a request whose project and key are
// cached: nothing but the key by which the request shares pools.
func TestServeAllocates(t *testing.T) {
	d := newDoor(t)
	project := d.Project()
	key := d.key(project, "secret")
	path := "/projects/" + project.String() + "/rest/v1/titles"

	d.Gateway = New(Config{Platform: d.DB, Projects: d.Projects, SigningKeys: d.SigningKeys,
		Interfaces: []Interface{{Prefix: "/rest/v1", Open: func(p *Project, _ Cache) (Handler, error) {
			return Handler{Serve: func(_ http.ResponseWriter, r *http.Request, _ string) {
				if c, err := p.Verify(r.Context(), key); err != nil || c.Role != "service_role" {
					t.Errorf("got %v, %v", c, err)
				}
			}}, nil
		}}}})

	var allocations float64
	handler := httpx.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allocations = testing.AllocsPerRun(100, func() { d.Serve(w, r, path) })
	}), httpx.Config{Log: slog.New(slog.DiscardHandler)})
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))

	if allocations > 1 {
		t.Errorf("got %v allocations, want at most 1", allocations)
	}
}

// TestServe checks that a request reaches the interface in its path, under the settings and the
// status of its project.
func TestServe(t *testing.T) {
	t.Parallel()

	outer, inner := &echo{prefix: "/files/v1"}, &echo{prefix: "/files/v1/s3"}
	d := newDoor(t, outer, inner)
	project := d.Project()
	key, root := d.key(project, "secret"), "/projects/"+project.String()

	d.want(root+"/files/v1/a%20b", key, "/files/v1 /a%20b as service_role, 0 rows")
	if d.record.Route != "/projects/{projectUUID}/files/v1" || d.record.Project != project {
		t.Errorf("record: got route %s, project %s", d.record.Route, d.record.Project)
	}

	d.want(root+"/files/v1/s3", key, "/files/v1/s3 / as service_role, 0 rows")
	d.want(root+"/tables", key, "none")

	for _, unknown := range []string{uuid.NewString(), "x", strings.ReplaceAll(project.String(), "-", "")} {
		d.want("/projects/"+unknown+"/files/v1/s3/x", key, "/files/v1/s3 fails: project_not_found")
		if d.record.Project != uuid.Nil {
			t.Errorf("%s: the request is recorded for project %s", unknown, d.record.Project)
		}
	}

	for status, want := range map[string]string{
		platform.Paused: "project_paused", platform.Deleted: "project_deleted", "deleting": "project_not_found",
	} {
		d.SetStatus(project, status)
		d.Invalidate(project)
		d.want(root+"/files/v1", key, "/files/v1 fails: "+want)
	}
}

// TestOpen checks that a project is opened once under the same settings, and that a handler gets
// the cache of its predecessor.
func TestOpen(t *testing.T) {
	t.Parallel()

	e := &echo{prefix: "/rest/v1"}
	d := newDoor(t, e)
	project := d.Project()
	key, path := d.key(project, "publishable"), "/projects/"+project.String()+"/rest/v1"

	d.want(path, key, "/rest/v1 / as anon, 0 rows")
	d.Invalidate(project)
	d.want(path, key, "/rest/v1 / as anon, 0 rows")
	if len(e.opened) != 1 {
		t.Fatalf("opened %d times under the same settings, want once", len(e.opened))
	}

	former, err := d.Refresh(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}

	d.Exec(`update platform.projects set rest_max_rows = 7 where uuid = $1`, project)
	d.Invalidate(project)
	d.want(path, key, "/rest/v1 / as anon, 7 rows")
	if p, err := former.Current(t.Context()); err != nil || p.Settings.Rest.MaxRows != 7 {
		t.Errorf("got %+v, %v, want the current settings", p, err)
	}
	if len(e.opened) != 2 || e.opened[0].former != nil || e.opened[1].former != Cache(e.opened[0]) {
		t.Fatalf("got %d handlers, the second after %v", len(e.opened), e.opened[1].former)
	}

	d.Forget(project)
	d.Forget(uuid.New())
	if e.opened[0].forgotten != 0 || e.opened[1].forgotten != 1 || e.opened[0].closed {
		t.Errorf("got %+v and %+v, want the second forgotten", e.opened[0], e.opened[1])
	}

	p, err := d.Refresh(t.Context(), project)
	if err != nil || p.Cache("/rest/v1") != Cache(e.opened[1]) || p.Cache("/other") != nil ||
		p.URL("/x") != "https://socle.example/projects/"+project.String()+"/x" || p.Recheck(t.Context()) != nil {
		t.Errorf("got %+v, %v", p, err)
	}

	d.SetStatus(project, platform.Paused)
	if err := p.Recheck(t.Context()); err != inactive[platform.Paused] {
		t.Errorf("paused meanwhile: got %v", err)
	}

	d.SetStatus(project, "deleting")
	if err := p.Recheck(t.Context()); err != ErrUnknownProject {
		t.Errorf("purged meanwhile: got %v", err)
	}
	d.want(path, key, "/rest/v1 fails: project_not_found")
	if _, err := former.Current(t.Context()); err != ErrUnknownProject {
		t.Errorf("purged meanwhile: got %v", err)
	}
	if !e.opened[1].closed || d.Stats().Projects != 0 {
		t.Errorf("purged: got %+v, %+v, want it closed", e.opened[1], d.Stats())
	}
}

// TestCachesAreBounded checks that projects in use stay open, and that others make room.
func TestCachesAreBounded(t *testing.T) {
	t.Parallel()

	e := &echo{prefix: "/rest/v1"}
	d := newDoor(t, e)
	const large = 5 // that fill the memory
	paths := make([]string, large+1)
	keys := make([]string, len(paths))
	for i := range paths {
		project := d.Project()
		paths[i], keys[i] = "/projects/"+project.String()+"/rest/v1", d.key(project, "secret")
		d.get(paths[i], keys[i])
		e.opened[i].size = maxProjectsSize/large - projectOverhead
	}

	if n := d.Stats().Projects; n != large+1 {
		t.Fatalf("%d projects are open, want %d", n, large+1)
	}

	for range weighInterval {
		d.get(paths[0], keys[0])
	}
	if n := d.Stats().Projects; n != large || len(e.opened) != large+1 {
		t.Errorf("%d projects are open, of %d ever opened, want %d of %d", n, len(e.opened), large, large+1)
	}

	e.opened[0].size = maxProjectSize
	for range weighInterval {
		d.get(paths[0], keys[0])
	}
	if len(e.opened) != large+2 {
		t.Errorf("opened %d, want that which is too large again", len(e.opened))
	}

	d.Close()
	if n := d.Stats().Projects; n != 0 || !e.opened[large+1].closed {
		t.Errorf("after Close: %d projects are open", n)
	}
}
