package plan_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/rest/plan"
)

// TestEmbeddedTwice checks that a to-one relation with several rows yields a row for each,
// regardless of the page length.
func TestEmbeddedTwice(t *testing.T) {
	t.Parallel()

	d := open(t, `
		create view cast_of as select f.id, f.title, a.name from films f join roles r on r.film_id = f.id join actors a on a.id = r.actor_id;
		create table people (id int primary key, name text);
		create table singers (voice text) inherits (people);
		create table songs (id int primary key, person_id int references people);
		insert into people values (1, 'Ann'); insert into singers values (1, 'Bea', 'alt'); insert into songs values (1, 1)`)

	for _, c := range []struct {
		f               planner
		url, body, want string
	}{
		{plan.Read, "reviews?select=id,cast_of(name)&id=eq.1&order=cast_of(name)", "",
			`[{"id":1,"cast_of":{"name":"Duvall"}},{"id":1,"cast_of":{"name":"Nicholson"}}]`},
		{plan.Read, "reviews?select=id,cast_of(name)&id=eq.1&order=cast_of(title)&cast_of.name=eq.Duvall", "",
			`[{"id":1,"cast_of":{"name":"Duvall"}}]`},
		{plan.Read, "reviews?select=id,cast_of(title)&id=eq.1", "",
			`[{"id":1,"cast_of":{"title":"The Shining"}},{"id":1,"cast_of":{"title":"The Shining"}}]`},
		{plan.Read, "songs?select=id,people(name)&order=people(name)", "",
			`[{"id":1,"people":{"name":"Ann"}},{"id":1,"people":{"name":"Bea"}}]`},
		{plan.Read, "songs?select=id,people()&order=people(name)", "", `[{"id":1}]`},
		{plan.Update, "reviews?id=eq.1&select=id,cast_of(title)", `{"stars":1}`,
			`[{"id":1,"cast_of":{"title":"The Shining"}},{"id":1,"cast_of":{"title":"The Shining"}}]`},
	} {
		for _, limit := range []*int64{nil, new(int64(100))} {
			r := d.request(t, c.url)
			r.Range.Limit, r.Return = limit, plan.Representation

			if c.body != "" {
				r.Body = []byte(c.body)
			}

			if got, err := d.do(c.f, r); err != nil || compact(got.body) != c.want {
				t.Errorf("%s: got %s, %v, want %s", c.url, compact(got.body), err, c.want)
			}
		}
	}
}

// TestRelatedOrder checks the order by a shown column of an embedded relation whose name other
// columns share.
func TestRelatedOrder(t *testing.T) {
	t.Parallel()

	d := open(t)
	for url, want := range map[string]string{
		"films?select=id,directors(id)&order=directors(id).desc.nullslast,id&directors.limit=0":              `[{"id":1,"directors":null},{"id":2,"directors":null},{"id":3,"directors":null},{"id":4,"directors":null}]`,
		"films?select=id,directors(name)&order=directors(id).desc.nullslast,id&directors.offset=1":           `[{"id":1,"directors":null},{"id":2,"directors":null},{"id":3,"directors":null},{"id":4,"directors":null}]`,
		"reviews?select=stars,films(id,...directors(id))&order=films(id).desc&id=in.(1,4)":                   `[{"stars":5,"films":{"id":3,"id":2}},{"stars":5,"films":{"id":1,"id":1}}]`,
		"reviews?select=stars,films(title,title:year)&order=films(title).desc&id=in.(1,4)":                   `[{"stars":5,"films":{"title":"The Shining","title":1980}},{"stars":5,"films":{"title":"Cléo","title":1962}}]`,
		"reviews?select=stars,...films(id,...directors(director:id))&order=films(director).desc&id=in.(1,4)": `[{"stars":5,"id":3,"director":2},{"stars":5,"id":1,"director":1}]`,
	} {
		for _, limit := range []*int64{nil, new(int64(100))} {
			r := d.request(t, url)
			r.Range.Limit = limit
			if got, err := d.do(plan.Read, r); err != nil || compact(got.body) != want {
				t.Errorf("%s: got %s, %v, want %s", url, compact(got.body), err, want)
			}
		}
	}
}

// TestJoinTableAlias checks a relation whose name looks like a generated alias.
func TestJoinTableAlias(t *testing.T) {
	t.Parallel()

	d := open(t, `
		create table left_1j (id int primary key, name text);
		create table "left" (id int primary key, name text);
		create table both_sides (a int references left_1j, b int references "left", primary key (a, b));
		insert into left_1j values (1, 'one'), (2, 'two'); insert into "left" values (7, 'seven'), (8, 'eight'); insert into both_sides values (1, 7), (2, 8)`)

	got, err := d.do(plan.Read, d.request(t, "left_1j?select=name,left(name)&order=id"))
	if want := `[{"name":"one","left":[{"name":"seven"}]},{"name":"two","left":[{"name":"eight"}]}]`; err != nil ||
		compact(got.body) != want {
		t.Errorf("got %s, %v, want %s", compact(got.body), err, want)
	}
}
