package web

import (
	"net/http"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/httpx"
)

var (
	consoleLink     = link{"/console", "Console", "log in, and work with your projects in the browser"}
	referenceLink   = link{"/docs", "API reference", "every operation, with its fields and failures, and the guides"}
	commandLineLink = link{"/docs?api=cli", "Command line", "every command of socle"}
)

// start serves the start page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /"
	w.Header().Set("Vary", "Accept")

	text := []string{"A backend platform on PostgreSQL. This server is running."}
	if claimed, err := p.Accounts.Claimed(r.Context()); err == nil && !claimed {
		text = append(text, "This install has no administrator yet. Create one in the console, with the set-up token "+
			"that the server has printed in its terminal or its log.")
	}

	render(w, r, http.StatusOK, page{
		Title: "Socle",
		Aside: "Version " + build.Version(),
		Text:  text,
		Step:  link{"/console", "Open the console", ""},
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
			"To log in, open the console, or use the command line: socle login --url " + p.PublicURL + " --email ADDRESS",
		},
		Links: []link{consoleLink, {"/", "Start page", ""}, referenceLink, commandLineLink},
	})
}
