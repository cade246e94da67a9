package object

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// ownFolder are the policies of an application in which everyone has a folder.
const ownFolder = `
	create policy read on storage.objects for select to authenticated using (owner_id = (select auth.uid()::text));
	create policy write on storage.objects for insert to authenticated
		with check (bucket_id = 'files' and (storage.foldername(name))[1] = (select auth.uid()::text));
	create policy change on storage.objects for update to authenticated using (owner_id = (select auth.uid()::text));
	create policy remove on storage.objects for delete to authenticated using (owner_id = (select auth.uid()::text))`

// application is a bucket with end users.
type application struct {
	*bucket
	ann, bob actor.Actor
}

func newApplication(t *testing.T) *application {
	t.Helper()

	b := newBucket(t)
	if _, err := b.project.Owner().Exec(t.Context(), ownFolder); err != nil {
		t.Fatal(err)
	}

	user := func() actor.Actor {
		id := uuid.NewString()
		claims := `{"sub": "` + id + `", "role": "authenticated"}`

		return actor.Actor{Role: "authenticated", Subject: id, Claims: []byte(claims)}
	}

	return &application{b, user(), user()}
}

var server = actor.Service()

func (a *application) put(actor actor.Actor, name string, content io.Reader, upsert bool) (File, error) {
	f, _, err := CreateFile(a.t.Context(), a.project, a.store, actor, a.container.Ref(), NewFile{
		FullFileName: name, MimeType: "text/plain", Content: content, Upsert: upsert,
		CacheControl: "max-age=60", Metadata: []byte(`{"a": 1}`)})
	return f, err
}

func (a *application) mustPut(actor actor.Actor, name, content string) File {
	a.t.Helper()

	f, err := a.put(actor, name, strings.NewReader(content), true)
	if err != nil {
		a.t.Fatal(err)
	}

	return f
}

// named identifies a file of the container.
func (a *application) named(name string) FileRef {
	return FileRef{Container: a.container.UUID, Name: name}
}

// wantKind checks the kind of a failure.
func (a *application) wantKind(what string, err error, want fault.Kind) {
	a.t.Helper()

	if !fault.Is(err, want) {
		a.t.Errorf("%s: got %v, want kind %d", what, err, want)
	}
}

// TestCreateFileWithRights stores objects as the policies allow.
func TestCreateFileWithRights(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	anns := a.ann.Subject + "/a.txt"
	a.mustPut(a.ann, anns, "one")
	a.mustPut(a.ann, anns, "two")

	_, err := a.put(a.ann, anns, strings.NewReader("three"), false)
	a.wantKind("taken name", err, fault.Conflict)
	_, err = a.put(a.bob, anns, strings.NewReader("three"), true)
	a.wantKind("folder of another user", err, fault.Forbidden)
	_, err = a.put(actor.Actor{Role: "anon"}, "a.txt", strings.NewReader("three"), false)
	a.wantKind("no policy", err, fault.Forbidden)

	servers := a.bob.Subject + "/s.txt"
	a.mustPut(server, servers, "server")
	_, err = a.put(a.bob, servers, strings.NewReader("bob"), true)
	a.wantKind("object of another owner", err, fault.Forbidden)

	got, err := pg.Value[string](t.Context(), a.project.Trusted(), `
		select concat_ws('|', size, owner_id = owner::text, cache_control, user_metadata) from storage.objects where name = $1`, anns)
	if err != nil || got != `3|t|max-age=60|{"a": 1}` {
		t.Errorf("got %q, %v", got, err)
	}

	if _, err := Discard(t.Context(), a.project, a.store); err != nil {
		t.Fatal(err)
	}
	a.wantFiles(2)
}

// changing is content that changes something before its end.
type changing struct {
	io.Reader
	change func()
}

func (c *changing) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err == io.EOF && c.change != nil {
		c.change()
		c.change = nil
	}

	return n, err
}

