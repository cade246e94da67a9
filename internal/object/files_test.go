package object

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// bucket is a project with one container and its own blob store.
type bucket struct {
	t         *testing.T
	project   *projectdb.Project
	container Container
	store     *blob.Store
	folder    string
	user      uuid.UUID
	member    actor.Actor
}

func newBucket(t *testing.T) *bucket {
	t.Helper()

	folder := t.TempDir()
	store, err := blob.Open(folder)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { store.Close() })
	p := projectdbtest.New(t)

	user := projectdbtest.UUID(t)
	return &bucket{t, p, newContainer(t, p, "files"), store, folder, user, actor.Member(user)}
}

func (b *bucket) create(name, content string) File {
	b.t.Helper()

	f, err := b.upload(b.t.Context(), name, strings.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}

	return f
}

func (b *bucket) upload(ctx context.Context, name string, content io.Reader) (File, error) {
	f, _, err := CreateFile(ctx, b.project, b.store, b.member, b.container.Ref(), NewFile{
		FullFileName: name,
		MimeType:     "text/plain",
		Content:      content,
	})

	return f, err
}

// open opens a file as a member does.
func (b *bucket) open(r FileRef) (StoredFile, *Content, error) {
	return OpenFile(b.t.Context(), b.project, b.store, b.member, r)
}

// ref identifies a file of the container.
func (b *bucket) ref(f File) FileRef { return FileRef{Container: b.container.UUID, UUID: f.UUID} }

// wantFiles checks the number of files and blobs, and that no upload is recorded.
func (b *bucket) wantFiles(want int64) {
	b.t.Helper()

	if files, blobs := b.total(), int64(len(b.blobs())); files != want || blobs != want || b.uploads() != 0 {
		b.t.Errorf("%d files, %d blobs and %d uploads; want %d, %d and 0", files, blobs, b.uploads(), want, want)
	}
}

func (b *bucket) blobs() (paths []string) {
	b.t.Helper()

	err := filepath.WalkDir(b.folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}

	return paths
}

func (b *bucket) uploads() int64 {
	b.t.Helper()

	n, err := pg.Value[int64](b.t.Context(), b.project.Trusted(), `select count(*) from storage.uploads`)
	if err != nil {
		b.t.Fatal(err)
	}

	return n
}

func TestCreateFile(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	got := b.create("a/b.txt", "hello")

	want := File{
		ContainerUUID: b.container.UUID,
		FullFileName:  "a/b.txt",
		MimeType:      "text/plain",
		Size:          5,
		CreatedBy:     b.user,
		UpdatedBy:     b.user,
	}
	if diff := cmp.Diff(got, want, cmpopts.IgnoreTypes(time.Time{}, []byte{}),
		cmpopts.IgnoreFields(File{}, "UUID")); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}

	b.create("\u00e9", "composed")
	b.create("e\u0301", "")
	b.wantFiles(3)

	for name, ref := range map[string]FileRef{
		"by uuid": b.ref(got),
		"by name": {Container: b.container.UUID, Name: "a/b.txt"},
	} {
		f, content, err := b.open(ref)
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
			continue
		}

		text, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || string(text) != "hello" || !cmp.Equal(f.File, got) {
			t.Errorf("%s: got %q, %+v (%v), want hello, %+v", name, text, f, err, got)
		}
	}
}

func TestCreateFileRefused(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	b.create("taken", "first")
	unread := iotest.ErrReader(errors.New("content of a refused upload was read"))

	_, err := b.upload(t.Context(), "taken", unread)
	if got, want := codes(err), []string{"full_file_name already_exists"}; !slices.Equal(got, want) ||
		!fault.Is(err, fault.Conflict) {
		t.Errorf("name taken: got %v, want Conflict with %q", err, want)
	}

	if _, err = b.upload(t.Context(), "../x", unread); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("bad name: got %v, want Unprocessable", err)
	}

	for _, name := range []string{"new", "../x"} {
		_, _, err = CreateFile(t.Context(), b.project, b.store, b.member, ContainerRef{UUID: projectdbtest.UUID(t)},
			NewFile{FullFileName: name, Content: unread})
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("unknown container, name %s: got %v, want NotFound", name, err)
		}
	}

	b.wantFiles(1)
}

