package object

import (
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
	found    Bucket
	ann, bob actor.Actor
}

func newApplication(t *testing.T) *application {
	t.Helper()

	b := newBucket(t)
	if _, err := b.project.Owner().Exec(t.Context(), ownFolder); err != nil {
		t.Fatal(err)
	}

	found, err := FindBucket(t.Context(), b.project, "files")
	if err != nil {
		t.Fatal(err)
	}

	user := func() actor.Actor {
		id := uuid.NewString()
		claims := `{"sub": "` + id + `", "role": "authenticated"}`

		return actor.Actor{Role: "authenticated", Subject: id, Claims: []byte(claims)}
	}

	return &application{b, found, user(), user()}
}

var server = actor.Actor{Role: "service_role"}

func (a *application) put(actor actor.Actor, name string, content io.Reader, upsert bool) (File, error) {
	f, _, err := PutObject(a.t.Context(), a.project, a.store, actor, a.found, NewObject{
		NewFile: NewFile{FullFileName: name, MimeType: "text/plain", Content: content}, Upsert: upsert,
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

// wantKind checks the kind of a failure.
func (a *application) wantKind(what string, err error, want fault.Kind) {
	a.t.Helper()

	if !fault.Is(err, want) {
		a.t.Errorf("%s: got %v, want kind %d", what, err, want)
	}
}

// TestPutObject stores objects as the policies allow.
func TestPutObject(t *testing.T) {
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

// TestPutObjectAsksAgain changes rights and objects while the bytes of an upload arrive.
func TestPutObjectAsksAgain(t *testing.T) {
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

	f, content, err := OpenObject(t.Context(), a.project, a.store, server, a.found, name)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	if got, err := io.ReadAll(content); err != nil || string(got) != "server" {
		t.Errorf("%s: got %q, %v, want server", f.UUID, got, err)
	}
}

// TestRemoveObjects removes an end user's own objects only.
func TestRemoveObjects(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	names := []string{a.ann.Subject + "/a", a.ann.Subject + "/b", a.bob.Subject + "/c", "missing"}
	a.mustPut(a.ann, names[0], "1")
	a.mustPut(a.ann, names[1], "2")
	a.mustPut(a.bob, names[2], "3")

	gone, err := RemoveObjects(t.Context(), a.project, a.ann, a.found, names)
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

	if gone, err := RemoveObjects(t.Context(), a.project, server, a.found, names); err != nil || len(gone) != 1 {
		t.Errorf("the server removed %v, %v, want one object", gone, err)
	}
	if _, err := Discard(t.Context(), a.project, a.store); err != nil {
		t.Fatal(err)
	}
	a.wantFiles(0)
}

// TestMoveObject moves objects between names and buckets, as the policies allow.
func TestMoveObject(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	newContainer(t, a.project, "other")
	other, err := FindBucket(t.Context(), a.project, "other")
	if err != nil {
		t.Fatal(err)
	}

	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")
	a.mustPut(a.ann, a.ann.Subject+"/taken", "2")
	move := func(actor actor.Actor, to Bucket, source, destination string) error {
		_, err := MoveObject(t.Context(), a.project, actor, a.found, to, source, destination)
		return err
	}

	a.wantKind("hidden object", move(a.bob, a.found, name, "x"), fault.NotFound)
	a.wantKind("missing object", move(server, a.found, "missing", "x"), fault.NotFound)
	a.wantKind("invalid name", move(a.ann, a.found, name, "../x"), fault.Unprocessable)
	a.wantKind("taken name", move(a.ann, a.found, name, a.ann.Subject+"/taken"), fault.Conflict)
	if err := move(a.ann, other, name, "b"); err != nil {
		t.Error(err)
	}

	_, content, err := OpenObject(t.Context(), a.project, a.store, a.ann, other, "b")
	if err != nil {
		t.Fatal(err)
	}
	content.Close()

	_, _, err = OpenObject(t.Context(), a.project, a.store, a.bob, other, "b")
	a.wantKind("object of another user", err, fault.NotFound)
}

// TestListObjects lists folders and objects, as far as the policies show them.
func TestListObjects(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, name := range []string{"é/x/1", "é/x/2", "é/x.txt", "é/Y", "é/z/q/r", "a", "zz/1", "\U0010FFFF/1"} {
		a.mustPut(server, name, "1")
	}
	a.mustPut(a.ann, a.ann.Subject+"/mine", "1")

	for _, c := range []struct {
		actor actor.Actor
		l     ObjectListing
		want  string
	}{
		{server, ObjectListing{Prefix: "é/", Delimiter: "/"}, "é/Y é/x.txt é/x/ é/z/"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Offset: 1, Limit: 2}, "é/x.txt é/x/"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Offset: 4}, ""},
		{server, ObjectListing{Prefix: "é/x/", Delimiter: "/"}, "é/x/1 é/x/2"},
		{server, ObjectListing{Prefix: "none/", Delimiter: "/"}, ""},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Descending: true}, "é/z/ é/x/ é/x.txt é/Y"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Descending: true, Limit: 1, After: "é/x/"}, "é/x.txt"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", After: "é/x/"}, "é/z/"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", After: "é/Y", Limit: 1}, "é/x.txt"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Search: "X", Limit: 2}, "é/x.txt é/x/"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Search: "y"}, "é/Y"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Sort: "created_at"}, "é/x/ é/z/ é/x.txt é/Y"},
		{server, ObjectListing{Prefix: "é/", Delimiter: "/", Sort: "updated_at", Descending: true, Limit: 3},
			"é/z/ é/x/ é/Y"},
		{server, ObjectListing{Prefix: "é/", Sort: "created_at", Offset: 1, Limit: 2}, "é/x/2 é/x.txt"},
		{server, ObjectListing{Prefix: "é/x"}, "é/x.txt é/x/1 é/x/2"},
		{server, ObjectListing{Prefix: "é/x", After: "é/x.txt", Limit: 1}, "é/x/1"},
		{server, ObjectListing{Prefix: "é/x", Descending: true, After: "é/x/2"}, "é/x/1 é/x.txt"},
		{server, ObjectListing{Prefix: "\U0010FFFF", Delimiter: "/"}, "\U0010FFFF/"},
		{server, ObjectListing{Search: "zz", Delimiter: "/"}, "zz/"},
		{a.ann, ObjectListing{Delimiter: "/"}, a.ann.Subject + "/"},
		{a.ann, ObjectListing{Prefix: a.ann.Subject + "/", Delimiter: "/"}, a.ann.Subject + "/mine"},
		{a.bob, ObjectListing{Delimiter: "/"}, ""},
	} {
		if c.l.Limit == 0 {
			c.l.Limit = 10
		}

		entries, err := ListObjects(t.Context(), a.project, c.actor, a.found, c.l)
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
				a.checkPages(ObjectListing{
					Prefix: prefix, Delimiter: delimiter, Limit: 2, Sort: sort, Descending: descending,
				})
			}
		}
	}
}

