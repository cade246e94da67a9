package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

// FuzzBody checks that CSV rows and forms become valid JSON.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		"a,b\n1,2\n", "a\n\"x\"\"y\"\n\n", "a,a\nNULL,null", "id=1&name=K+L", "%00=\xff&a=%ff", "\"", "a,b\n1",
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		var rows []byte
		in, err := readCSV([]byte(text))
		if err == nil {
			all := func(string) bool { return true }
			rows, err = in.json(csvTarget{keep: all, emptyNull: all}, 1<<20)
		}

		var list []map[string]any
		switch {
		case err != nil:
			if e, ok := errors.AsType[*query.Error](err); !ok || e.Status != http.StatusBadRequest {
				t.Errorf("%q: %v", text, err)
			}
		case json.Unmarshal(rows, &list) != nil:
			t.Errorf("%q became %q", text, rows)
		default:
			if _, err := plan.Keys(rows); err != nil {
				t.Errorf("%q became %q: %v", text, rows, err)
			}
		}

		if form, err := url.ParseQuery(text); err == nil {
			if row := formRow(form); json.Unmarshal(row, &map[string]any{}) != nil {
				t.Errorf("%q became %q", text, row)
			}
		}
	})
}

// FuzzHeaders checks the handling of arbitrary headers and paths.
func FuzzHeaders(f *testing.F) {
	for _, text := range []string{
		`text/csv;q=0.5, application/vnd.pgrst.plan+json; for="application/json"; options=analyze|x`, "*/*",
		`a;b="c,d";q=x,`, "a=b; c=\"d", "0-9", "",
	} {
		f.Add(text, text)
	}

	s := New(Config{Schemas: []string{"public"}})
	f.Fuzz(func(t *testing.T, header, path string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header = http.Header{
			"Accept": {header}, "X-Any": {header, path}, "Cookie": {header}, "Range": {header}, "Prefer": {path},
		}

		r.Host = path
		for _, text := range [][]byte{appendHeaders(nil, r, false), appendCookies(nil, r, false)} {
			if json.Unmarshal(text, &map[string]string{}) != nil {
				t.Errorf("%q, %q became %q", header, path, text)
			}
		}

		for _, w := range parseAccept(r.Header["Accept"]) {
			if of, kind, explain := w.explained(); of.name == "" || kind == "" || explain == "" {
				t.Errorf("%q: %v, %q, %q", header, of, kind, explain)
			}
		}

		if _, err := window(r, &query.Query{}); err != nil {
			if e, ok := errors.AsType[*query.Error](err); !ok || e.Status != http.StatusRequestedRangeNotSatisfiable {
				t.Errorf("%q: %v", header, err)
			}
		}

		for _, err := range []error{secondOf(s.profile(r)), secondOf(parseRoute(path))} {
			if e, ok := errors.AsType[*query.Error](err); err != nil && (!ok || e.Status < 400 || e.Status > 499) {
				t.Errorf("%q: %v", path, err)
			}
		}

		contentLocation(path, header)
	})
}

func secondOf[T any](_ T, err error) error { return err }
