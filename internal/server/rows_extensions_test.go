package server_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRowsOfExtensions checks that types, operators and functions of a project's extensions work
// unqualified in the rows API.
func TestRowsOfExtensions(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	secret := "apikey: " + s.secret
	s.want(404, "", "GET", "/places", "", secret) // loads the catalog before the extension exists

	for _, name := range []string{"citext", "postgis", "ltree"} {
		s.Post("/extensions", `{"name": "`+name+`"}`).Want(201)
	}

	s.CreateTable("places", "name citext", "at geometry(Point,4326)", "under ltree")
	s.Post("/functions/public",
		`{"name": "far", "language": "sql", "return_type": "double precision", "parameters": [{"name": "a", "type": "geography"}, {"name": "b", "type": "geography"}],
		"definition": "select round(st_distance(a, b))"}`).Want(201)

	apitest.Until(t, "the function is known", func() bool {
		status, text := s.rows(s.Project, "POST", "/rpc/far", `{"a": "POINT(0 0)", "b": "POINT(0.1 0)"}`, secret)
		return status == 200 && text == "11132"
	})

	s.want(201, "", "POST", "/places?columns=id,name,at,under",
		`[{"id": 1, "name": "Berlin", "at": {"type": "Point", "coordinates": [13.5, 52.5]}, "under": "europe.germany"}]`, secret)
	s.want(200, `[{"id":1}]`, "GET", "/places?select=id&name=eq.BERLIN", "", secret)
	s.want(200, `[{"id":1}]`, "GET", "/places?select=id&name=in.(BERLIN,x)&under=cd.europe", "", secret)
	s.want(200,
		`{"type" : "FeatureCollection", "features" : [{"type": "Feature", "geometry": {"type":"Point","coordinates":[13.5,52.5]}, "properties": {"name": "Berlin"}}]}`,
		"GET", "/places?select=name,at", "", secret, "Accept: application/geo+json")
}