func (a *application) checkPages(l ObjectListing) {
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
		entries, err := ListObjects(a.t.Context(), a.project, server, a.found, l)
		if err != nil {
			a.t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}

		for _, e := range entries {
			seen[e.Name]++

			if _, err := RemoveObjects(a.t.Context(), a.project, server, a.found, []string{e.Name}); err != nil {
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

// TestCopyObject copies an object that the policies show, with its metadata or others.
func TestCopyObject(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	source, target := a.ann.Subject+"/a", a.ann.Subject+"/b"
	a.mustPut(a.ann, source, "one")
	clone := func(actor actor.Actor, n NewObject) error {
		_, _, err := CopyObject(t.Context(), a.project, a.store, actor, a.found, a.found, source, n)
		return err
	}

	if err := clone(a.ann, NewObject{NewFile: NewFile{FullFileName: target}}); err != nil {
		t.Fatal(err)
	}
	o, content, err := OpenObject(t.Context(), a.project, a.store, a.ann, a.found, target)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	text, err := io.ReadAll(content)
	if got := string(text) + o.MimeType + o.CacheControl() + string(o.UserMetadata); err != nil ||
		got != `onetext/plainmax-age=60{"a": 1}` {
		t.Errorf("got %q, %v", got, err)
	}

	a.wantKind("taken name", clone(a.ann, NewObject{NewFile: NewFile{FullFileName: target}}), fault.Conflict)

	bobs := NewObject{NewFile: NewFile{FullFileName: a.bob.Subject + "/b"}}
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
		return CheckUpload(t.Context(), a.project, actor, a.found, name, upsert)
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

// TestBuckets creates, lists, changes, empties and deletes buckets, as the policies allow.
func TestBuckets(t *testing.T) {
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
	create := func(actor actor.Actor, id string, n BucketChange) error {
		return CreateBucket(ctx, p, actor, id, id, n)
	}
	if err := errors.Join(create(a.ann, "my files", BucketChange{MaxFileSize: new(int64(10))}),
		create(server, "shared", BucketChange{IsPublic: new(true), Allowed: &[]string{"image/*"}})); err != nil {
		t.Fatal(err)
	}
	a.wantKind("taken id", create(a.ann, "my files", BucketChange{}), fault.Conflict)
	a.wantKind("refused", create(a.bob, "files of bob", BucketChange{}), fault.Forbidden)
	a.wantKind("invalid id", create(server, " a/b", BucketChange{}), fault.Invalid)
	for _, name := range reservedNames {
		a.wantKind("id "+name, create(server, name, BucketChange{}), fault.Invalid)
		a.wantKind("name "+name, CreateBucket(ctx, p, server, "other", name, BucketChange{}), fault.Invalid)
	}
	a.wantKind("invalid size", create(server, "c", BucketChange{MaxFileSize: new(int64(0))}), fault.Unprocessable)

	for _, c := range []struct {
		actor actor.Actor
		l     BucketListing
		want  string
	}{
		{server, BucketListing{}, "files my files shared"},
		{server, BucketListing{Sort: "created_at", Descending: true, Limit: 1}, "shared"},
		{server, BucketListing{Search: "FILES", Offset: 1}, "my files"},
		{a.ann, BucketListing{}, "my files"},
		{a.bob, BucketListing{}, ""},
	} {
		if c.l.Limit == 0 {
			c.l.Limit = 10
		}

		found, err := ListBuckets(ctx, p, c.actor, c.l)
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

	b, err := GetBucket(ctx, p, a.ann, "my files")
	if err != nil || b.MaxFileSize != 10 || b.Owner == nil {
		t.Errorf("got %+v, %v", b, err)
	}
	_, err = GetBucket(ctx, p, a.bob, "my files")
	a.wantKind("hidden", err, fault.NotFound)

	update := func(actor actor.Actor, id string, u BucketChange) error { return UpdateBucket(ctx, p, actor, id, u) }
	a.wantKind("hidden to change", update(a.bob, "my files", BucketChange{}), fault.NotFound)
	a.wantKind("refused change", update(a.ann, "my files", BucketChange{IsPublic: new(true)}), fault.Forbidden)
	a.wantKind("missing", update(server, "none", BucketChange{}), fault.NotFound)
	if err := errors.Join(update(a.ann, "my files", BucketChange{Allowed: &[]string{"text/*"}}),
		update(server, "shared", BucketChange{IsPublic: new(false)})); err != nil {
		t.Error(err)
	}

	a.found = b
	_, err = a.put(server, "big", strings.NewReader("more than ten"), false)
	a.wantKind("object over the limit", err, fault.TooLarge)
	a.mustPut(server, "small", "1")
	a.wantKind("not empty", DeleteBucket(ctx, p, a.ann, "my files"), fault.Conflict)
	a.wantKind("hidden to delete", DeleteBucket(ctx, p, a.bob, "my files"), fault.NotFound)
	if err := errors.Join(EmptyBucket(ctx, p, server, b), DeleteBucket(ctx, p, a.ann, "my files"),
		DeleteBucket(ctx, p, server, "shared")); err != nil {
		t.Error(err)
	}
	_, err = FindBucket(ctx, p, "my files")
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