// TestCreateFileFails aborts uploads at different points: nothing is left behind.
func TestCreateFileFails(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	if _, err := UpdateContainer(t.Context(), b.project, b.member, b.container.Ref(),
		ContainerUpdate{MaxFileSize: new(int64(5))}); err != nil {
		t.Fatal(err)
	}

	b.create("largest", "12345")

	_, err := b.upload(t.Context(), "larger", strings.NewReader("123456"))
	if got, want := codes(err), []string{"file too_large"}; !slices.Equal(got, want) || !fault.Is(err, fault.TooLarge) {
		t.Errorf("too large: got %v, want TooLarge with %q", err, want)
	}

	broken := io.MultiReader(strings.NewReader("123"), iotest.ErrReader(errConnectionLost))
	if _, err := b.upload(t.Context(), "cut", broken); !errors.Is(err, errConnectionLost) {
		t.Errorf("connection lost: got %v, want %v", err, errConnectionLost)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := b.upload(ctx, "gone", readThenCall("123", cancel)); !errors.Is(err, context.Canceled) {
		t.Errorf("client disconnected: got %v, want %v", err, context.Canceled)
	}

	b.wantFiles(1)

	// Conditions that hold when the bytes begin to arrive can change until the end.
	_, err = b.upload(t.Context(), "late", readThenCall("123", func() { b.create("late", "1") }))
	if got, want := codes(err), []string{"full_file_name already_exists"}; !slices.Equal(got, want) {
		t.Errorf("name taken meanwhile: got %v, want %q", err, want)
	}

	b.wantFiles(2)

	_, err = b.upload(t.Context(), "shrunk", readThenCall("12345", func() {
		if _, err := UpdateContainer(t.Context(), b.project, b.member, b.container.Ref(),
			ContainerUpdate{MaxFileSize: new(int64(4))}); err != nil {
			t.Error(err)
		}
	}))
	if !fault.Is(err, fault.TooLarge) {
		t.Errorf("limit lowered meanwhile: got %v, want TooLarge", err)
	}

	_, err = b.upload(t.Context(), "swept", readThenCall("1", func() {
		if n, err := Sweep(t.Context(), b.project, b.store, 0); n != 1 || err != nil {
			t.Errorf("swept %d (%v), want 1", n, err)
		}
	}))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("swept meanwhile: got %v, want Conflict", err)
	}

	b.wantFiles(2)

	_, err = b.upload(t.Context(), "orphan", readThenCall("1", func() {
		if _, err := b.project.Trusted().Exec(t.Context(), `delete from storage.containers`); err != nil {
			t.Error(err)
		}
	}))
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("container deleted meanwhile: got %v, want NotFound", err)
	}

	if blobs := b.blobs(); len(blobs) != 2 || b.uploads() != 0 {
		t.Errorf("%d blobs and %d uploads, want those of the deleted container and 0", len(blobs), b.uploads())
	}
}