// TestCreateFileAsksAgain changes rights and objects while the bytes of an upload arrive.
func TestCreateFileAsksAgain(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	name := a.ann.Subject + "/a.txt"
	a.mustPut(a.ann, name, "old")

	_, err := a.put(a.ann, name, &changing{strings.NewReader("new"), func() {
		a.mustPut(server, name, "server")
	}}, true)
	a.wantKind("the object got another owner", err, fault.Forbidden)

	_, err = a.put(a.ann, a.ann.Subject+"/b.txt", &changing{strings.NewReader("new"), func() {
		if _, err := a.project.Owner().Exec(t.Context(), `drop policy write on storage.objects`); err != nil {
			t.Error(err)
		}
	}}, false)
	a.wantKind("the policy was dropped", err, fault.Forbidden)

	f, content, err := OpenFile(t.Context(), a.project, a.store, server, a.named(name))
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	if got, err := io.ReadAll(content); err != nil || string(got) != "server" {
		t.Errorf("%s: got %q, %v, want server", f.UUID, got, err)
	}
}

// TestDeleteFilesByName removes an end user's own objects only.
func TestDeleteFilesByName(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	names := []string{a.ann.Subject + "/a", a.ann.Subject + "/b", a.bob.Subject + "/c", "missing"}
	a.mustPut(a.ann, names[0], "1")
	a.mustPut(a.ann, names[1], "2")
	a.mustPut(a.bob, names[2], "3")

	gone, err := DeleteFilesByName(t.Context(), a.project, a.ann, a.container.UUID, names)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, f := range gone {
		got = append(got, f.FullFileName)
	}
	if slices.Sort(got); !slices.Equal(got, names[:2]) {
		t.Errorf("removed %q, want %q", got, names[:2])
	}

	if gone, err = DeleteFilesByName(t.Context(), a.project, server, a.container.UUID, names); err != nil ||
		len(gone) != 1 {
		t.Errorf("the server removed %v, %v, want one object", gone, err)
	}
	if _, err := Discard(t.Context(), a.project, a.store); err != nil {
		t.Fatal(err)
	}
	a.wantFiles(0)
}

