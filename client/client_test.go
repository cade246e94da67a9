package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/socle-dev/socle/client"
)

// serve answers the nth request with the nth status and with the request's body as content. It
// records the requests.
func serve(t *testing.T, statuses ...int) (*client.Client, *[]*http.Request) {
	t.Helper()

	var requests []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := statuses[len(requests)]
		requests = append(requests, r)

		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}

		w.WriteHeader(status)

		if status >= 400 {
			io.WriteString(w,
				`{"content": "null", "errors": ["no"], "success": false,
					"metadata": {"code": "unavailable", "detail": "Not now.", "fields": [], "requestId": "r"}}`)
			return
		}

		io.WriteString(w, `[{"content": [`+string(body)+`], "errors": [], "metadata": {}, "success": true}]`)
	}))

	t.Cleanup(server.Close)
	return &client.Client{URL: server.URL, Token: "t", Project: "p"}, &requests
}

// TestDoRepeats: a retry sends the same request, with the body's own characters.
func TestDoRepeats(t *testing.T) {
	t.Parallel()

	c, requests := serve(t, 500, 200)
	reply, err := c.Do(t.Context(), client.Request{
		Method: "POST",
		Path:   "/forms",
		Body:   map[string]string{"name": "<x> & y"},
	})
	if err != nil || string(reply.Content) != `[{"name":"<x> & y"}]` {
		t.Fatalf("got %v, %v", reply, err)
	}

	first, second := (*requests)[0].Header, (*requests)[1].Header
	if key := first.Get("Idempotency-Key"); key == "" || second.Get("Idempotency-Key") != key {
		t.Errorf("got the keys %q and %q, want one", key, second.Get("Idempotency-Key"))
	}
	if first.Get("Authorization") != "Bearer t" || first.Get("X-Project") != "p" {
		t.Errorf("got the headers %v", first)
	}
}

// TestDoGivesUp: a stream is sent once, and attempts are bounded.
func TestDoGivesUp(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		body     any
		attempts int
	}{{nil, 3}, {strings.NewReader("stream"), 1}} {
		c, requests := serve(t, 500, 500, 500, 500)
		_, err := c.Do(t.Context(), client.Request{Method: "POST", Path: "/files", Body: test.body})
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Code != "unavailable" || e.RequestID != "r" || len(*requests) != test.attempts {
			t.Errorf("got %v after %d attempts, want %d", err, len(*requests), test.attempts)
		}
	}
}

func TestNotASocle(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<html>")
	}))
	defer server.Close()

	c := &client.Client{URL: server.URL}
	if _, err := c.Do(t.Context(), client.Request{Method: "GET", Path: "/"}); err == nil {
		t.Error("Do of an HTML page = nil, want an error")
	}
}

// TestErrorHasMetadata: a failure carries all that the server says, of the rows API too.
func TestErrorHasMetadata(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ body, code, text, metadata string }{
		{
			body: `{"content": "null", "errors": ["no"], "success": false, "metadata": {"code": "in_use",
				"detail": "Name is required.", "dependents": [], "requestId": "r",
				"fields": [{"field": "name", "message": "is required"}, {"field": "columns", "message": "is required"}]}}`,
			code: "in_use", text: "Name is required.\n  columns is required", metadata: `"dependents": []`,
		},
		{
			body: `{"code": "42P01", "message": "no such relation", "details": null, "hint": "look again"}`,
			code: "42P01", text: "no such relation", metadata: `"hint": "look again"`,
		},
		{body: `<html>`, text: "the server responded with 422 Unprocessable Entity"},
	} {
		var agent string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agent = r.UserAgent()
			w.WriteHeader(422)
			io.WriteString(w, test.body)
		}))
		t.Cleanup(server.Close)

		c := &client.Client{URL: server.URL, UserAgent: "test/1"}
		_, err := c.Open(t.Context(), client.Request{Method: "GET", Path: "/"})

		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Code != test.code || e.Error() != test.text ||
			!strings.Contains(string(e.Metadata), test.metadata) {
			t.Errorf("%s: got %#v", test.body, err)
		}
		if agent != "test/1" {
			t.Errorf("got the user agent %q", agent)
		}
		if ok && test.code != "" && string(e.Body) != test.body {
			t.Errorf("%s: got the body %s", test.body, e.Body)
		}
	}
}
