package object

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// codes returns the invalid fields of err as "field code".
func codes(err error) []string {
	all := []string{}
	for _, f := range fault.Of(err).Fields {
		all = append(all, f.Name+" "+f.Code)
	}

	return all
}

func newContainer(t *testing.T, p *projectdb.Project, name string) Container {
	t.Helper()

	c, err := CreateContainer(t.Context(), p, actor.Member(projectdbtest.UUID(t)), NewContainer{Name: name})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// TestReservedNames checks that no container gets a word of a path as its name, and that one that
// an older release has given it can be changed.
func TestReservedNames(t *testing.T) {
	t.Parallel()

	p, member := projectdbtest.New(t), actor.Member(projectdbtest.UUID(t))
	old, other := newContainer(t, p, "older"), newContainer(t, p, "other")
	if _, err := p.Trusted().Exec(t.Context(), `update storage.containers set name = 'public', id = 'public'
		where uuid = $1`, old.UUID); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"public", "authenticated", "list-v2"} {
		_, err := CreateContainer(t.Context(), p, member, NewContainer{Name: name})
		if diff := cmp.Diff([]string{"name reserved"}, codes(err)); diff != "" {
			t.Errorf("create %s: %s", name, diff)
		}
		_, err = UpdateContainer(t.Context(), p, member, other.Ref(), ContainerUpdate{Name: &name})
		if diff := cmp.Diff([]string{"name reserved"}, codes(err)); diff != "" {
			t.Errorf("rename to %s: %s", name, diff)
		}
	}

	same := "public"
	c, err := UpdateContainer(t.Context(), p, member, old.Ref(), ContainerUpdate{Name: &same, IsPublic: new(true)})
	if err != nil || c.Name != same || !c.IsPublic {
		t.Errorf("got %+v, %v, want the old name", c, err)
	}
}