// TestMoveFile moves objects between names and buckets, as the policies allow.
func TestMoveFile(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	other := newContainer(t, a.project, "other")
	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")
	a.mustPut(a.ann, a.ann.Subject+"/taken", "2")
	move := func(actor actor.Actor, to Container, source, destination string) error {
		_, err := UpdateFile(t.Context(), a.project, actor, a.named(source),
			FileUpdate{FullFileName: &destination, Container: new(to.Ref())})
		return err
	}

	a.wantKind("hidden object", move(a.bob, a.container, name, "x"), fault.NotFound)
	a.wantKind("missing object", move(server, a.container, "missing", "x"), fault.NotFound)
	a.wantKind("invalid name", move(a.ann, a.container, name, "../x"), fault.Unprocessable)
	a.wantKind("taken name", move(a.ann, a.container, name, a.ann.Subject+"/taken"), fault.Conflict)
	if err := move(a.ann, other, name, "b"); err != nil {
		t.Error(err)
	}

	_, content, err := OpenFile(t.Context(), a.project, a.store, a.ann, FileRef{Container: other.UUID, Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	content.Close()

	_, _, err = OpenFile(t.Context(), a.project, a.store, a.bob, FileRef{Container: other.UUID, Name: "b"})
	a.wantKind("object of another user", err, fault.NotFound)
}

// TestListEntries lists folders and objects, as far as the policies show them.
func TestListEntries(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, name := range []string{"é/x/1", "é/x/2", "é/x.txt", "é/Y", "é/z/q/r", "a", "zz/1", "\U0010FFFF/1"} {
		a.mustPut(server, name, "1")
	}
	a.mustPut(a.ann, a.ann.Subject+"/mine", "1")

	for _, c := range []struct {
		actor actor.Actor
		l     EntryListing
		want  string
	}{
		{server, EntryListing{Prefix: "é/", Delimiter: "/"}, "é/Y é/x.txt é/x/ é/z/"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Offset: 1, Limit: 2}, "é/x.txt é/x/"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Offset: 4}, ""},
		{server, EntryListing{Prefix: "é/x/", Delimiter: "/"}, "é/x/1 é/x/2"},
		{server, EntryListing{Prefix: "none/", Delimiter: "/"}, ""},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Descending: true}, "é/z/ é/x/ é/x.txt é/Y"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Descending: true, Limit: 1, After: "é/x/"}, "é/x.txt"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", After: "é/x/"}, "é/z/"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", After: "é/Y", Limit: 1}, "é/x.txt"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Search: "X", Limit: 2}, "é/x.txt é/x/"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Search: "y"}, "é/Y"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Sort: "created_at"}, "é/x/ é/z/ é/x.txt é/Y"},
		{server, EntryListing{Prefix: "é/", Delimiter: "/", Sort: "updated_at", Descending: true, Limit: 3},
			"é/z/ é/x/ é/Y"},
		{server, EntryListing{Prefix: "é/", Sort: "created_at", Offset: 1, Limit: 2}, "é/x/2 é/x.txt"},
		{server, EntryListing{Prefix: "é/x"}, "é/x.txt é/x/1 é/x/2"},
		{server, EntryListing{Prefix: "é/x", After: "é/x.txt", Limit: 1}, "é/x/1"},
		{server, EntryListing{Prefix: "é/x", Descending: true, After: "é/x/2"}, "é/x/1 é/x.txt"},
		{server, EntryListing{Prefix: "\U0010FFFF", Delimiter: "/"}, "\U0010FFFF/"},
		{server, EntryListing{Search: "zz", Delimiter: "/"}, "zz/"},
		{a.ann, EntryListing{Delimiter: "/"}, a.ann.Subject + "/"},
		{a.ann, EntryListing{Prefix: a.ann.Subject + "/", Delimiter: "/"}, a.ann.Subject + "/mine"},
		{a.bob, EntryListing{Delimiter: "/"}, ""},
	} {
		if c.l.Limit == 0 {
			c.l.Limit = 10
		}

		entries, err := ListEntries(t.Context(), a.project, c.actor, a.container.UUID, c.l)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}

		var got []string
		for _, e := range entries {
			got = append(got, e.Name)
			if (e.UUID == nil) != strings.HasSuffix(e.Name, "/") {
				t.Errorf("%+v: %s has UUID %v", c.l, e.Name, e.UUID)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %+v: got %q, want %q", c.actor.Role, c.l, got, c.want)
		}
	}
}

// TestListByCursor lists a bucket page by page in every order, while seen entries are deleted and
// new ones appear: each entry that stays comes once.
func TestListByCursor(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, sort := range []string{"name", "created_at", "updated_at"} {
		for _, descending := range []bool{false, true} {
			for _, delimiter := range []string{"", "/"} {
				prefix := fmt.Sprint(sort, descending, len(delimiter), "/")
				a.checkPages(EntryListing{
					Prefix: prefix, Delimiter: delimiter, Limit: 2, Sort: sort, Descending: descending,
				})
			}
		}
	}
}

func (a *application) checkPages(l EntryListing) {
	a.t.Helper()

	want := map[string]int{}
	for _, name := range []string{"m", "b", "x/1", "d/1", "k", "z", "d/2", "p"} {
		a.mustPut(server, l.Prefix+name, "1")
		if folder, _, ok := strings.Cut(name, "/"); ok && l.Delimiter != "" {
			name = folder + "/"
		}
		want[l.Prefix+name] = 1
	}

	seen := map[string]int{}
	for page := 0; ; page++ {
		entries, err := ListEntries(a.t.Context(), a.project, server, a.container.UUID, l)
		if err != nil {
			a.t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}

		for _, e := range entries {
			seen[e.Name]++

			if _, err := DeleteFilesByName(a.t.Context(), a.project, server, a.container.UUID,
				[]string{e.Name}); err != nil {
				a.t.Fatal(err)
			}
		}

		last := entries[len(entries)-1]
		l.After, l.AfterTime = last.Name, last.CreatedAt
		if l.Sort == "updated_at" {
			l.AfterTime = last.UpdatedAt
		}

		if page < 3 { // before and behind the cursor, in every order
			a.mustPut(server, fmt.Sprint(l.Prefix, "a", page), "1")
			a.mustPut(server, fmt.Sprint(l.Prefix, "zz", page), "1")
		}
	}

	for name := range want {
		if seen[name] != 1 {
			a.t.Errorf("%+v: got %s %d times, want once: %v", l, name, seen[name], seen)
		}
	}
	for name, n := range seen {
		if n != 1 {
			a.t.Errorf("%+v: got %s %d times", l, name, n)
		}
	}
}

