package web

import (
	"net/http"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/httpx"
)

var (
	referenceLink   = link{"/docs", "API reference", "every operation, with its fields and failures, and the guides"}
	commandLineLink = link{"/docs?api=cli", "Command line", "every command of socle"}
)

// start serves the start page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /"
	w.Header().Set("Vary", "Accept")

	text := []string{"A backend platform on PostgreSQL. This server is running."}
	if claimed, err := p.Accounts.Claimed(r.Context()); err == nil && !claimed {
		text = append(text, "This install has no administrator yet. The terminal or the log of the server says how to "+
			"create one.")
	}

	render(w, r, http.StatusOK, page{
		Title: "Socle",
		Aside: "Version " + build.Version(),
		Text:  text,
		Links: []link{
			referenceLink, commandLineLink,
			{"/openapi.json", "OpenAPI document", "for generators of clients"},
			{"/readyz", "Health", "whether the server and its parts are ready"},
		},
	})
}

// NotFound serves a browser that asks for a path without a page.
func (p *Pages) NotFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	render(w, r, http.StatusNotFound, page{
		Title: "There is no page here",
		Text: []string{
			"The address may be misspelled, or the page has moved.",
			"To log in, use the command line: socle login --url " + p.PublicURL + " --email ADDRESS",
		},
		Links: []link{{"/", "Start page", ""}, referenceLink, commandLineLink},
	})
}