// readThenCall returns a reader of text that calls f before it returns EOF.
func readThenCall(text string, f func()) io.Reader {
	return io.MultiReader(strings.NewReader(text), readerFunc(func([]byte) (int, error) {
		f()
		return 0, io.EOF
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestCreateFileConcurrently uploads files of one name concurrently: exactly one succeeds, with its
// own bytes.
func TestCreateFileConcurrently(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	const clients = 8
	ready := make(chan struct{}, clients)

	var group sync.WaitGroup
	files, errs := make([]File, clients), make([]error, clients)
	release := make(chan struct{})
	for i := range clients {
		group.Go(func() {
			content := strings.Repeat(string(rune('a'+i)), i+1)
			files[i], errs[i] = b.upload(t.Context(), "same", readThenCall(content, func() {
				ready <- struct{}{}
				<-release
			}))
		})
	}

	for range clients {
		<-ready
	}

	close(release)
	group.Wait()

	winners := 0
	for i, err := range errs {
		if err != nil {
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("got %v, want Conflict", err)
			}
			continue
		}

		winners++

		_, content, err := b.open(b.ref(files[i]))
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(content)
		if want := bytes.Repeat([]byte{byte('a' + i)}, i+1); !bytes.Equal(text, want) ||
			files[i].Size != int64(len(want)) {
			t.Errorf("got %q of %d bytes (%v), want %q", text, files[i].Size, err, want)
		}

		content.Close()
	}

	if winners != 1 {
		t.Errorf("%d uploads succeeded, want 1", winners)
	}

	b.wantFiles(1)
}

// TestCleanUp settles an upload whose commit succeeded but whose reply was lost: it returns the
// file.
func TestCleanUp(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	f := b.create("a", "1")

	id, err := pg.Value[uuid.UUID](t.Context(), b.project.Trusted(), `select blob_uuid from storage.files`)
	if err != nil {
		t.Fatal(err)
	}

	u := upload{project: b.project, store: b.store, blob: id, file: File{UUID: f.UUID}, inserted: true}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	got, err := u.cleanUp(canceled, errConnectionLost)
	if diff := cmp.Diff(got, f); diff != "" || err != nil {
		t.Errorf("got -, want + (%v)\n%s", err, diff)
	}

	b.wantFiles(1)
}

// TestSweep removes the leftovers of a killed server, from before the first byte and after the
// last.
func TestSweep(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	b.create("kept", "1")

	for _, content := range []string{"", "stored"} {
		u, err := newUpload(b.project, b.store, b.member, b.container.Ref(),
			NewFile{FullFileName: "dead", Content: strings.NewReader(content)}, nil)
		if err != nil {
			t.Fatal(err)
		}

		limit, err := u.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if content == "" {
			continue
		}

		if err := u.receive(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
	}

	if n, err := Sweep(t.Context(), b.project, b.store, time.Hour); n != 0 || err != nil {
		t.Errorf("recent uploads: swept %d (%v), want 0", n, err)
	}
	if n, err := Sweep(t.Context(), b.project, b.store, 0); n != 2 || err != nil {
		t.Errorf("swept %d (%v), want 2", n, err)
	}

	b.wantFiles(1)
}

func TestOpenFileFails(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	f := b.create("a", "12345")
	other := newContainer(t, b.project, "other")
	for name, ref := range map[string]FileRef{
		"another container's file": {Container: other.UUID, UUID: f.UUID},
		"unknown file":             {Container: b.container.UUID, UUID: projectdbtest.UUID(t)},
		"another container's name": {Container: other.UUID, Name: "a"},
		"a name that can't be":     {Container: b.container.UUID, Name: "a\x00\xff"},
		"a private name":           {Container: b.container.UUID, Name: "a", OnlyPublic: true},
		"a private file":           {Container: b.container.UUID, UUID: f.UUID, OnlyPublic: true},
	} {
		if _, _, err := b.open(ref); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v, want NotFound", name, err)
		}
	}

	path := b.blobs()[0]
	for _, damage := range []func() error{
		func() error { return os.Truncate(path, 2) },
		func() error { return os.Remove(path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}

		if _, _, err := b.open(b.ref(f)); !fault.Is(err, fault.Internal) || err == nil {
			t.Errorf("damaged bytes: got %v, want Internal", err)
		}
	}
}

func TestListFiles(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	list := func(page pg.Page) []string {
		t.Helper()

		files, total, err := ListFiles(t.Context(), b.project, b.container.UUID, page)
		if err != nil || files == nil {
			t.Fatalf("%+v: got %v (%v), want a list that is not nil", page, files, err)
		}
		if total != b.total() {
			t.Errorf("%+v: got a total of %d, want %d", page, total, b.total())
		}

		names := []string{}
		for _, f := range files {
			names = append(names, f.FullFileName)
		}

		return names
	}
	if got := list(pg.Page{Number: 1, Limit: 20, Sort: "createdAt"}); len(got) != 0 {
		t.Errorf("got %q, want none", got)
	}

	for _, f := range []struct{ name, content string }{{"b", "22"}, {"a", "333"}, {"C", "1"}, {"é", "22"}} {
		b.create(f.name, f.content)
	}

	for _, test := range []struct {
		page pg.Page
		want string
	}{
		{pg.Page{Number: 1, Limit: 20, Sort: "createdAt"}, "b a C é"},
		{pg.Page{Number: 1, Limit: 20, Sort: "updatedAt", Descending: true}, "é C a b"},
		{pg.Page{Number: 1, Limit: 20, Sort: "fullFileName"}, "C a b é"},
		{pg.Page{Number: 1, Limit: 20, Sort: "size"}, "C b é a"},
		{pg.Page{Number: 1, Limit: 20, Sort: "mimeType", Descending: true}, "é C a b"},
		{pg.Page{Number: 1, Limit: 3, Sort: "size"}, "C b é"},
		{pg.Page{Number: 2, Limit: 3, Sort: "size"}, "a"},
		{pg.Page{Number: 3, Limit: 3, Sort: "size"}, ""},
	} {
		if got := strings.Join(list(test.page), " "); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.page, got, test.want)
		}
	}

	if _, _, err := ListFiles(t.Context(), b.project, projectdbtest.UUID(t), pg.Page{
		Number: 1,
		Limit:  1,
		Sort:   "size",
	}); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown container: got %v, want NotFound", err)
	}
}

func (b *bucket) total() int64 {
	b.t.Helper()

	c, err := GetContainer(b.t.Context(), b.project, b.member, b.container.Ref())
	if err != nil {
		b.t.Fatal(err)
	}

	return c.TotalFiles
}
