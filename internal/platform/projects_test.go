package platform

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// newOrganization creates the rows of a user and of their organization.
func newOrganization(t *testing.T, s *Store, name string) (organization, user uuid.UUID) {
	t.Helper()

	organization, user = uuid.New(), uuid.New()
	exec(t, s, `insert into platform.organizations (uuid, name) values ($1, $2)`, organization, name)
	exec(t, s, `insert into platform.users
		(uuid, username, username_folded, email, email_folded, bio, password_hash, organization_uuid)
		values ($1, $2, $2, $2, $2, '', '', $3)`, user, name, organization)
	exec(t, s, `insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, 2)`, organization, user)

	return organization, user
}

// create creates an active project.
func create(t *testing.T, s *Store, organization, user uuid.UUID, name string) Project {
	t.Helper()

	p, err := s.CreateProject(t.Context(), user, NewProject{Organization: organization, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = s.ActivateProject(t.Context(), p.UUID, 1); err != nil || p.Status != Active {
		t.Fatalf("got status %s, %v, want %s", p.Status, err, Active)
	}

	return p
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()

	if !fault.Is(err, kind) {
		t.Errorf("got %v, want an error of kind %v", err, kind)
	}
}

func TestCreateProject(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	exec(t, s, `insert into platform.settings (name, value, updated_by) values ('projects_per_organization', '2', gen_random_uuid())`)
	home, ada := newOrganization(t, s, "ada")
	for _, n := range []NewProject{
		{Organization: home, Name: " "},
		{Organization: home, Name: strings.Repeat("ä", maxProjectName+1)},
		{Organization: home, Name: "p", Description: strings.Repeat("d", maxProjectDescription+1)},
		{Organization: uuid.New(), Name: "p"},
	} {
		_, err := s.CreateProject(t.Context(), ada, n)
		wantKind(t, err, fault.Unprocessable)
	}

	first := create(t, s, home, ada, " first ")
	if first.Name != "first" {
		t.Errorf("got name %q, want it trimmed", first.Name)
	}

	_, err := s.CreateProject(t.Context(), ada, NewProject{Organization: home, Name: "FIRST"})
	wantKind(t, err, fault.Conflict)

	failure := fault.New(fault.Unavailable, "failure")
	_, err = s.CreateProject(t.Context(), ada, NewProject{Organization: home, Name: "undone",
		With: func(*Store, Project) error { return failure }})
	wantKind(t, err, fault.Unavailable)

	// A deleted project frees its name, and counts until it is purged.
	if _, err := s.DeleteProject(t.Context(), first.UUID, ada); err != nil {
		t.Fatal(err)
	}

	create(t, s, home, ada, "first")
	_, err = s.CreateProject(t.Context(), ada, NewProject{Organization: home, Name: "third"})
	wantKind(t, err, fault.Unprocessable)
	_, err = s.ReactivateProject(t.Context(), first.UUID, ada, Deleted, 1)
	wantKind(t, err, fault.Conflict)
}

func TestUpdateProject(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	home, ada := newOrganization(t, s, "ada")
	p := create(t, s, home, ada, "p")
	create(t, s, home, ada, "q")
	name, taken, blank := "renamed", "Q", " "
	_, err := s.UpdateProject(t.Context(), p.UUID, ada, ProjectUpdate{})
	wantKind(t, err, fault.Unprocessable)
	_, err = s.UpdateProject(t.Context(), p.UUID, ada, ProjectUpdate{Name: &blank})
	wantKind(t, err, fault.Unprocessable)
	_, err = s.UpdateProject(t.Context(), p.UUID, ada, ProjectUpdate{Name: &taken})
	wantKind(t, err, fault.Conflict)
	_, err = s.UpdateProject(t.Context(), uuid.New(), ada, ProjectUpdate{Name: &name})
	wantKind(t, err, fault.NotFound)

	got, err := s.UpdateProject(t.Context(), p.UUID, ada, ProjectUpdate{Name: &name})
	if err != nil || got.Name != name {
		t.Errorf("got %q, %v, want %q", got.Name, err, name)
	}
}

// TestListProjects checks that users see the projects of their organizations, and administrators
// all.
func TestListProjects(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	home, ada := newOrganization(t, s, "ada")
	other, bob := newOrganization(t, s, "bob")
	first, second := create(t, s, home, ada, "first"), create(t, s, home, ada, "second")
	create(t, s, other, bob, "third")
	if _, err := s.PauseProject(t.Context(), second.UUID, ada); err != nil {
		t.Fatal(err)
	}

	list := func(user uuid.UUID, f ProjectFilter) (names []string) {
		t.Helper()

		all, total, err := s.ListProjects(t.Context(), user, f, pg.Page{Number: 1, Limit: 10, Sort: "name"})
		if err != nil || int(total) != len(all) {
			t.Errorf("got %d of %d projects, %v", len(all), total, err)
		}

		for _, p := range all {
			names = append(names, p.Name)
		}

		return names
	}
	expect := func(got []string, want ...string) {
		t.Helper()

		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}

	expect(list(ada, ProjectFilter{}), "first", "second")
	expect(list(ada, ProjectFilter{Search: "FIR"}), "first")
	expect(list(ada, ProjectFilter{Status: Paused}), "second")
	expect(list(ada, ProjectFilter{Status: Deleted}))
	expect(list(ada, ProjectFilter{Only: []uuid.UUID{first.UUID}}), "first")
	expect(list(bob, ProjectFilter{}), "third")
	expect(list(uuid.New(), ProjectFilter{}))

	exec(t, s, `update platform.users set is_administrator = true where uuid = $1`, bob)
	expect(list(bob, ProjectFilter{}), "first", "second", "third")
	expect(list(bob, ProjectFilter{Organization: uuid.NullUUID{UUID: home, Valid: true}}), "first", "second")
}

// TestProjectStates walks a project through its states, and checks that no other transition is
// possible.
func TestProjectStates(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	home, ada := newOrganization(t, s, "ada")
	p := create(t, s, home, ada, "p")
	status := func(want string) {
		t.Helper()

		got, err := pg.Value[string](t.Context(), s.q, `select status from platform.projects where uuid = $1`, p.UUID)
		if err != nil || got != want {
			t.Errorf("got status %s, %v, want %s", got, err, want)
		}
	}
	do := func(f func() (Project, error), want fault.Kind) {
		t.Helper()

		if _, err := f(); (want == 0) != (err == nil) || (err != nil && !fault.Is(err, want)) {
			t.Errorf("got %v, want an error of kind %v", err, want)
		}
	}
	pause := func() (Project, error) { return s.PauseProject(t.Context(), p.UUID, ada) }
	remove := func() (Project, error) { return s.DeleteProject(t.Context(), p.UUID, ada) }
	purge := func() (Project, error) { return s.StartPurge(t.Context(), p.UUID, ada) }
	reactivate := func(from string) func() (Project, error) {
		return func() (Project, error) { return s.ReactivateProject(t.Context(), p.UUID, ada, from, 1) }
	}

	do(reactivate(Paused), fault.NotFound)
	do(pause, 0)
	do(pause, fault.NotFound)
	status(Paused)
	do(reactivate(Deleted), fault.NotFound)
	do(reactivate(Paused), 0)
	do(remove, 0)
	do(remove, fault.NotFound)
	status(Deleted)
	do(func() (Project, error) { return s.GetProject(t.Context(), p.UUID) }, fault.NotFound)

	if expired, err := s.ExpireProject(t.Context(), p.UUID, time.Hour); err != nil || expired {
		t.Errorf("within its retention: got expired %t, %v, want false", expired, err)
	}

	do(reactivate(Deleted), 0)
	exec(t, s, `update platform.projects set backup_before_destructive = true`)
	do(purge, fault.Conflict)
	status(Active)
	exec(t, s, `update platform.projects set backup_before_destructive = false`)
	do(remove, 0)
	exec(t, s, `update platform.projects set deleted_at = now() - interval '2 hours'`)
	if expired, err := s.ExpireProject(t.Context(), p.UUID, time.Hour); err != nil || !expired {
		t.Errorf("after its retention: got expired %t, %v, want true", expired, err)
	}

	status("deleting")
	do(purge, fault.NotFound)
	if err := s.DeletePurgedProject(t.Context(), p.UUID); err != nil {
		t.Error(err)
	}
	if n := exec(t, s, `select from platform.projects`); n != 0 {
		t.Errorf("got %d rows, want none", n)
	}
}
