package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/socle-dev/socle/console"
)

// built is a console as a build writes it. The content of a file is its name.
var built = func() fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range []string{"index.html", "index.html.br", "index.html.gz", "icon.svg", "icon.svg.gz",
		"assets/a-1.js", "assets/a-1.js.br", "assets/a-1.js.gz", "assets/b-2.css", "assets/c-3.png"} {
		files[name] = &fstest.MapFile{Data: []byte(name)}
	}

	return files
}()

// request sends a request to a console with these files, and no more.
func request(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}

	w := httptest.NewRecorder()
	(&Console{files: newFiles(built)}).ServeHTTP(w, r)

	return w
}

func TestFiles(t *testing.T) {
	t.Parallel()

	const script, page = "text/javascript; charset=utf-8", "text/html; charset=utf-8"
	for _, c := range []struct {
		path, accepts               string
		file, kind, coding, caching string
	}{
		{"/console/assets/a-1.js", "", "assets/a-1.js", script, "", cacheForever},
		{"/console/assets/a-1.js", "gzip, deflate, br, zstd", "assets/a-1.js.br", script, "br", cacheForever},
		{"/console/assets/a-1.js", "gzip, br;q=0", "assets/a-1.js.gz", script, "gzip", cacheForever},
		{"/console/assets/a-1.js", "*", "assets/a-1.js", script, "", cacheForever},
		{"/console/assets/b-2.css", "br", "assets/b-2.css", "text/css; charset=utf-8", "", cacheForever},
		{"/console/assets/c-3.png", "br", "assets/c-3.png", "image/png", "", cacheForever},
		{"/console/icon.svg", "br, gzip", "icon.svg.gz", "image/svg+xml", "gzip", cacheChecked},

		{"/console", "", "index.html", page, "", cacheChecked},
		{"/console/", "br", "index.html.br", page, "br", cacheChecked},
		{"/console/index.html", "gzip", "index.html.gz", page, "gzip", cacheChecked},
		{"/console/projects/x/tables/a.js", "", "index.html", page, "", cacheChecked},
		{"/console/index.html.br", "", "index.html", page, "", cacheChecked},
		{"/console/assets", "", "index.html", page, "", cacheChecked},
		{"/console/%2e%2e/console.go", "", "index.html", page, "", cacheChecked},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := request(method, c.path, "Accept-Encoding: "+c.accepts)
			h := w.Header()
			body := c.file
			if method == http.MethodHead {
				body = ""
			}

			if w.Code != http.StatusOK || w.Body.String() != body || h.Get("Content-Type") != c.kind ||
				h.Get("Content-Encoding") != c.coding || h.Get("Cache-Control") != c.caching ||
				h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Length") == "0" {
				t.Errorf("%s %s, accepts %q: got %d, %q, headers %v\nwant %+v",
					method, c.path, c.accepts, w.Code, w.Body, h, c)
			}
		}
	}
}

// TestMissingAssets checks that no cache keeps a page under the name of an asset of another
// release.
func TestMissingAssets(t *testing.T) {
	t.Parallel()

	for _, missing := range []string{"/console/assets/a-0.js", "/console/assets/", "/console/assets/a-1.js.br",
		"/console/assets/a-1.js/", "/console/assets/%00"} {
		w := request("GET", missing, "Accept: text/html")
		if w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d, headers %v, want 404", missing, w.Code, w.Header())
		}
	}
}

// TestIndexIsRevalidated checks that a browser loads the index again only if it has changed. Each
// coding has its own tag.
func TestIndexIsRevalidated(t *testing.T) {
	t.Parallel()

	tags := map[string]bool{}
	for _, coding := range []string{"", "gzip", "br"} {
		tag := request("GET", "/console", "Accept-Encoding: "+coding).Header().Get("ETag")
		tags[tag] = true

		w := request("GET", "/console/x", "Accept-Encoding: "+coding, "If-None-Match: "+tag)
		if w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("%q: got %d, tag %s, want 304, %s", coding, w.Code, w.Header().Get("ETag"), tag)
		}
	}
	if len(tags) != 3 {
		t.Errorf("got the tags %v, want three", tags)
	}

	if tag := request("GET", "/console/assets/a-1.js").Header().Get("ETag"); tag != "" {
		t.Errorf("an asset has the tag %s, want none: its name changes", tag)
	}
}

// TestSecurityHeaders checks that the console runs nothing but its own files, and in no frame.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()

	for _, path := range []string{"/console", "/console/icon.svg", "/console/assets/a-1.js"} {
		h := request("GET", path).Header()
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Frame-Options": "DENY",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", path, name, got, want)
			}
		}
	}

	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'",
		"frame-src data:", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains("; "+policy+";", "; "+directive+";") {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy allows inline code or another host: %s", policy)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()

	for path, want := range map[string]string{
		"/console": "GET, HEAD", "/console/x": "GET, HEAD", "/console/assets/a-1.js": "GET, HEAD",
		sessionPath: "POST, DELETE", refreshPath: "POST",
	} {
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "OPTIONS", "POST"} {
			if strings.Contains(want, method) {
				continue
			}

			w := request(method, path)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != want {
				t.Errorf("%s %s: got %d, Allow %q, want 405, %q", method, path, w.Code, w.Header().Get("Allow"), want)
			}
		}
	}
}

// TestFirstLoad bounds what a browser loads for the sign-in and a project's home: 200 kB,
// compressed by brotli.
func TestFirstLoad(t *testing.T) {
	t.Parallel()

	const limit = 200_000
	page, err := fs.ReadFile(console.Files(), index)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	loaded := regexp.MustCompile(`(?:src|href)="/console/(assets/[^"]*)"`)
	for _, l := range loaded.FindAllStringSubmatch(string(page), -1) {
		names = append(names, l[1])
	}
	for _, screen := range []string{"Access", "Projects", "Home"} {
		for _, kind := range []string{"js", "css"} {
			found, err := fs.Glob(console.Files(), "assets/"+screen+"-*."+kind)
			if err != nil {
				t.Fatal(err)
			}

			names = append(names, found...)
		}
	}

	size := int64(0)
	for _, name := range names {
		file, err := fs.Stat(console.Files(), name+".br")
		if err != nil {
			file, err = fs.Stat(console.Files(), name) // too small to compress
		}
		if err != nil {
			t.Fatal(err)
		}

		size += file.Size()
	}
	if size > limit || len(names) < 5 {
		t.Errorf("the first load has %d bytes in %v, want at most %d", size, names, limit)
	}
}

// TestBuiltFiles checks that each file in the binary has a type, and that its page loads only files
// that are there, and nothing inline, which the policy forbids.
func TestBuiltFiles(t *testing.T) {
	t.Parallel()

	f := newFiles(console.Files())
	for name := range f.tags {
		if mediaTypes[path.Ext(name)] == "" {
			t.Errorf("%s has no media type", name)
		}
	}

	page, err := fs.ReadFile(console.Files(), index)
	if err != nil {
		t.Fatal(err)
	}

	loaded := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page), -1)
	if len(loaded) == 0 {
		t.Error("the page loads nothing")
	}
	for _, l := range loaded {
		if _, ok := f.tags[strings.TrimPrefix(l[1], Root+"/")]; !ok {
			t.Errorf("the page loads %s, which is not there", l[1])
		}
	}

	if inline := regexp.MustCompile(`<style|<script>| style=| on[a-z]+=|<script[^>]*>[^<]`).Find(page); inline != nil {
		t.Errorf("the page has inline code: %s", inline)
	}
}
