package plan_test

import (
	"testing"

	"socle/internal/rest/plan"
)

// TestJoinTableAlias: a relation whose name looks like one that a statement makes is itself.
func TestJoinTableAlias(t *testing.T) {
	t.Parallel()
	d := open(t, `
		create table left_1j (id int primary key, name text);
		create table "left" (id int primary key, name text);
		create table both_sides (a int references left_1j, b int references "left", primary key (a, b));
		insert into left_1j values (1, 'one'), (2, 'two'); insert into "left" values (7, 'seven'), (8, 'eight'); insert into both_sides values (1, 7), (2, 8)`)
	got, err := d.do(plan.Read, d.request(t, "left_1j?select=name,left(name)&order=id"))
	if want := `[{"name":"one","left":[{"name":"seven"}]},{"name":"two","left":[{"name":"eight"}]}]`; err != nil || compact(got.body) != want {
		t.Errorf("got %s, %v, want %s", compact(got.body), err, want)
	}
}
