package rest

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	t.Parallel()

	b := &batch{operations: []operation{{ID: "a"}, {ID: "text"}}}
	for _, body := range []string{`[{"id": 1, "name": "x&y=\"z\"", "none": null, "deep": {"list": [true, {"k": 2.50}]}}]`, "id\n1"} {
		header := http.Header{"Content-Type": {"application/json"}}
		b.answers = append(b.answers, &responseRecorder{body: []byte(body), header: header})
	}

	for body, want := range map[string]string{
		`{"x": {"$ref": "a.0.id"}}`:                           `{"x": 1}`,
		`[{ "$ref" : "a.0.name" }, {"$ref":"a.0.deep.list"}]`: `["x&y=\"z\"", [true, {"k": 2.50}]]`,
		`{"x": {"$ref": "a.0.none"}}`:                         `{"x": null}`,
		`{"x": {"$ref": "a.0.id", "y": 1}}`:                   `{"x": {"$ref": "a.0.id", "y": 1}}`,
		`{"x": {"\u0024ref": "a.0.id"}}`:                      `{"x": {"\u0024ref": "a.0.id"}}`,
		`{"x": "{\"$ref\": \"a.0.id\"}", "$ref": 1}`:          `{"x": "{\"$ref\": \"a.0.id\"}", "$ref": 1}`,
		`{"x": {"$ref": "a.1.id"}}`:                           "",
		`{"x": {"$ref": "a.-1"}}`:                             "",
		`{"x": {"$ref": "a.0.id.x"}}`:                         "",
		`{"x": {"$ref": "a.0.0.0.0.0.0.0.0.0"}}`:              "",
		`{"x": {"$ref": "text.0"}}`:                           "",
		`{"x": {"$ref": ""}}`:                                 "",
	} {
		got, err := b.resolveBody([]byte(body), 1000)
		if (err == nil) != (want != "") || (err == nil && string(got) != want) {
			t.Errorf("%s: got %s, %v, want %q", body, got, err, want)
		}
	}

	for path, want := range map[string]string{
		"/t?id=eq.${a.0.id}&x=not.gte.${a.0.deep.list.1.k}": "/t?id=eq.1&x=not.gte.2.50",
		"/t?name=neq.${a.0.name}":                           "/t?name=neq.x%26y%3D%22z%22",
		"/t?name=lt.${a.0.deep.list.0}":                     "/t?name=lt.true",
		"/t?name=eq.$%7Ba.0.id}":                            "/t?name=eq.$%7Ba.0.id}",
		"/rpc/f?x=${a.0.id}":                                "/rpc/f?x=1",
		"/t?id=eq.${a.0.none}":                              "",
		"/t?id=eq.${a.0}":                                   "",
		"/t?id=in.(${a.0.id})":                              "",
		"/t?${a.0.name}=eq.1":                               "",
		"/t?select=${a.0.name}":                             "",
		"/t?id=eq.${a.0.id}${a.0.id}":                       "",
		"/${a.0.name}?id=eq.1":                              "",
	} {
		got, err := b.resolvePath(&operation{Method: http.MethodGet, Path: path})
		if (err == nil) != (want != "") || got != want {
			t.Errorf("%s: got %s, %v, want %q", path, got, err, want)
		}
	}

	if _, err := b.resolveBody([]byte(`[{"$ref": "a.0.name"}, {"$ref": "a.0.name"}]`), 20); err == nil {
		t.Error("a body of more than its limit was resolved")
	}

	b.answers[0].body = []byte("[" + strings.Repeat("1,", maxReferences) + "1]")
	b.references.forget()
	for i := range maxReferences + 1 {
		if _, err := b.valueOf("a." + strconv.Itoa(i)); (err == nil) != (i < maxReferences) {
			t.Errorf("reference %d: got %v", i+1, err)
		}
	}
}