func TestCreateContainer(t *testing.T) {
	t.Parallel()

	p, user := projectdbtest.New(t), projectdbtest.UUID(t)
	member := actor.Member(user)
	got, err := CreateContainer(t.Context(), p, member, NewContainer{
		Name:        "Reports_2026-1",
		Description: "é",
		IsPublic:    true,
		MaxFileSize: new(MaxFileSize),
	})
	if err != nil {
		t.Fatal(err)
	}

	want := Container{
		ProjectUUID: p.UUID,
		Name:        "Reports_2026-1",
		ID:          "Reports_2026-1",
		Type:        "STANDARD",
		Description: "é",
		IsPublic:    true,
		MaxFileSize: 5 << 30,
		Allowed:     []string{},
		CreatedBy:   user,
		UpdatedBy:   user,
	}
	if diff := cmp.Diff(got, want, cmpopts.IgnoreTypes(time.Time{}),
		cmpopts.IgnoreFields(Container{}, "UUID")); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got.UUID.Version() != 7 || got.CreatedAt.IsZero() || !got.UpdatedAt.Equal(got.CreatedAt) {
		t.Errorf("got %+v, want a UUID of version 7 and equal times", got)
	}

	read, err := GetContainer(t.Context(), p, member, got.Ref())
	if diff := cmp.Diff(read, got); diff != "" || err != nil {
		t.Errorf("got -, want + (%v)\n%s", err, diff)
	}

	if c := newContainer(t, p, "least"); c.MaxFileSize != DefaultFileSize || c.Description != "" || c.IsPublic {
		t.Errorf("defaults: got %+v, want %d bytes, no description, not public", c, DefaultFileSize)
	}

	_, err = CreateContainer(t.Context(), p, member, NewContainer{Name: "least"})
	if got, want := codes(err), []string{"name already_exists"}; !slices.Equal(got, want) ||
		!fault.Is(err, fault.Conflict) {
		t.Errorf("duplicate name: got %v, want Conflict with %q", err, want)
	}

	newContainer(t, p, "Least")
	newContainer(t, projectdbtest.New(t), "least")

	for _, name := range []string{"", "ab", strings.Repeat("a", 64), "a b", "a/b", "été", "abc\n", "a\x00c"} {
		_, err := CreateContainer(t.Context(), p, member, NewContainer{Name: name})
		if got, want := codes(err), []string{"name invalid_format"}; !slices.Equal(got, want) ||
			!fault.Is(err, fault.Unprocessable) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}

	_, err = CreateContainer(t.Context(), p, member,
		NewContainer{Description: "\x00", MaxFileSize: new(MaxFileSize + 1)})
	if got, want := codes(err), []string{
		"name invalid_format", "description invalid_format", "max_file_size out_of_range",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUpdateContainer(t *testing.T) {
	t.Parallel()

	p, user := projectdbtest.New(t), projectdbtest.UUID(t)
	member := actor.Member(user)
	c := newContainer(t, p, "reports")
	newContainer(t, p, "taken")

	want := c
	for _, step := range []struct {
		update ContainerUpdate
		change func()
	}{
		{ContainerUpdate{Name: new("drawings")}, func() { want.Name = "drawings" }},
		{ContainerUpdate{Description: new("all of them")}, func() { want.Description = "all of them" }},
		{ContainerUpdate{IsPublic: new(true), MaxFileSize: new(int64(1))}, func() {
			want.IsPublic, want.MaxFileSize = true, 1
		}},
		{ContainerUpdate{Description: new(""), IsPublic: new(false)}, func() {
			want.Description, want.IsPublic = "", false
		}},
		{ContainerUpdate{Name: new("drawings")}, func() {}},
	} {
		step.change()

		got, err := UpdateContainer(t.Context(), p, member, c.Ref(), step.update)
		if err != nil {
			t.Fatal(err)
		}

		if !got.UpdatedAt.After(want.UpdatedAt) {
			t.Errorf("got updated at %v, want later than %v", got.UpdatedAt, want.UpdatedAt)
		}

		want.UpdatedAt, want.UpdatedBy = got.UpdatedAt, user
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got -, want +\n%s", diff)
		}
	}

	for name, test := range map[string]struct {
		update ContainerUpdate
		kind   fault.Kind
		codes  []string
	}{
		"nothing": {ContainerUpdate{}, fault.Unprocessable, []string{}},
		"name taken": {ContainerUpdate{Name: new("taken"), Description: new("x")}, fault.Conflict,
			[]string{"name already_exists"}},
		"name wrong": {ContainerUpdate{Name: new("")}, fault.Unprocessable, []string{"name invalid_format"}},
		"size zero": {ContainerUpdate{MaxFileSize: new(int64(0))}, fault.Unprocessable,
			[]string{"max_file_size out_of_range"}},
		"long and public": {ContainerUpdate{IsPublic: new(true), Description: new(strings.Repeat("x", 501))},
			fault.Unprocessable, []string{"description too_long"}},
	} {
		_, err := UpdateContainer(t.Context(), p, member, c.Ref(), test.update)
		if !fault.Is(err, test.kind) || !slices.Equal(codes(err), test.codes) {
			t.Errorf("%s: got %v, want kind %d, %q", name, err, test.kind, test.codes)
		}

		if _, err := UpdateContainer(t.Context(), p, member, ContainerRef{UUID: projectdbtest.UUID(t)},
			test.update); !fault.Is(err,
			fault.NotFound) {
			t.Errorf("%s, unknown container: got %v, want NotFound", name, err)
		}
	}

	if got, err := GetContainer(t.Context(), p, member, c.Ref()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("after refusals (%v): got -, want +\n%s", err, cmp.Diff(got, want))
	}
}

// TestBucketRulesInSQL checks that a bucket by SQL follows the rules of one by the Storage API.
func TestBucketRulesInSQL(t *testing.T) {
	t.Parallel()

	p, service := projectdbtest.New(t), actor.Service()
	columns := map[string]string{"max_file_size": "file_size_limit"}
	for i, n := range []NewContainer{
		{ID: "docs"}, {ID: "a"}, {ID: "a b"}, {ID: " ab"}, {ID: "ab "}, {ID: "a/b"},
		{ID: "a\nb"}, {ID: "a\n"}, {ID: "é"}, {ID: "a'b"},
		{ID: "(it's) $1.00 & more_!*@=;:+,?-"}, {ID: strings.Repeat("a", 100)}, {ID: strings.Repeat("a", 101)},
		{ID: "move"}, {ID: ".."}, {ID: "Public"}, {ID: "x", Name: "upload"}, {ID: "x", Name: "a#b"},
		{ID: "small", MaxFileSize: new(int64(1))}, {ID: "none", MaxFileSize: new(int64(0))},
		{ID: "large", MaxFileSize: new(MaxFileSize)}, {ID: "larger", MaxFileSize: new(MaxFileSize + 1)},
		{ID: "t1", Allowed: []string{"image/png", " IMAGE/PNG\t", "text/*", "application/vnd.a+b"}},
		{ID: "t2", Allowed: []string{"*/*"}}, {ID: "t3", Allowed: []string{"image"}},
		{ID: "t4", Allowed: []string{"image/p*"}},
		{ID: "t5", Allowed: []string{"image/png; q=1"}}, {ID: "t6", Allowed: []string{""}},
		{ID: "t7", Allowed: []string{"a b/c"}},
		{ID: "t8", Allowed: []string{"a/" + strings.Repeat("b", 125)}},
		{ID: "t9", Allowed: []string{"a/" + strings.Repeat("b", 126)}},
		{ID: "t10", Allowed: numbered(100)}, {ID: "t11", Allowed: numbered(101)},
	} {
		if n.Name == "" {
			n.Name = n.ID
		}

		_, err := p.Owner().Exec(t.Context(),
			`insert into storage.buckets (id, name, file_size_limit, allowed_mime_types) values ($1, $2, $3, $4)`,
			n.ID, n.Name, n.MaxFileSize, n.Allowed)
		var column string
		if e, ok := errors.AsType[*pgconn.PgError](err); ok {
			column = e.ColumnName
		} else if err != nil {
			t.Fatal(err)
		}

		var allowed []string
		if err == nil {
			c, err := GetContainer(t.Context(), p, service, ContainerRef{ID: n.ID})
			if err != nil {
				t.Fatal(err)
			}
			if allowed = c.Allowed; n.Name != c.Name {
				t.Errorf("%d: got the name %q, want %q", i, c.Name, n.Name)
			}
			if _, err := DeleteContainer(t.Context(), p, service, c.Ref(), false); err != nil {
				t.Fatal(err)
			}
		}

		c, err := CreateContainer(t.Context(), p, service, n)
		want := ""
		if err != nil {
			field := fault.Of(err).Fields[0].Name
			want = stdcmp.Or(columns[field], field)
		}
		if column != want || (err == nil && !slices.Equal(allowed, c.Allowed)) {
			t.Errorf("%+v: got the column %q and types %q, want %q and %q", n, column, allowed, want, c.Allowed)
		}
	}
}

// numbered returns n MIME types.
func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("text/x%d", i)
	}

	return all
}
