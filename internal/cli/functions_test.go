package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/client"
)

func TestFormerVersion(t *testing.T) {
	t.Parallel()

	versions := []functionVersion{{Version: "aa1"}, {Version: "bb1", Current: true}, {Version: "bb2"}, {Version: "cc1"}}
	for prefix, want := range map[string]string{"": "bb2", "a": "aa1", "bb2": "bb2", "bb": "", "d": ""} {
		got, err := formerVersion(versions, prefix)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", prefix, got, err, want)
		}
	}

	if got, err := formerVersion(versions[1:2], ""); err == nil {
		t.Errorf("the only version: got %q", got)
	}
}

// TestLinesAfter reads all pages back to the last line that was printed.
func TestLinesAfter(t *testing.T) {
	t.Parallel()

	const newest = 250
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("page"))
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		text := ""
		for id := newest - (page-1)*limit; id > max(newest-page*limit, 0); id-- {
			text += fmt.Sprintf(`,{"id": %d}`, id)
		}
		fmt.Fprintf(w, `{"success": true, "content": [%s], "metadata": {}, "errors": []}`, text[min(1, len(text)):])
	}))
	defer server.Close()

	for _, test := range []struct {
		after        int64
		limit        int
		first, count int
	}{{0, 5, newest - 4, 5}, {newest, 5, 0, 0}, {newest - 3, 5, newest - 2, 3}, {newest - 120, 5, newest - 119, 120},
		{newest - followLimit, 5, newest - followLimit + 1, followLimit}} {
		c := &client.Client{URL: server.URL, Project: "p"}
		lines, err := linesAfter(t.Context(), c, url.Values{}, test.after, test.limit)
		if err != nil || len(lines) != test.count || (test.count > 0 && lines[0].ID != int64(test.first)) {
			t.Errorf("after %d: got %d lines %v, %v", test.after, len(lines), lines[:min(1, len(lines))], err)
		}
	}
}

func TestPick(t *testing.T) {
	t.Parallel()

	all := map[string]string{"A": "1", "B": "2", "SUPABASE_URL": "x"}
	lookup := func(name string) (string, bool) { v, ok := all[name]; return v, ok }
	got, err := pick(nil, "file", lookup, all)
	if diff := cmp.Diff(got, map[string]string{"A": "1", "B": "2"}); diff != "" || err != nil {
		t.Errorf("all: %v, (-got +want):\n%s", err, diff)
	}
	got, err = pick([]string{"B"}, "file", lookup, all)
	if diff := cmp.Diff(got, map[string]string{"B": "2"}); diff != "" || err != nil {
		t.Errorf("one: %v, (-got +want):\n%s", err, diff)
	}
	for _, names := range [][]string{{"C"}, {"A", "C"}} {
		if _, err := pick(names, "file", lookup, all); err == nil {
			t.Errorf("%v: no failure", names)
		}
	}
	if _, err := pick(nil, "file", nil, map[string]string{"SUPABASE_URL": "x"}); err == nil {
		t.Error("a file without secrets: no failure")
	}
}
