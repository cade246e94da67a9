package server_test

import (
	"encoding/json"
	"net/url"
	"testing"
)

// TestRowsDescription checks that the root document has the URL of the rows, and for each role the
// tables that it can use.
func TestRowsDescription(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	here, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}

	for key, may := range map[string]bool{s.publishable: false, s.secret: true} {
		for _, path := range []string{"", "/"} {
			var got struct {
				Host, BasePath string
				Paths          map[string]map[string]any
			}
			if err := json.Unmarshal([]byte(s.want(200, "", "GET", path, "", "apikey: "+key)), &got); err != nil {
				t.Fatal(err)
			}

			if want := "/projects/" + s.Project + "/rest/v1"; got.Host != here.Host || got.BasePath != want {
				t.Errorf("got %s%s, want %s%s", got.Host, got.BasePath, here.Host, want)
			}
			if titles := got.Paths["/titles"]; (titles["get"] != nil) != may || (titles["post"] != nil) != may {
				t.Errorf("got %v of titles, want them for the secret key only", titles)
			}
		}
	}

	s.want(401, "", "GET", "/", "")
}
