package server_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestStartPage(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	v := visit(t, a)
	p := v.get("/").want(200, "Socle", `class="button" href="/console"`, `href="/docs"`,
		`href="/openapi.json"`, `href="/readyz"`, `href="/docs?api=cli"`)
	if got := p.Header.Get("Vary"); got != "Accept" {
		t.Errorf("got Vary %q, want Accept", got)
	}

	// Programs get the envelope.
	for _, accept := range []string{"*/*", "application/json", "application/xhtml+xml"} {
		v.a.Send("GET", "/", "", "Accept: "+accept).Want(404).Code("unknown_route")
	}

	for _, path := range []string{"/login", "/nothing", "/projects/x/nothing", "/nothing/"} {
		v.get(path).want(404, "There is no page here", `href="/"`, `href="/console"`, "socle login --url ")
		v.a.Send("GET", path, "", "Accept: */*").Want(404).Code("unknown_route")
	}

	// A path of the API stays one.
	v.a.Send("GET", "/users/login", "", "Accept: text/html").Want(405).Code("method_not_allowed")
	v.a.Send("GET", "/nothing/%00", "", "Accept: text/html").Want(404)

	style := regexp.MustCompile(`href="(/assets/page.css[^"]*)"`).FindStringSubmatch(p.html)
	if style == nil {
		t.Fatalf("no stylesheet:\n%s", p.html)
	}

	css := v.a.Get(style[1]).Want(200)
	if got := css.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/css") {
		t.Errorf("got Content-Type %q of the stylesheet", got)
	}
	if strings.Contains(string(css.Body), "url(") || strings.Contains(string(css.Body), "@import") {
		t.Error("the stylesheet loads something")
	}

	v.a.Get("/assets/icon.svg").Want(200)
	v.get("/assets/nothing.css").want(404)
}
