package web

import (
	"net/http"

	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/httpx"
)

// start serves the start page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /"
	w.Header().Set("Vary", "Accept")

	start := page{
		Title: "Socle",
		Aside: "Version " + build.Version(),
		Text:  []string{"A backend platform on PostgreSQL. This server is running."},
		Links: []link{
			{"/docs", "API reference", "every operation, with its fields and failures, and the guides"},
			{"/docs?api=cli", "Command line", "every command of socle"},
			{"/openapi.json", "OpenAPI document", "for generators of clients"},
			{"/readyz", "Health", "whether the server and its parts are ready"},
		},
	}
	render(w, r, http.StatusOK, start)
}
