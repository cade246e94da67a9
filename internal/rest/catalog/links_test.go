package catalog_test

import "testing"

func TestLinksOfForeignKeys(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create table clients (id int primary key, boss int constraint led_by references clients);
		create table projects (id int primary key, client int constraint owned_by references clients,
			payer int constraint paid_by references clients);
		create table details (project int primary key constraint detailed references projects);
		create table passes (id int primary key, client int unique constraint held_by references clients);
		create table badges (id int primary key, client int constraint worn_by references clients);
		create unique index on badges (client);
		create table twins (id int primary key, other int unique constraint twin_of references twins)`)

	wantLinks(t, c, "projects",
		"many-to-one clients by owned_by(client=id)", "many-to-one clients by paid_by(payer=id)",
		"one-to-one details by detailed(id=project)")

	wantLinks(t, c, "clients",
		"one-to-many badges by worn_by(id=client)", // an index without a constraint does not count
		"many-to-one clients by led_by(boss=id)", "one-to-many clients by led_by(id=boss)",
		"one-to-one passes by held_by(id=client)",
		"one-to-many projects by owned_by(id=client)", "one-to-many projects by paid_by(id=payer)")

	wantLinks(t, c, "details", "one-to-one forward projects by detailed(project=id)")
	wantLinks(t, c, "passes", "one-to-one forward clients by held_by(client=id)")
	wantLinks(t, c, "twins", "one-to-one forward twins by twin_of(other=id)", "one-to-one twins by twin_of(id=other)")
}

func TestLinksOfSeveralColumns(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create table places (dropped int, x int, y int, unique (y, x));
		alter table places drop column dropped;
		create table moves (id int primary key, at_y int, at_x int, constraint at foreign key (at_x, at_y) references places (x, y));
		create table marks (b int, a int, constraint marked foreign key (a, b) references places (x, y), unique (b, a));
		create view shown as select id, at_x as column, at_y as "row" from moves;
		create view half as select id, at_x from moves`)

	wantLinks(t, c, "places",
		"one-to-one marks by marked(x=a, y=b)", "one-to-many moves by at(x=at_x, y=at_y)",
		"one-to-many shown by at(x=column, y=row)")

	wantLinks(t, c, "marks", "one-to-one forward places by marked(a=x, b=y)")
	wantLinks(t, c, "shown", "many-to-one places by at(column=x, row=y)")
	wantLinks(t, c, "half")
}

func TestLinksThroughTables(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create schema hidden;
		create table films (id int primary key);
		create table actors (id int primary key);
		create table roles (film int constraint role_film references films, actor int constraint role_actor references actors,
			name text, since date, primary key (name, film, actor));
		create table loose (id int primary key, film int constraint loose_film references films, actor int constraint loose_actor references actors);
		create table hidden.credits (film int references films, actor int references actors, primary key (film, actor));
		create table sequels (first int constraint before references films, second int constraint after references films, primary key (first, second));
		create view cast_list as select film as movie, actor, name as part from roles`)

	wantLinks(t, c, "films",
		"many-to-many actors through cast_list by role_film(id=movie) and role_actor(actor=id)",
		"many-to-many actors through roles by role_film(id=film) and role_actor(actor=id)",
		"one-to-many cast_list by role_film(id=movie)",
		"many-to-many films through sequels by after(id=second) and before(first=id)",
		"many-to-many films through sequels by before(id=first) and after(second=id)",
		"one-to-many loose by loose_film(id=film)", "one-to-many roles by role_film(id=film)",
		"one-to-many sequels by after(id=second)", "one-to-many sequels by before(id=first)")

	wantLinks(t, c, "actors",
		"one-to-many cast_list by role_actor(id=actor)",
		"many-to-many films through cast_list by role_actor(id=actor) and role_film(movie=id)",
		"many-to-many films through roles by role_actor(id=actor) and role_film(film=id)",
		"one-to-many loose by loose_actor(id=actor)", "one-to-many roles by role_actor(id=actor)")
}

func TestLinksOfViews(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create schema hidden;
		create table hidden.people (id int primary key, name text, "resorig }{ col" text);
		create table tasks (id int primary key, owner int constraint owned_by references hidden.people, title text);
		create view hidden.middle as select p.name, p.id as number, p."resorig }{ col" as "(\ :resno 9 }" from hidden.people p where p.name <> '} {)';
		create view persons as select "(\ :resno 9 }", number as ":resno", upper(name) as name from hidden.middle order by name || '{';
		create view work as
			with named as (select id, name from hidden.people)
			select t.id as task, n.id as person, n.name, t.owner + 0 as computed, (select max(id) from tasks) as top
			from (select * from tasks) t left join named n on n.id = t.owner;
		create materialized view done as select id, owner from tasks;
		create view everything as select id, owner from tasks union all select id, owner from tasks;
		create view counted as select owner, count(*) as n from tasks group by owner;
		create view merged as select id, owner from tasks full join (select 1 as id) one using (id);
		create view of_function as select g as id from generate_series(1, 3) g;
		create view couples as select a.id as left_id, a.owner as left_owner, b.id as right_id, b.owner as right_owner from tasks a, tasks b`)

	wantLinks(t, c, "tasks",
		"many-to-one persons by owned_by(owner=:resno)", "many-to-one work by owned_by(owner=person)")

	wantLinks(t, c, "done", "many-to-one persons by owned_by(owner=:resno)",
		"many-to-one work by owned_by(owner=person)")

	wantLinks(t, c, "persons",
		"one-to-many counted by owned_by(:resno=owner)",
		"one-to-many couples by owned_by(:resno=left_owner)", "one-to-many couples by owned_by(:resno=right_owner)",
		"one-to-many done by owned_by(:resno=owner)", "one-to-many merged by owned_by(:resno=owner)",
		"one-to-many tasks by owned_by(:resno=owner)")

	wantLinks(t, c, "everything")
	wantLinks(t, c, "of_function")

	for name, key := range map[string][]string{
		"persons": {":resno"}, "work": {"person", "task"}, "done": {"id"}, "everything": nil, "counted": nil,
		"couples": {"left_id"}, "merged": nil,
	} {
		wantKey(t, c, name, key...)
	}
}

