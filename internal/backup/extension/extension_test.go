package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// project is a database with an extension that has a table, and a login of its owner.
type project struct {
	*pgx.Conn
	name string
}

func newProject(t *testing.T) project {
	t.Helper()

	var p project
	t.Cleanup(func() { // after the databases are dropped
		if err := pgtest.DropRoles(context.Background(), p.name+"_"); err != nil {
			t.Error(err)
		}
	})

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })

	p = project{conn, conn.Config().Database}
	p.exec(t, `create schema extensions; grant usage on schema extensions to public;
		create extension hstore schema extensions; create role `+p.name+`_owner; create role `+p.name+`_request;
		create table extensions.systems (id int, note text); alter extension hstore add table extensions.systems`)
	return p
}

func (p project) exec(t *testing.T, sql string) {
	t.Helper()

	if _, err := p.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

func (p project) read(t *testing.T) *Changes {
	t.Helper()

	c, err := Read(t.Context(), p, p.name+"_owner")
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func (p project) target(source project, foreign bool) Target {
	return Target{
		Conn: p.Conn,
		ConnectOwner: func(ctx context.Context) (*pgx.Conn, error) {
			conn, err := pgx.ConnectConfig(ctx, p.Config())
			if err != nil {
				return nil, err
			}

			_, err = conn.Exec(ctx, "set role "+p.name+"_owner")
			return conn, err
		},
		Database: p.name, Owner: p.name + "_owner", Source: source.name, Foreign: foreign,
	}
}

// TestApply changes an extension in one database and applies that to another one, as of the same
// install and as of another one.
func TestApply(t *testing.T) {
	t.Parallel()

	t.Cleanup(func() { // after the databases are dropped
		if err := pgtest.DropRoles(context.Background(), "reader_of_"); err != nil {
			t.Error(err)
		}
	})

	from := newProject(t)
	if got := from.read(t); len(got.Rights) != 0 || len(got.Tables) != 1 {
		t.Fatalf("unchanged extension: got %+v", got)
	}

	reader := "reader_of_" + from.name
	roles := strings.NewReplacer("$owner", from.name+"_owner", "$request", from.name+"_request", "$reader", reader)
	from.exec(t, roles.Replace(`
		create role $reader;
		revoke execute on function extensions.hstore(text, text) from public;
		grant execute on function extensions.hstore(text, text) to $owner;
		grant select, trigger on extensions.systems to $request with grant option;
		grant update (note) on extensions.systems to $reader;
		alter table extensions.systems owner to $owner;
		alter table extensions.systems enable row level security;
		alter table extensions.systems force row level security;
		create policy own on extensions.systems for select to $owner using (id > 0);
		create policy never on extensions.systems as restrictive for all to public using (true) with check (note <> 'x')`))
	want := from.read(t)

	same := newProject(t)
	skipped, err := Apply(t.Context(), same.target(from, false), want)
	if err != nil || len(skipped) != 0 {
		t.Errorf("skipped %q, %v", skipped, err)
	}
	if diff := cmp.Diff(rename(from.read(t), from.name+"_", same.name+"_"), same.read(t)); diff != "" {
		t.Errorf("same install (-want +got):\n%s", diff)
	}

	foreign := newProject(t)
	skipped, err = Apply(t.Context(), foreign.target(from, true), want)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(skipped)
	if diff := cmp.Diff([]string{
		"TRIGGER on table extensions.systems for " + from.name + "_request",
		"UPDATE on table column extensions.systems.note for " + reader,
		"the owner of \"extensions\".\"systems\"",
	}, skipped); diff != "" {
		t.Errorf("skipped of another install (-want +got):\n%s", diff)
	}

	got := fmt.Sprint(foreign.read(t))
	if strings.Contains(got, "TRIGGER") || strings.Contains(got, reader) || foreign.read(t).Tables[0].Owned {
		t.Errorf("another install: got %s", got)
	}
}

// rename returns c with another prefix of the names of logins.
func rename(c *Changes, from, to string) *Changes {
	for _, o := range c.Rights {
		for i := range o.Grants {
			o.Grants[i].Role = strings.Replace(o.Grants[i].Role, from, to, 1)
		}
	}
	for _, table := range c.Tables {
		for _, p := range table.Policies {
			for i := range p.Roles {
				p.Roles[i] = strings.Replace(p.Roles[i], from, to, 1)
			}
		}
	}

	return c
}

// TestNoRecord applies the backup of a release that recorded no changes: tables get row security.
func TestNoRecord(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	if _, err := Apply(t.Context(), p.target(p, false), nil); err != nil {
		t.Fatal(err)
	}
	if got := p.read(t); !got.Tables[0].RowSecurity || got.Tables[0].Forced {
		t.Errorf("got %+v", got.Tables)
	}
}

func TestMissingObjects(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	skipped, err := Apply(t.Context(), p.target(p, false), &Changes{
		Tables: []Table{{Schema: "extensions", Name: "gone"}},
		Rights: []Object{{Kind: "function", Identity: "extensions.gone()"}},
	})
	if want := []string{"privileges of function extensions.gone()", "table extensions.gone"}; err != nil ||
		!slices.Equal(skipped, want) {
		t.Errorf("got %q, %v, want %q", skipped, err, want)
	}
}

func TestUnrestored(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.exec(t, `create index by_note on extensions.systems (note);
		comment on column extensions.systems.id is 'number'`)

	got, err := Unrestored(t.Context(), p)
	want := []string{
		"the comment on column id of extensions.systems, a table of an extension, is in no backup",
		"the index extensions.by_note of extensions.systems, a table of an extension, is in no backup",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestGrantedOn(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ kind, identity, privilege, want string }{
		{"table", "public.t", "SELECT", "SELECT on table public.t"},
		{"view", "public.v", "", " on table public.v"},
		{"aggregate", "public.sum(integer)", "EXECUTE", "EXECUTE on routine public.sum(integer)"},
		{"domain", "public.d", "USAGE", "USAGE on domain public.d"},
		{"sequence", "public.s", "USAGE", "USAGE on sequence public.s"},
		{"table column", `public."a.b"."c.d"`, "UPDATE", `UPDATE ("c.d") on table public."a.b"`},
	} {
		if got := grantTarget(tt.kind, tt.identity, tt.privilege); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.kind, tt.identity, got, tt.want)
		}
	}
}
