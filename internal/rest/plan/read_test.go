package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

func TestRead(t *testing.T) {
	t.Parallel()

	d := open(t)
	for url, want := range map[string]string{
		"actors":                  `[{"id":1,"name":"Nicholson"},{"id":2,"name":"Duvall"},{"id":3,"name":"Douglas"}]`,
		"actors?select=*&id=eq.2": `[{"id":2,"name":"Duvall"}]`,
		"actors?id=eq.9":          `[]`,
		"actors?select=nummer:id,name::text,id::text&id=lt.2":                       `[{"nummer":1,"name":"Nicholson","id":"1"}]`,
		"films?select=id&title=like.*S*&order=id":                                   `[{"id":1},{"id":2}]`,
		"films?select=id&title=ilike(any).{*sh*,*sp*}&order=id.desc":                `[{"id":2},{"id":1}]`,
		"films?select=id&title=like(all).{*i*,*n*}&order=id":                        `[{"id":1},{"id":4}]`,
		"films?select=id&title=match.^The":                                          `[{"id":1}]`,
		"films?select=id&title=imatch.^the":                                         `[{"id":1}]`,
		"films?select=id&id=in.(1,3)&order=id":                                      `[{"id":1},{"id":3}]`,
		"films?select=id&id=not.in.(1,3)&order=id":                                  `[{"id":2},{"id":4}]`,
		"films?select=id&id=in.()":                                                  `[]`,
		`films?select=id&title=in.("Orphan, \"film\"",Spartacus)&order=id`:          `[{"id":2},{"id":4}]`,
		"films?select=id&year=is.null":                                              `[{"id":4}]`,
		"films?select=id&year=is.not_null&order=id":                                 `[{"id":1},{"id":2},{"id":3}]`,
		"films?select=id&year=not.is.null&order=id":                                 `[{"id":1},{"id":2},{"id":3}]`,
		"films?select=id&year=isdistinct.1980&order=id":                             `[{"id":2},{"id":3},{"id":4}]`,
		"films?select=id&year=gt(any).{1970,1961}&order=id":                         `[{"id":1},{"id":3}]`,
		"films?select=id&tags=cs.{horror}":                                          `[{"id":1}]`,
		"films?select=id&tags=cd.{x,y}&order=id":                                    `[{"id":3},{"id":4}]`,
		"films?select=id&tags=ov.{x,history}&order=id":                              `[{"id":2},{"id":4}]`,
		"films?select=id&shown=sl.[10,20)&order=id":                                 `[{"id":1},{"id":2}]`,
		"films?select=id&shown=sr.[10,20)":                                          `[{"id":4}]`,
		"films?select=id&shown=adj.[9,20)&order=id":                                 `[{"id":2},{"id":4}]`,
		"films?select=id&shown=cs.[2,3)":                                            `[{"id":1}]`,
		"films?select=id&vector=fts(english).cats":                                  `[{"id":1}]`,
		"films?select=id&vector=plfts(english).dog":                                 `[{"id":2}]`,
		"films?select=id&title=wfts(english).orphans":                               `[{"id":4}]`,
		"films?select=id&title=not.phfts(english).the%20shining&order=id":           `[{"id":2},{"id":3},{"id":4}]`,
		"films?select=id&or=(id.eq.1,and(year.gt.1961,year.lt.1970))":               `[{"id":1},{"id":3}]`,
		"films?select=id&not.or=(id.eq.1,id.eq.2)&order=id":                         `[{"id":3},{"id":4}]`,
		"films?select=id&and=(id.gte.2,not.and(id.gte.3,id.lte.3))":                 `[{"id":2},{"id":4}]`,
		"films?select=data->a->>b,n:data->n&data->n=not.is.null&order=data->n.desc": `[{"b":null,"n":3},{"b":"y","n":2},{"b":"x","n":1}]`,
		"films?select=id&data->a->>b=eq.y":                                          `[{"id":2}]`,
		"films?select=tags->0&id=eq.1":                                              `[{"tags":"horror"}]`,
		"films?select=tags->-1&id=eq.1":                                             `[{"tags":"hotel"}]`,
		"directors?select=meta->n->1,meta->>city&id=eq.1":                           `[{"n":2,"city":"New York"}]`,
		"films?select=shout&id=eq.1":                                                `[{"shout":"THE SHINING"}]`,
		"films?select=id&shout=eq.SPARTACUS":                                        `[{"id":2}]`,
		"films?select=id&order=year.desc.nullslast,id&limit=2&offset=1":             `[{"id":3},{"id":2}]`,
		"films?select=id&order=year.nullsfirst&limit=1":                             `[{"id":4}]`,
		"paints?order=id": `[{"id":1,"c":"#0000ff"},{"id":2,"c":"#00ff00"}]`,
		"paints?select=c,raw:c::text&c=eq.%2300ff00":           `[{"c":"#00ff00","raw":"\"#00ff00\""}]`,
		"paints?select=id&c=in.(%230000ff,%2300ff00)&order=id": `[{"id":1},{"id":2}]`,
		`odd "name_1`: `[{"id":1,"a,b":"x","Größe":3,"c.d":{"k'\"\\": 1}}]`,
		`odd "name_1?select="a,b","c.d"->"k'\"\\"&Größe=eq.3`: `[{"a,b":"x","k'\"\\":1}]`,

		// Embedding.
		"films?select=title,directors(name)&order=id&limit=2":                 `[{"title":"The Shining","directors":{"name":"Kubrick"}},{"title":"Spartacus","directors":{"name":"Kubrick"}}]`,
		"films?select=directors(name)&id=eq.4":                                `[{"directors":null}]`,
		"films?select=d:director_id(name)&id=eq.3":                            `[{"d":{"name":"Varda"}}]`,
		"films?select=films_director_id_fkey(name)&id=eq.3":                   `[{"films_director_id_fkey":{"name":"Varda"}}]`,
		"directors?select=name,films(id)&films.order=year&order=id":           `[{"name":"Kubrick","films":[{"id":2},{"id":1}]},{"name":"Varda","films":[{"id":3}]},{"name":"Nobody","films":[]}]`,
		"directors?select=films(id)&films.order=id&films.limit=1&order=id":    `[{"films":[{"id":1}]},{"films":[{"id":3}]},{"films":[]}]`,
		"directors?select=name,films!inner(id)&films.year=lt.1961":            `[{"name":"Kubrick","films":[{"id":2}]}]`,
		"directors?select=name,films(id)&films.year=lt.1961&order=id&limit=2": `[{"name":"Kubrick","films":[{"id":2}]},{"name":"Varda","films":[]}]`,
		"films?select=id,directors!inner(name)&directors.name=eq.Varda":       `[{"id":3,"directors":{"name":"Varda"}}]`,
		"films?select=id,actors(name)&id=lte.2&order=id&actors.order=name":    `[{"id":1,"actors":[{"name":"Duvall"},{"name":"Nicholson"}]},{"id":2,"actors":[{"name":"Douglas"}]}]`,
		"actors?select=name,films(title,directors(name))&id=eq.3":             `[{"name":"Douglas","films":[{"title":"Spartacus","directors":{"name":"Kubrick"}}]}]`,
		"films?select=id,technical(camera)&id=lte.2&order=id":                 `[{"id":1,"technical":{"camera":"Arri"}},{"id":2,"technical":null}]`,
		"technical?select=camera,films(id)":                                   `[{"camera":"Arri","films":{"id":1}}]`,
		"staff?select=name,boss_id(name)&id=eq.4":                             `[{"name":"Di","boss_id":{"name":"Bob"}}]`,
		"staff?select=name,staff(name)&id=eq.1&staff.order=id":                `[{"name":"Ann","staff":[{"name":"Bob"},{"name":"Cy"}]}]`,
		"staff?select=name,team:staff!boss_id(name)&id=eq.2": `[{"name":"Bob",` +
			`"team":[{"name":"Di"}]}]`,
		"orders?select=id,b:addresses!billing(city),s:addresses!shipping_id(city)&order=id":    `[{"id":1,"b":{"city":"Bern"},"s":{"city":"Basel"}},{"id":2,"b":{"city":"Bern"},"s":{"city":"Bern"}},{"id":3,"b":{"city":"Basel"},"s":null}]`,
		"film_titles?select=title,directors(name)&id=eq.3":                                     `[{"title":"Cléo","directors":{"name":"Varda"}}]`,
		"directors?select=film_titles(title)&id=eq.2":                                          `[{"film_titles":[{"title":"Cléo"}]}]`,
		"films?select=id,maker(name)&order=id&id=in.(3,4)":                                     `[{"id":3,"maker":{"name":"Varda"}},{"id":4,"maker":null}]`,
		"films?select=id,sequels(id)&id=eq.2&sequels.order=id":                                 `[{"id":2,"sequels":[{"id":3},{"id":4}]}]`,
		"directors?select=name,films()&films=is.null":                                          `[{"name":"Nobody"}]`,
		"directors?select=name,films()&films=not.is.null&order=name":                           `[{"name":"Kubrick"},{"name":"Varda"}]`,
		"films?select=id,directors(),reviews()&or=(directors.is.null,reviews.is.null)":         `[{"id":4}]`,
		"directors?select=name,films!inner()&order=id":                                         `[{"name":"Kubrick"},{"name":"Varda"}]`,
		"directors?select=name,films!inner(id,reviews!inner(stars))&films.reviews.stars=eq.3":  `[{"name":"Kubrick","films":[{"id":1,"reviews":[{"stars":3}]}]}]`,
		"films?select=id,directors(name)&order=directors(name).desc.nullslast,id":              `[{"id":3,"directors":{"name":"Varda"}},{"id":1,"directors":{"name":"Kubrick"}},{"id":2,"directors":{"name":"Kubrick"}},{"id":4,"directors":null}]`,
		"films?select=id,d:directors(name)&d.name=eq.Varda&directors.id=eq.2&id=gt.2&order=id": `[{"id":3,"d":{"name":"Varda"}},{"id":4,"d":null}]`,

		// Spreads.
		"films?select=id,...directors(director:name,born)&id=in.(3,4)&order=id":       `[{"id":3,"director":"Varda","born":"1928-05-30"},{"id":4,"director":null,"born":null}]`,
		"films?select=id,...directors(*)&id=eq.3":                                     `[{"id":3,"id":2,"name":"Varda","born":"1928-05-30","meta":{"city": "Ixelles"}}]`,
		"reviews?select=stars,...films(title,...directors(name))&id=eq.1":             `[{"stars":5,"title":"The Shining","name":"Kubrick"}]`,
		"directors?select=name,...films(titles:title,year)&films.order=year&order=id": `[{"name":"Kubrick","titles":["Spartacus", "The Shining"],"year":[1960, 1980]},{"name":"Varda","titles":["Cléo"],"year":[1962]},{"name":"Nobody","titles":[],"year":[]}]`,
		"directors?select=name,...films!inner(id)&order=id.desc":                      `[{"name":"Varda","id":[3]},{"name":"Kubrick","id":[1, 2]}]`,
		"reviews?select=...films(directors(name))&id=eq.1":                            `[{"directors":{"name":"Kubrick"}}]`,
		"films?select=id,...directors(name)&order=directors(name)&limit=1":            `[{"id":1,"name":"Kubrick"}]`,

		// Aggregates.
		"films?select=count()":                                                                                  `[{"count":4}]`,
		"films?select=n:count(),director_id&order=director_id":                                                  `[{"n":2,"director_id":1},{"n":1,"director_id":2},{"n":1,"director_id":null}]`,
		"films?select=price.sum()::int,year.max(),price.avg()::float4":                                          `[{"sum":28,"max":1980,"avg":9.25}]`,
		"films?select=data->>n::int.sum()":                                                                      `[{"sum":6}]`,
		"directors?select=name,films(count())&order=id&limit=1":                                                 `[{"name":"Kubrick","films":[{"count":2}]}]`,
		"films?select=...directors(name),price.sum()&order=directors(name)":                                     `[{"sum":18.5,"name":"Kubrick"},{"sum":9.25,"name":"Varda"},{"sum":null,"name":null}]`,
		"reviews?select=stars.sum(),films(title)&film_id=eq.1":                                                  `[{"sum":8,"films":{"title":"The Shining"}}]`,
		"films?select=count(),reviews(stars)&id=eq.1&reviews.order=id":                                          `[{"count":1,"reviews":[{"stars":5},{"stars":3}]}]`,
		"films?select=count(),...reviews(stars)&id=eq.1&reviews.order=id":                                       `[{"count":1,"stars":[5, 3]}]`,
		"actors?select=count()&id=eq.0":                                                                         `[{"count":0}]`,
		"films?select=...directors(born.max())":                                                                 `[{"max":"1928-07-26"}]`,
		"reviews?select=stars.max(),...films(...directors(name))&film_id=eq.3":                                  `[{"max":5,"name":"Varda"}]`,
		"reviews?select=stars.sum(),films(directors(name))&film_id=lt.3":                                        `[{"sum":12,"films":{"directors":{"name":"Kubrick"}}}]`,
		"reviews?select=stars.sum(),films(title,directors(name),actors(id))&film_id=eq.1&films.actors.order=id": `[{"sum":8,"films":{"title":"The Shining","directors":{"name":"Kubrick"},"actors":[{"id":1},{"id":2}]}}]`,
		"films?select=count(),technical(films(title))&id=gt.1":                                                  `[{"count":3,"technical":null}]`,
	} {
		got, err := d.do(plan.Read, d.request(t, url))
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}

		if compact(got.body) != want {
			t.Errorf("%s\n got %s\nwant %s", url, compact(got.body), want)
		}

		r := d.request(t, url)
		if r.Range.Limit != nil {
			continue
		}

		r.Range.Limit = new(int64(100)) // related rows then take the other join strategy
		if short, err := d.do(plan.Read, r); err != nil || short != got {
			t.Errorf("%s, limited\n got %+v, %v\nwant %+v", url, short, err, got)
		}
	}
}

