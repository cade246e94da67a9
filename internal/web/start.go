package web

import (
	"net/http"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/httpx"
)

// guides are the documents of the project.
const guides = "https://github.com/socle-dev/socle/tree/main/docs"

// start serves the start page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /"
	w.Header().Set("Vary", "Accept")

	start := page{
		Title: "Socle",
		Aside: "Version " + build.Version(),
		Text:  []string{"A backend platform on PostgreSQL. This server is running."},
		Links: []link{
			{"/docs", "API reference", "every operation, with its fields and failures"},
			{"/openapi.json", "OpenAPI document", "for generators of clients"},
			{guides, "Guides", "the rules of the API, the command line, operation"},
			{"/readyz", "Health", "whether the server and its parts are ready"},
		},
	}
	render(w, r, http.StatusOK, start)
}