// TestCopyFile copies an object that the policies show, with its metadata or others.
func TestCopyFile(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	source, target := a.ann.Subject+"/a", a.ann.Subject+"/b"
	a.mustPut(a.ann, source, "one")
	clone := func(actor actor.Actor, name string) error {
		_, _, err := CopyFile(t.Context(), a.project, a.store, actor, a.named(source), a.container.Ref(),
			NewFile{FullFileName: name})
		return err
	}

	if err := clone(a.ann, target); err != nil {
		t.Fatal(err)
	}
	o, content, err := OpenFile(t.Context(), a.project, a.store, a.ann, a.named(target))
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	text, err := io.ReadAll(content)
	if got := string(text) + o.MimeType + o.CacheControl() + string(o.UserMetadata); err != nil ||
		got != `onetext/plainmax-age=60{"a": 1}` {
		t.Errorf("got %q, %v", got, err)
	}

	a.wantKind("taken name", clone(a.ann, target), fault.Conflict)

	bobs := a.bob.Subject + "/b"
	a.wantKind("hidden source", clone(a.bob, bobs), fault.NotFound)
	a.wantKind("refused target", clone(a.ann, bobs), fault.Forbidden)
}

// TestCheckUpload asks about an upload without its bytes.
func TestCheckUpload(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")
	check := func(actor actor.Actor, name string, upsert bool) error {
		return CheckUpload(t.Context(), a.project, actor, a.container.Ref(),
			NewFile{FullFileName: name, Upsert: upsert})
	}

	if err := errors.Join(check(a.ann, name, true), check(a.ann, name+"b", false),
		check(server, "c", false)); err != nil {
		t.Error(err)
	}
	a.wantKind("taken name", check(a.ann, name, false), fault.Conflict)
	a.wantKind("invalid name", check(a.ann, "../x", false), fault.Unprocessable)
	a.wantKind("taken name, without rights", check(a.bob, name, false), fault.Forbidden)

	_, err := a.put(a.bob, name, strings.NewReader("2"), false)
	a.wantKind("upload to a taken name without rights", err, fault.Forbidden)
}