// TestReadFailures checks the contract's errors, and those that PostgreSQL reports.
func TestReadFailures(t *testing.T) {
	t.Parallel()

	d := open(t)
	for url, want := range map[string]string{
		"films?id=eq.x":         "22P02",
		"films?nope=eq.1":       "42703",
		"films?select=nope":     "42703",
		"films?order=nope":      "42703",
		"films?select=id::nope": "42704",
		"films?id=fts(nope).x":  "42704",
		"films?title=gt(any).x": "22P02",
		"films?id=like.x":       "42883",
		"films?id=in.(,1)":      "22P02",
		"films?nope.id=eq.1":    "PGRST108",
		"films?select=*,directors(*)&directors.nope.id=eq.1": "PGRST108",
		"films?order=directors(name)":                        "PGRST108",
		"directors?select=*,films(*)&order=films(id)":        "PGRST118",
		"films?select=nope(*)":                               "PGRST200",
		"orders?select=addresses(*)":                         "PGRST201",
		"films?select=directors!nope(*)":                     "PGRST200",
		"directors?select=...films(year.max())":              "PGRST127",
		"nope":                                               "PGRST205",
		"pg_class":                                           "PGRST205",
	} {
		if _, err := d.do(plan.Read, d.request(t, url)); code(err) != want {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
	}

	r := d.request(t, "films?select=id")
	r.Query.Select[0].Alias = "\x00"
	if _, err := d.do(plan.Read, r); code(err) != "42601" {
		t.Errorf("a name without characters: got %v", err)
	}

	for url, want := range map[string]string{"directors?select=made:films(*)&films.limit=1": "PGRST108",
		"directors?select=made:films(*)&made.limit=1": "",
		"directors?select=films(*)&films.limit=1":     ""} {
		r = d.request(t, url)
		r.AliasesOnly = true
		if _, err := d.do(plan.Read, r); code(err) != want {
			t.Errorf("%s, by aliases only: got %v, want %q", url, err, want)
		}
	}

	r = d.request(t, "films?select=count()")
	r.Aggregates = false
	if _, err := d.do(plan.Read, r); code(err) != "PGRST123" {
		t.Errorf("aggregates that are not allowed: got %v", err)
	}
}

func TestReadErrorBodies(t *testing.T) {
	t.Parallel()

	d := open(t)
	for url, want := range map[string]*query.Error{
		"film": {Status: 404, Code: "PGRST205", Message: "Could not find the table 'test.film' in the schema cache",
			Hint: "Perhaps you meant the table 'test.films'"},
		"zzzzzzzz": {Status: 404,
			Code: "PGRST205", Message: "Could not find the table 'test.zzzzzzzz' in the schema cache"},
		"orders?select=addresses(*)": {Status: 300, Code: "PGRST201",
			Message: "Could not embed because more than one relationship was found for 'orders' and 'addresses'",
			Details: []map[string]any{
				{"cardinality": "many-to-one",
					"embedding":    "orders with addresses",
					"relationship": "billing using orders(billing_id) and addresses(id)"},
				{"cardinality": "many-to-one",
					"embedding":    "orders with addresses",
					"relationship": "shipping using orders(shipping_id) and addresses(id)"},
			},
			Hint: "Try changing 'addresses' to one of the following: 'addresses!billing', " +
				"'addresses!shipping'. Find the desired relationship in the 'details' key."},
		"films?select=director(*)": {Status: 400, Code: "PGRST200",
			Message: "Could not find a relationship between 'films' and 'director' in the schema cache",
			Details: "Searched for a foreign key relationship between 'films' and 'director' in the schema " +
				"'test', but no matches were found.",
			Hint: "Perhaps you meant 'directors' instead of 'director'."},
		"films?select=staff!x(*)": {Status: 400, Code: "PGRST200",
			Message: "Could not find a relationship between 'films' and 'staff' in the schema cache",
			Details: "Searched for a foreign key relationship between 'films' and 'staff' using the hint 'x' in " +
				"the schema 'test', but no matches were found."},
		"pairs?select=film(*)": {Status: 400, Code: "PGRST200", // a relation without links
			Message: "Could not find a relationship between 'pairs' and 'film' in the schema cache",
			Details: "Searched for a foreign key relationship between 'pairs' and 'film' in the schema 'test', " +
				"but no matches were found.",
			Hint: "Perhaps you meant 'actors' instead of 'pairs'."},
		"films?select=Reviews(*)": {Status: 400, Code: "PGRST200",
			Message: "Could not find a relationship between 'films' and 'Reviews' in the schema cache",
			Details: "Searched for a foreign key relationship between 'films' and 'Reviews' in the schema " +
				"'test', but no matches were found."},
		"films?a.b=eq.1": {Status: 400, Code: "PGRST108", Message: "'a' is not an embedded resource in this request",
			Hint: "Verify that 'a' is included in the 'select' query parameter."},
	} {
		_, err := plan.Read(d.catalog, d.request(t, url))
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()

	d := open(t)
	two := int64(2)
	for _, c := range []struct {
		url         string
		count       plan.Count
		most        *int64
		total, page string
	}{
		{"films", plan.NoCount, nil, "", "4"},
		{"films", plan.Exact, nil, "4", "4"},
		{"films?limit=3", plan.Exact, nil, "4", "3"},
		{"films?limit=4", plan.Exact, nil, "4", "4"},
		{"films?limit=9", plan.Exact, nil, "4", "4"},
		{"films?limit=9&offset=3", plan.Exact, nil, "4", "1"},
		{"films?offset=3", plan.Exact, nil, "4", "1"},
		{"films?offset=9", plan.Exact, nil, "4", "0"},
		{"films?id=gt.2&limit=1", plan.Exact, nil, "2", "1"},
		{"films", plan.Exact, &two, "4", "2"},
		{"films", plan.Estimated, &two, "3", "2"},
		{"films", plan.Planned, &two, "", "2"},
		{"directors?select=films!inner(id)&limit=1", plan.Exact, nil, "2", "1"},
		{"directors?select=name,films()&films=is.null&limit=1", plan.Exact, nil, "1", "1"},
		{"films?select=director_id,count()&limit=1", plan.Exact, nil, "3", "1"},
	} {
		r := d.request(t, c.url)
		r.Count, r.MaxRows = c.count, c.most
		got, err := d.do(plan.Read, r)
		if err != nil || got.total != c.total || got.page != c.page {
			t.Errorf("%s, count %d: got %q of %q, %v, want %q of %q", c.url, c.count, got.page, got.total, err,
				c.page, c.total)
		}

		p, _ := plan.Read(d.catalog, r)
		if (p.CountSQL != "") != (c.count == plan.Planned || c.count == plan.Estimated) {
			t.Errorf("%s, count %d: statement of the count %q", c.url, c.count, p.CountSQL)
		}

		if p.CountSQL == "" {
			continue
		}

		x := d.conn.PgConn().ExecParams(t.Context(), "explain (format json) "+p.CountSQL, texts(p.CountArgs), nil,
			nil, nil).Read()
		if x.Err != nil {
			t.Errorf("%s: explain %s: %v", c.url, p.CountSQL, x.Err)
		}
	}
}

func TestMaxRows(t *testing.T) {
	t.Parallel()

	d := open(t)
	one := int64(1)
	r := d.request(t, "directors?select=films(id)&films.order=id&order=id&limit=5&films.limit=7")
	r.MaxRows = &one

	got, err := d.do(plan.Read, r)
	if want := `[{"films":[{"id":1}]}]`; err != nil || got.body != want {
		t.Errorf("got %s, %v, want %s", got.body, err, want)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct {
		url    string
		format plan.Format
		want   string
	}{
		{"actors?id=eq.1", plan.Object, `{"id":1,"name":"Nicholson"}`},
		{"actors?id=eq.0", plan.Object, ``},
		{"films?id=eq.4&select=id,year", plan.StrippedObject, `{"id":4}`},
		{"films?id=eq.4&select=id,year", plan.StrippedJSON, `[{"id":4}]`},
		{"films?id=eq.0", plan.StrippedJSON, `[]`},
		{"films?select=id,title,year&id=gte.3&order=id", plan.CSV,
			"id,title,year\n3,Cléo,1962\n4,\"Orphan, \"\"film\"\"\","},
		{"films?select=id&id=eq.0", plan.CSV, "\n"},
	} {
		r := d.request(t, c.url)
		r.Format = c.format
		got, err := d.do(plan.Read, r)
		if err != nil || got.body != c.want {
			t.Errorf("%s, format %d: got %q, %v, want %q", c.url, c.format, got.body, err, c.want)
		}
	}
}

func TestCustom(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct{ url, media, want string }{
		{"actors?select=name&order=id&limit=2", "text/html", `<{"name":"Nicholson"}><{"name":"Duvall"}>`},
		{"actors?order=id", "text/x-names", "NicholsonDuvallDouglas"},
		{"actors?id=eq.1", "image/x-bytes", "4e6963686f6c736f6e"},
		{"actors?id=eq.0", "text/x-names", ""},
	} {
		r := d.request(t, c.url)
		i := slices.IndexFunc(d.catalog.Handlers, func(h catalog.Handler) bool {
			return h.MediaType == c.media && h.For != h.Function
		})

		r.Format, r.Handler = plan.Custom, &d.catalog.Handlers[i]

		got, err := d.do(plan.Read, r)
		if err != nil || got.body != c.want {
			t.Errorf("%s as %s: got %q, %v, want %q", c.url, c.media, got.body, err, c.want)
		}
	}
}

// TestText checks that requests of one shape have the same statement.
func TestText(t *testing.T) {
	t.Parallel()

	d := open(t)
	read := func(url string) string {
		p, err := plan.Read(d.catalog, d.request(t, url))
		if err != nil {
			t.Fatal(err)
		}

		return p.SQL
	}

	for _, same := range [][2]string{
		{"films?select=id,directors(name)&id=in.(1,2)&title=eq.a&limit=3&directors.name=like.*x",
			"films?select=id,directors(name)&id=in.(7)&title=eq.%27%22&limit=3&directors.name=like.y"},
		{"films?limit=3&offset=1", "films?limit=3&offset=2"},
		{"films?limit=2000", "films?limit=3000"},
	} {
		if a, b := read(same[0]), read(same[1]); a != b {
			t.Errorf("got %s\nand %s", a, b)
		}
	}
}

// TestGenericPlan checks that PostgreSQL switches to a generic plan for a repeated page.
func TestGenericPlan(t *testing.T) {
	t.Parallel()

	d := open(t)
	d.exec(`
		create table test.makers (id int primary key, name text);
		create table test.things (id int primary key, price numeric, maker int references test.makers);
		create index on test.things (price);
		insert into test.makers select n, n from generate_series(1, 20) n;
		insert into test.things select n, n, 1 + n % 20 from generate_series(1, 1000) n;
		analyze test.makers, test.things;
		set search_path = pg_catalog, pg_temp`)

	var err error
	if d.catalog, err = catalog.Read(t.Context(), d.conn, catalog.Options{Schemas: []string{"test"}}); err != nil {
		t.Fatal(err)
	}

	for i, url := range []string{
		"things?select=id,price&price=gt.5&order=price&limit=20",
		"things?select=id,makers(name)&price=gt.5&order=price&limit=20",
	} {
		p, err := plan.Read(d.catalog, d.request(t, url))
		if err != nil {
			t.Fatal(err)
		}

		name := fmt.Sprint("page", i)
		d.exec("prepare " + name + " as " + p.SQL)

		for range 10 {
			d.exec("execute " + name + "('5')")
		}

		var generic, custom int
		if err := d.conn.QueryRow(t.Context(),
			"select generic_plans, custom_plans from pg_prepared_statements where name = $1",
			name).Scan(&generic, &custom); err != nil {
			t.Fatal(err)
		}

		if generic != 5 || custom != 5 { // PostgreSQL makes five custom plans first
			t.Errorf("%s: got %d generic plans and %d others, want 5 and 5", url, generic, custom)
		}
	}
}

// BenchmarkRead measures planning without parsing.
func BenchmarkRead(b *testing.B) {
	d := open(b)
	for _, url := range []string{
		"actors?id=eq.1", "films?select=id,title,year&year=gt.1960&order=year.desc&limit=20",
		"films?select=id,title,directors(name)&limit=20",
	} {
		q, err := query.Parse(url[strings.IndexByte(url, '?')+1:], query.Options{})
		if err != nil {
			b.Fatal(err)
		}

		target, _, _ := strings.Cut(url, "?")
		r := &plan.Request{Target: catalog.Name{Schema: "test", Name: target}, Query: q}
		b.Run(url, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if _, err := plan.Read(d.catalog, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestLongSearch checks that PostgreSQL parses the terms of a long full-text search once, not once
// per row.
func TestLongSearch(t *testing.T) {
	t.Parallel()

	d := open(t)
	for terms, want := range map[int]bool{1: false, 5000: true} {
		url := "films?select=id&vector=fts." + strings.Repeat("cat%7C", terms) + "dog"
		p, err := plan.Read(d.catalog, d.request(t, url))
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Contains(p.SQL, "(select to_tsquery("); got != want {
			t.Errorf("%d terms: read once %v, want %v: %s", terms, got, want, p.SQL)
		}

		if _, err := d.run(p); err != nil {
			t.Errorf("%d terms: %v", terms, err)
		}
	}
}
