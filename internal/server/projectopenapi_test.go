package server_test

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestProjectOpenAPI checks that members of a project get the same document as a secret key at the
// root of its rows.
func TestProjectOpenAPI(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	root := s.want(200, "", "GET", "/", "", "apikey: "+s.secret)
	r := s.Member(5).Get("/projects/" + s.Project + "/openapi.json").Want(200)
	if got := bytes.TrimSpace(r.Body); string(got) != root {
		t.Errorf("got\n%s\nwant\n%s", got, root)
	}

	s.Send("GET", "/projects/"+s.Project+"/openapi.json", "", "If-None-Match: "+r.Header.Get("ETag")).Want(304)
	s.CreateTable("authors", "name text")

	eventually(t, "the new table is described", func() bool {
		var got struct{ Paths map[string]any }
		if err := json.Unmarshal(s.Get("/projects/"+s.Project+"/openapi.json").Want(200).Body, &got); err != nil {
			t.Fatal(err)
		}

		return got.Paths["/authors"] != nil
	})
}
