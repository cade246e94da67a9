package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// visitor is a browser without scripts: it shows pages and submits their forms.
type visitor struct {
	t *testing.T
	a *apitest.API
}

// shown is a page that a visitor sees.
type shown struct {
	visitor
	*apitest.Reply
	html string
}

func visit(t *testing.T, a *apitest.API) visitor { return visitor{t, a.Anonymous().WithProject("")} }

// get opens a page by its path and checks the common headers.
func (v visitor) get(path string) shown {
	v.t.Helper()

	return v.show(v.a.Send("GET", path, "", "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"))
}

// post submits a form from a page of the server.
func (v visitor) post(path string, in url.Values, headers ...string) shown {
	v.t.Helper()

	headers = append([]string{"Content-Type: application/x-www-form-urlencoded", "Accept: text/html",
		"Origin: " + v.a.URL, "Sec-Fetch-Site: same-origin"}, headers...)
	return v.show(v.a.Send("POST", path, in.Encode(), headers...))
}

// show checks the headers of a page.
func (v visitor) show(r *apitest.Reply) shown {
	v.t.Helper()

	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"Referrer-Policy": "same-origin"} {
		if got := r.Header.Get(name); got != want {
			v.t.Fatalf("got %s %q, want %q; status %d\n%s", name, got, want, r.Status, r.Body)
		}
	}

	policy := r.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
		v.t.Errorf("got policy %q", policy)
	}

	return shown{v, r, string(r.Body)}
}

var (
	inputTag  = regexp.MustCompile(`<(?:input|textarea|select)\b[^>]*>`)
	attribute = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
)

// inputs returns the inputs of the page by their name, each by its attributes.
func (s shown) inputs() map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, tag := range inputTag.FindAllString(s.html, -1) {
		attributes := map[string]string{"tag": tag}
		for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
			attributes[a[1]] = html.UnescapeString(a[2])
		}

		found[attributes["name"]] = attributes
	}

	return found
}

// submit fills in the form of the page and submits it.
func (s shown) submit(in map[string]string) shown {
	s.t.Helper()

	values := url.Values{}
	for name, input := range s.inputs() {
		values.Set(name, input["value"])
	}
	for name, value := range in {
		if _, ok := s.inputs()[name]; !ok {
			s.t.Fatalf("the page has no input %s:\n%s", name, s.html)
		}
		values.Set(name, value)
	}

	action := regexp.MustCompile(`<form method="post" action="([^"]+)"`).FindStringSubmatch(s.html)
	if action == nil {
		s.t.Fatalf("the page has no form:\n%s", s.html)
	}

	return s.post(html.UnescapeString(action[1]), values)
}

// want fails unless the page has the status and all texts.
func (s shown) want(status int, texts ...string) shown {
	s.t.Helper()

	s.Want(status)
	plain := html.UnescapeString(s.html)
	for _, text := range texts {
		if !strings.Contains(plain, text) {
			s.t.Fatalf("the page lacks %q:\n%s", text, s.html)
		}
	}

	return s
}

// field fails unless the message stands next to the input.
func (s shown) field(name, message string) shown {
	s.t.Helper()

	in := s.inputs()[name]
	if in["invalid"] != "true" || !strings.Contains(in["describedby"], name+"-error") ||
		!strings.Contains(html.UnescapeString(s.html), `id="`+name+`-error">`+message) {
		s.t.Fatalf("%s: want %q next to it:\n%s", name, message, s.html)
	}

	return s
}

// mailedLink waits for the n-th mail with a link to a page and returns the link's path and query.
func mailedLink(t *testing.T, a *apitest.API, to, page string, n int) string {
	t.Helper()

	var found []string
	apitest.Until(t, "a mail to "+to, func() bool {
		found = nil
		for line := range strings.Lines(a.Log.String()) {
			var m struct{ Msg, To, Text string }
			if json.Unmarshal([]byte(line), &m) != nil || m.Msg != "mail" || m.To != to {
				continue
			}
			for word := range strings.FieldsSeq(m.Text) {
				if path, ok := strings.CutPrefix(word, a.URL); ok && strings.HasPrefix(path, page+"?") {
					found = append(found, path)
				}
			}
		}

		return len(found) >= n
	})

	return found[n-1]
}

// refused fails if a reply is a success.
func refused(t *testing.T, r shown) {
	t.Helper()

	if r.Status < http.StatusBadRequest {
		t.Fatalf("got status %d, want a failure:\n%s", r.Status, r.html)
	}
}
