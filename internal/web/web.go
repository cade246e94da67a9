// Package web owns the pages that people open in a browser: the start page, the pages behind the
// links in mails, form pages, and the OAuth consent page. It renders HTML on the server. The pages
// need no script, ask no other host for anything, and change nothing by GET, since mail scanners
// follow links.
//
// A page calls the same functions of the domain packages as the API operation with the same
// purpose, so rules and messages are the same. The API itself belongs to package api, its reference
// to package server.
package web

import (
	"net/http"
	"path"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/submission"
)

// Config has the pages' dependencies and settings.
type Config struct {
	Accounts    *account.Service
	Submissions *submission.Service
	EndUsers    *enduser.Service
	Bodies      *fair.Pool // memory for all request bodies in flight
	PublicURL   string     // without trailing slash
	AuditKey    []byte     // keys the audit log's entry hashes
}

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	Config
	crossOrigin *http.CrossOriginProtection
	mux         *http.ServeMux
}

// New returns the pages.
func New(c Config) *Pages {
	p := &Pages{Config: c, crossOrigin: httpx.ProtectCrossOrigin(c.PublicURL), mux: http.NewServeMux()}

	p.mux.Handle("/{$}", readOnly(p.start))
	p.mux.Handle("/assets/{name}", readOnly(asset))

	p.mux.HandleFunc("/f/{link}", p.formPage)
	p.mux.Handle("/f/{link}/done", readOnly(p.formDone))
	p.mux.Handle("/f/{link}/logo", readOnly(p.formLogo))

	p.mux.HandleFunc(consentRoute, p.consentPage)

	for _, l := range p.linkPages() {
		p.mux.Handle(l.path, l)
	}

	return p
}

// Handler returns the handler for the page that a request asks for, or nil if it asks for none. A
// request for the start page prefers HTML: other clients get the API's response.
func (p *Pages) Handler(r *http.Request) http.Handler {
	if r.URL.Path != path.Clean(r.URL.Path) || (r.URL.Path == "/" && !WantsHTML(r)) {
		return nil
	}

	_, pattern := p.mux.Handler(r)
	switch {
	case pattern == "":
		return nil
	case httpx.HostileText(r) != "":
		return http.HandlerFunc(refuseHostileText)
	}

	return p.mux
}

// refuseHostileText responds to a request with text that no page has in its address.
func refuseHostileText(w http.ResponseWriter, r *http.Request) {
	renderFailure(w, r, fault.New(fault.Invalid, "%s has bytes that are no text", httpx.HostileText(r)),
		page{Title: "The address is wrong",
			Text: []string{"It has characters that no address here has. " + invalidLink}})
}

// WantsHTML reports whether the client is a browser: programs do not ask for HTML by name.
func WantsHTML(r *http.Request) bool {
	for _, entry := range strings.Split(strings.Join(r.Header["Accept"], ","), ",") {
		media, _, _ := strings.Cut(entry, ";")
		if strings.TrimSpace(media) == "text/html" {
			return true
		}
	}

	return false
}