func TestLinksOfViewsOfEachOther(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create table things (id int primary key);
		create view a as select id from things;
		create view b as select id from a;
		create or replace view a as select id from b`)

	wantKey(t, c, "a")
	wantKey(t, c, "b")
}

func TestLinksOfViewsWithRepeatedColumns(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create table places (a int, b int, primary key (a, b));
		create table trips (a int, b int, constraint goes_to foreign key (a, b) references places);
		create view double as select a as a1, a as a2, b as b1, b as b2 from trips;
		create view many as select a as a1, a as a2, a as a3, a as a4, a as a5, b as b1, b as b2, b as b3, b as b4 from trips`)

	wantLinks(t, c, "double", "many-to-one places by goes_to(a1=a, b1=b)", "many-to-one places by goes_to(a1=a, b2=b)",
		"many-to-one places by goes_to(a2=a, b1=b)", "many-to-one places by goes_to(a2=a, b2=b)")
	wantLinks(t, c, "many", "many-to-one places by goes_to(a1=a, b1=b)", "many-to-one places by goes_to(a2=a, b2=b)",
		"many-to-one places by goes_to(a3=a, b3=b)", "many-to-one places by goes_to(a4=a, b4=b)",
		"many-to-one places by goes_to(a5=a, b4=b)")
}

func TestLinksOfPartitions(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create table owners (id int, region int, primary key (id, region)) partition by list (region);
		create table owners_1 partition of owners for values in (1);
		create table cars (id int, region int, owner int, primary key (id, region),
			constraint owned foreign key (owner, region) references owners) partition by list (region);
		create table cars_1 partition of cars for values in (1);
		create table parts (id int primary key, car int, region int, constraint part_of foreign key (car, region) references cars);
		create view first_cars as select * from cars_1;
		create table tickets (car int, region int, constraint of_first foreign key (car, region) references cars_1);
		create table base (id int primary key, part int constraint of references parts);
		create table child () inherits (base)`)

	wantLinks(t, c, "cars", "many-to-one owners by owned(owner=id, region=region)",
		"one-to-many parts by part_of(id=car, region=region)")

	wantLinks(t, c, "owners", "one-to-many cars by owned(id=owner, region=region)")
	wantLinks(t, c, "parts", "one-to-many base by of(id=part)", "many-to-one cars by part_of(car=id, region=region)")
	wantLinks(t, c, "child") // foreign keys are not inherited
	wantLinks(t, c, "tickets")
	wantLinks(t, c, "first_cars")
	wantKey(t, c, "first_cars", "id", "region")

	if c.Relations[name("cars_1")] != nil {
		t.Error("a partition is a relation of its own")
	}
	if relation(t, c, "child").ByName["part"] == nil {
		t.Error("an inherited column is missing")
	}
}

func TestLinksComputed(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create schema hidden;
		create table hidden.people (id int primary key);
		create table films (id int primary key, title text);
		create table reviews (id int primary key, film int constraint about references films);
		create view good as select * from films;
		create function reviews(films) returns setof reviews language sql stable as 'select * from reviews where film = $1.id';
		create function film(reviews) returns films language sql stable as 'select * from films where id = $1.film';
		create function best(films) returns setof reviews rows 1 language sql stable as 'select * from reviews';
		create function plain(films) returns text language sql stable as 'select $1.title';
		create function owner(films) returns setof hidden.people language sql stable as 'select * from hidden.people';
		create function hidden.secret(films) returns setof reviews language sql stable as 'select * from reviews';
		create function two(films, int) returns setof reviews language sql stable as 'select * from reviews'`)

	wantLinks(t, c, "films", "computed reviews by best single", "computed reviews by reviews")
	wantLinks(t, c, "reviews", "many-to-one films by about(film=id)", "computed films by film single",
		"many-to-one good by about(film=id)")

	wantLinks(t, c, "good", "one-to-many reviews by about(id=film)")
}

func TestLinksBetweenSchemas(t *testing.T) {
	t.Parallel()

	c := read(t, `
		create schema "Odd ""one""";
		create schema hidden;
		create table "Odd ""one"""."my table" ("a b" int primary key);
		create table hidden.secrets (id int primary key);
		create table things (id int primary key, "über" int constraint "to odd" references "Odd ""one"""."my table", secret int references hidden.secrets)`,
		"public", `Odd "one"`)

	wantLinks(t, c, "things", `many-to-one Odd "one".my table by to odd(über=a b)`)

	if len(c.Relations) != 2 {
		t.Errorf("got %d relations, want 2", len(c.Relations))
	}
}
