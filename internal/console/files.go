package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
)

// policy is the Content-Security-Policy of the console. It allows the console's own scripts and
// stylesheets, and pictures, audio and video of this server, also as blobs that the console made.
// Elements get no inline script or style, and no text becomes markup (Trusted Types). Frames have
// data addresses, so no origin: a blob in a frame would act on the console's.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; " +
	"media-src 'self' blob:; font-src 'self'; connect-src 'self'; form-action 'none'; frame-src data:; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// index is the file for every path that names no other.
const index = "index.html"

const (
	// cacheForever is for assets, whose names change with their content.
	cacheForever = "public, max-age=31536000, immutable"
	// cacheChecked is for the other files: browsers ask each time whether they have changed.
	cacheChecked = "no-cache"
)

// mediaTypes has the types by extension. Those of package mime depend on the machine.
var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".ico":   "image/x-icon",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json; charset=utf-8",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".wasm":  "application/wasm",
	".webp":  "image/webp",
	".woff2": "font/woff2",
}

// codings are the content codings that files may have been compressed with, with the extension of
// such a file. Better ones come first.
var codings = []struct{ name, extension string }{{"br", ".br"}, {"gzip", ".gz"}}

// files are the built files by their path below [Root].
type files struct {
	fs.FS
	tags map[string]string // hash by name; "" for assets, whose names have one
}

// newFiles reads the list of the files. It panics if they are no built console.
func newFiles(built fs.FS) files {
	f := files{built, map[string]string{}}
	err := fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isCompressed(name) {
			return err
		}

		f.tags[name] = ""
		if strings.HasPrefix(name, "assets/") {
			return nil // without reading it: there are many
		}

		content, err := fs.ReadFile(built, name)
		sum := sha256.Sum256(content)
		f.tags[name] = base64.RawURLEncoding.EncodeToString(sum[:16])

		return err
	})
	if err != nil {
		panic("console: " + err.Error())
	}
	if f.tags[index] == "" {
		panic("console: " + index + " is missing")
	}

	return f
}

// isCompressed reports whether a file is the compressed form of another.
func isCompressed(name string) bool {
	for _, c := range codings {
		if strings.HasSuffix(name, c.extension) {
			return true
		}
	}

	return false
}

// serve serves the file that a path names, or else the index, whose script shows the path's screen.
// An asset that does not exist is missing: it belongs to another release.
func (f files) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, Root), "/")
	hash, ok := f.tags[name]
	switch {
	case ok:
	case strings.HasPrefix(r.URL.Path, assetsPath):
		w.Header().Set("Cache-Control", "no-store")
		operation.RespondFailure(w, r, http.StatusNotFound, "unknown_route", "the console has no such file")

		return
	default:
		name, hash = index, f.tags[index]
	}

	h := w.Header()
	setSecurity(h)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", cacheChecked)
	if hash == "" {
		h.Set("Cache-Control", cacheForever)
	}

	content, coding, err := f.open(r, name)
	if err != nil {
		operation.WriteFailure(w, r, err, []int{http.StatusInternalServerError})
		return
	}
	defer content.Close()

	if coding != "" {
		h.Set("Content-Encoding", coding)
	}

	if hash != "" {
		tag := `"` + hash + coding + `"`
		h.Set("ETag", tag)

		if operation.MatchesETag(r.Header.Values("If-None-Match"), tag, true) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	send(w, r, mediaTypes[path.Ext(name)], content)
}

// send writes a file. An empty media type is an unknown one.
func send(w http.ResponseWriter, r *http.Request, mediaType string, content fs.File) {
	info, err := content.Stat()
	if err != nil {
		operation.WriteFailure(w, r, err, []int{http.StatusInternalServerError})
		return
	}

	h := w.Header()
	h.Set("Content-Type", cmp.Or(mediaType, "application/octet-stream"))
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))

	w.WriteHeader(http.StatusOK)

	if r.Method == http.MethodHead {
		return
	}

	_, _ = io.Copy(httpx.NewPacedWriter(w), content) // fails only if the client has disconnected
}

// open opens a file in the best coding that the client accepts, and returns the coding; "": none.
func (f files) open(r *http.Request, name string) (content fs.File, coding string, err error) {
	for _, c := range codings {
		if !httpx.AcceptsCoding(r, c.name) {
			continue
		}
		if content, err := f.Open(name + c.extension); err == nil {
			return content, c.name, nil
		}
	}

	content, err = f.Open(name)
	return content, "", err
}

// setSecurity sets the headers that keep other sites from the console, and the console from them.
func setSecurity(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
