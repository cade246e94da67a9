package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/socle-dev/socle/docs"
	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/httpx"
)

// reference has the API reference's page, and the viewer that it runs: Scalar, unmodified. See
// docs/decisions/viewer.md.
//
//go:embed reference
var reference embed.FS

// docsPage is the API reference's page.
var docsPage = readReference("page.html")

// docsPolicy allows the API reference its own scripts, styles in the page, and requests to this
// server. It forbids everything else, so injected markup runs nothing.
var docsPolicy = "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src data:; base-uri 'none'" +
	"; form-action 'none'; frame-ancestors 'none'; style-src 'self' 'unsafe-inline'" +
	"; script-src 'self' '" + cspHash(docsPage) + "'"

func readReference(name string) []byte {
	content, err := reference.ReadFile("reference/" + name)
	if err != nil {
		panic("server: " + err.Error())
	}

	return content
}

// cspHash returns the CSP hash for the page's only inline script.
func cspHash(page []byte) string {
	_, rest, hasStart := bytes.Cut(page, []byte("<script>"))
	content, _, hasEnd := bytes.Cut(rest, []byte("</script>"))
	if !hasStart || !hasEnd {
		panic("server: the API reference has no script")
	}

	sum := sha256.Sum256(content)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// docsHandlers returns the API reference's handlers by path: the page, its viewer, the OpenAPI
// document, and the guides as viewer documents.
func docsHandlers() map[string]http.HandlerFunc {
	handlers := map[string]http.HandlerFunc{
		"/docs": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", docsPolicy)
			writeBytes(w, "text/html; charset=utf-8", docsPage)
		},
		"/docs/scalar.js": compressed("text/javascript; charset=utf-8", func() []byte {
			return readReference("scalar-1.72.1.js.gz")
		}),
		"/openapi.json": compressed(jsonType, func() []byte { return deflate(api.Document()) }),
	}

	for name, title := range guides {
		handlers["/docs/"+path.Base(name)+".json"] = compressed(jsonType, func() []byte {
			return deflate(guideDocument(name, title))
		})
	}

	return handlers
}

const jsonType = "application/json; charset=utf-8"

// guides maps the guide files in docs to their titles. The reference page lists them by the last
// part of the name.
var guides = map[string]string{
	"api": "Rules of the API", "cli": "Command line", "operations": "Operations", "rest": "socle rest",
	"guides/from-supabase": "From Supabase", "guides/bring-a-repository": "Bring a repository",
	"guides/import": "Import data", "guides/nextjs": "Next.js",
	"guides/protect-a-table": "Protect a table", "guides/migrations": "Migrations",
	"guides/end-users": "End users", "guides/files": "Files of applications", "guides/s3": "S3",
	"guides/realtime":            "Realtime",
	"guides/webhooks":            "Webhooks",
	"events":                     "Types of events",
	"guides/queues":              "Queues",
	"guides/transactions":        "Changes that belong together",
	"guides/back-up-and-restore": "Back up and restore", "guides/deploy": "Deploy",
}

// guideDocument returns a guide as the description in an OpenAPI document without operations, which
// the viewer renders.
func guideDocument(name, title string) []byte {
	text, err := docs.Guides.ReadFile(name + ".md")
	if err != nil {
		panic("server: " + err.Error())
	}

	document, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]string{"title": title, "version": "1.0", "description": linkGuides(name, string(text))},
		"paths":   map[string]any{},
	})
	if err != nil {
		panic("server: " + err.Error())
	}

	return document
}

var guideLink = regexp.MustCompile(`\[([^\[\]]*)\]\(((?:\.\./)*[A-Za-z0-9/-]+\.(?:md|json))?(#[a-z0-9-]+)?\)`)

// linkGuides rewrites the links between guides for the viewer. Links to other source files become
// text.
func linkGuides(name, text string) string {
	return guideLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := guideLink.FindStringSubmatch(link)
		label, file, anchor := parts[1], parts[2], strings.TrimPrefix(parts[3], "#")
		target := strings.TrimSuffix(path.Join(path.Dir(name), file), ".md")

		switch _, isGuide := guides[target]; {
		case file == "openapi.json":
			return "[" + label + "](/openapi.json)"
		case file == "":
			target = name
		case !isGuide:
			return label
		}

		slug := path.Base(target)
		address := "/docs?api=" + slug
		if anchor != "" {
			address += "#" + slug + "/description/" + anchor
		}

		return "[" + label + "](" + address + ")"
	})
}

// compressed serves a file that is stored gzipped. content is called once.
func compressed(contentType string, content func() []byte) http.HandlerFunc {
	content = sync.OnceValue(content)

	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Vary", "Accept-Encoding")
		if httpx.AcceptsCoding(r, "gzip") {
			h.Set("Content-Encoding", "gzip")
			writeBytes(w, contentType, content())
			return
		}

		plain, err := gzip.NewReader(bytes.NewReader(content()))
		if err != nil {
			panic("server: " + err.Error())
		}

		h.Set("Content-Type", contentType)
		_, _ = io.Copy(w, plain) // fails only if the client has disconnected
	}
}

func deflate(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		panic("server: " + err.Error()) // a buffer takes everything
	}
	if err := w.Close(); err != nil {
		panic("server: " + err.Error())
	}

	return b.Bytes()
}