// TestContainersWithRights creates, lists, changes, empties and deletes containers, as the policies
// allow.
func TestContainersWithRights(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	if _, err := a.project.Owner().Exec(t.Context(), `
		create policy see on storage.buckets for select to authenticated using (owner_id = (select auth.uid()::text));
		create policy make on storage.buckets for insert to authenticated with check (name like 'my %' and not is_public);
		create policy change on storage.buckets for update to authenticated using (owner_id = (select auth.uid()::text))
			with check (not public);
		create policy remove on storage.buckets for delete to authenticated using (owner_id = (select auth.uid()::text))`); err != nil {
		t.Fatal(err)
	}

	ctx, p := t.Context(), a.project
	create := func(actor actor.Actor, id string, n NewContainer) error {
		n.ID, n.Name = id, cmp.Or(n.Name, id)
		_, err := CreateContainer(ctx, p, actor, n)
		return err
	}
	if err := errors.Join(create(a.ann, "my files", NewContainer{MaxFileSize: new(int64(10))}),
		create(server, "shared", NewContainer{IsPublic: true, Allowed: []string{"image/*"}})); err != nil {
		t.Fatal(err)
	}
	a.wantKind("taken id", create(a.ann, "my files", NewContainer{}), fault.Conflict)
	a.wantKind("refused", create(a.bob, "files of bob", NewContainer{}), fault.Forbidden)
	a.wantKind("invalid id", create(server, " a/b", NewContainer{}), fault.Unprocessable)
	for _, name := range reservedNames {
		a.wantKind("id "+name, create(server, name, NewContainer{}), fault.Unprocessable)
		a.wantKind("name "+name, create(server, "other", NewContainer{Name: name}), fault.Unprocessable)
	}
	a.wantKind("invalid size", create(server, "c", NewContainer{MaxFileSize: new(int64(0))}), fault.Unprocessable)

	for _, c := range []struct {
		actor actor.Actor
		l     ContainerListing
		want  string
	}{
		{server, ContainerListing{}, "files my files shared"},
		{server, ContainerListing{Sort: "created_at", Descending: true, Limit: 1}, "shared"},
		{server, ContainerListing{Search: "FILES", Offset: 1}, "my files"},
		{a.ann, ContainerListing{}, "my files"},
		{server, ContainerListing{Prefix: "my", Sort: "id"}, "my files"},
		{server, ContainerListing{After: "my files", Sort: "id"}, "shared"},
		{a.bob, ContainerListing{}, ""},
	} {
		if c.l.Limit == 0 {
			c.l.Limit = 10
		}

		found, err := SearchContainers(ctx, p, c.actor, c.l)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, b := range found {
			got = append(got, b.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %+v: got %q, want %q", c.actor.Role, c.l, got, c.want)
		}
	}

	b, err := GetContainer(ctx, p, a.ann, ContainerRef{ID: "my files"})
	if err != nil || b.MaxFileSize != 10 || b.Owner == nil {
		t.Errorf("got %+v, %v", b, err)
	}
	_, err = GetContainer(ctx, p, a.bob, ContainerRef{ID: "my files"})
	a.wantKind("hidden", err, fault.NotFound)

	update := func(actor actor.Actor, id string, u ContainerUpdate) error {
		_, err := UpdateContainer(ctx, p, actor, ContainerRef{ID: id}, u)
		return err
	}
	remove := func(actor actor.Actor, id string) error {
		_, err := DeleteContainer(ctx, p, actor, ContainerRef{ID: id}, false)
		return err
	}
	a.wantKind("hidden to change", update(a.bob, "my files", ContainerUpdate{}), fault.NotFound)
	a.wantKind("refused change", update(a.ann, "my files", ContainerUpdate{IsPublic: new(true)}), fault.Forbidden)
	a.wantKind("missing", update(server, "none", ContainerUpdate{}), fault.NotFound)
	if err := errors.Join(update(a.ann, "my files", ContainerUpdate{Allowed: &[]string{"text/*"}}),
		update(server, "shared", ContainerUpdate{IsPublic: new(false)})); err != nil {
		t.Error(err)
	}

	a.container = b
	_, err = a.put(server, "big", strings.NewReader("more than ten"), false)
	a.wantKind("object over the limit", err, fault.TooLarge)
	a.mustPut(server, "small", "1")
	a.wantKind("not empty", remove(a.ann, "my files"), fault.Conflict)
	a.wantKind("hidden to delete", remove(a.bob, "my files"), fault.NotFound)
	if err := errors.Join(EmptyContainer(ctx, p, server, b.UUID), remove(a.ann, "my files"),
		remove(server, "shared")); err != nil {
		t.Error(err)
	}
	_, err = GetContainer(ctx, p, server, ContainerRef{ID: "my files"})
	a.wantKind("deleted", err, fault.NotFound)
}

// TestPoliciesOnContent lets a policy read type and size of an upload, before its first byte and
// after the last.
func TestPoliciesOnContent(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	if _, err := a.project.Owner().Exec(t.Context(), `
		create policy small on storage.objects as restrictive for insert
			with check ((metadata ->> 'size')::bigint < 4 and metadata ->> 'mimetype' like 'text/%')`); err != nil {
		t.Fatal(err)
	}

	a.mustPut(a.ann, a.ann.Subject+"/a", "123")
	_, err := a.put(a.ann, a.ann.Subject+"/b", strings.NewReader("12345"), false)
	a.wantKind("large object", err, fault.Forbidden)
	a.wantFiles(1)
}
