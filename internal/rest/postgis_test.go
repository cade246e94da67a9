package rest

import (
	"encoding/json"
	"reflect"
	"testing"
)

const geometrySQL = `
	create schema extensions; create extension postgis schema extensions; grant usage on schema extensions to public;
	create table shops (id int primary key, address text, at extensions.geometry(Point, 4326));
	insert into shops values (1, 'Cambridge', 'SRID=4326;POINT(-71.5 42.25)'), (2, 'Kendall', 'SRID=4326;POINT(-71 42)');
	create table beacons (id int primary key, shop_id int references shops, at extensions.geometry(Point, 4326), area extensions.geometry(Polygon, 4326));
	insert into beacons values (1, 1, 'SRID=4326;POINT(1 2)', 'SRID=4326;POLYGON((0 0, 0 1, 1 1, 0 0))');
	create function shop(shop_id int) returns setof shops language sql stable as 'select * from shops where id = shop_id';
	create function places() returns table (name text, "where" extensions.geometry) language sql stable as $$ select 'here'::text, 'POINT(3 4)'::extensions.geometry $$;
	grant all on shops, beacons to authenticated`

// TestGeoJSON requests GeoJSON from a database with PostGIS.
func TestGeoJSON(t *testing.T) {
	t.Parallel()

	a := newAPI(t, geometrySQL)

	const (
		cambridge = `{"type":"Feature","geometry":{"type":"Point","coordinates":[-71.5,42.25]},"properties":{"id":1,"address":"Cambridge"}}`
		kendall   = `{"type":"Feature","geometry":{"type":"Point","coordinates":[-71,42]},"properties":{"id":2,"address":"Kendall"}}`
		moved     = `{"type":"Feature","geometry":{"type":"Point","coordinates":[5,6]},"properties":{"id":4,"address":"new"}}`
	)
	for _, test := range []struct {
		method, path, body string
		status             int
		features           string
	}{
		{"GET", "/shops?order=id&limit=2", "", 200, cambridge + "," + kendall},
		{"GET", "/shops?id=eq.9", "", 200, ""},
		{"GET", "/shops?select=at,name:address&id=eq.2", "", 200,
			`{"type":"Feature","geometry":{"type":"Point","coordinates":[-71,42]},"properties":{"name":"Kendall"}}`},
		{"GET", "/shops?select=*,beacons(id,at)&id=eq.1", "", 200,
			`{"type":"Feature","geometry":{"type":"Point","coordinates":[-71.5,42.25]},"properties":{"id":1,"address":"Cambridge",
			"beacons":[{"id":1,"at":{"type":"Point","crs":{"type":"name","properties":{"name":"EPSG:4326"}},"coordinates":[1,2]}}]}}`},
		{"GET", "/beacons?select=id,area,...shops(address)", "", 200,
			`{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]},"properties":{"id":1,"address":"Cambridge"}}`},
		{"GET", "/rpc/shop?shop_id=2", "", 200, kendall},
		{"POST", "/rpc/shop", `{"shop_id":2}`, 200, kendall},
		{"GET", "/rpc/places", "", 200,
			`{"type":"Feature","geometry":{"type":"Point","coordinates":[3,4]},"properties":{"name":"here"}}`},
		{"POST", "/shops", `{"id":4,"address":"new","at":"SRID=4326;POINT(0 0)"}`, 201,
			`{"type":"Feature","geometry":{"type":"Point","coordinates":[0,0]},"properties":{"id":4,"address":"new"}}`},
		{"PATCH", "/shops?id=eq.4", `{"at":{"type":"Point","coordinates":[5,6]}}`, 200, moved},
		{"PUT", "/shops?id=eq.4", `{"id":4,"address":"new","at":"SRID=4326;POINT(5 6)"}`, 200, moved},
		{"DELETE", "/shops?id=eq.4", "", 200, moved},
	} {
		got := a.do(test.method, test.path, test.body, "Accept", "application/geo+json", "Prefer",
			"return=representation")
		if got.status != test.status || got.header.Get("Content-Type") != "application/geo+json; charset=utf-8" {
			t.Errorf("%s %s: %+v", test.method, test.path, got)
			continue
		}

		var have, want any
		if err := json.Unmarshal([]byte(got.body), &have); err != nil {
			t.Errorf("%s %s: %v: %s", test.method, test.path, err, got.body)
		}
		if err := json.Unmarshal([]byte(`{"type":"FeatureCollection","features":[`+test.features+`]}`),
			&want); err != nil {
			t.Fatal(err)
		}

		if !reflect.DeepEqual(have, want) {
			t.Errorf("%s %s: got %v, want %v", test.method, test.path, have, want)
		}
	}

	for path, want := range map[string]string{
		"/clients":         `{"code":"22023","details":null,"hint":null,"message":"geometry column is missing"}`,
		"/shops?select=id": `{"code":"22023","details":null,"hint":null,"message":"geometry column is missing"}`,
	} {
		if got := a.do("GET", path, "", "Accept", "application/geo+json"); got.status != 400 || got.body != want {
			t.Errorf("%s without a geometry: %+v, want %s", path, got, want)
		}
	}

	if got := a.do("GET", "/shops?select=at&id=eq.2", ""); got.status != 200 ||
		got.body !=
			`[{"at":{"type":"Point","crs":{"type":"name","properties":{"name":"EPSG:4326"}},"coordinates":[-71,42]}}]` {
		t.Errorf("as JSON: %+v", got)
	}
	if got := a.do("HEAD", "/shops", "", "Accept", "application/geo+json"); got.status != 200 || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
}

// TestNoGeoJSON requests GeoJSON from a database without PostGIS.
func TestNoGeoJSON(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	if got := a.do("GET", "/clients", "", "Accept", "application/geo+json"); got.status != 406 ||
		got.body !=
			`{"code":"PGRST107","details":null,"hint":null,"message":"None of these media types are available: application/geo+json"}` {
		t.Errorf("%+v", got)
	}
}
