package object

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

func TestCheckFileName(t *testing.T) {
	t.Parallel()

	for _, name := range []string{
		"a", "a/b/c.png", "...", "..a/a..", " ", "a.", "CON", "%2e%2e%2f", "a:b", "\u202egnp.exe",
		"é", "e\u0301", "😀", strings.Repeat("a", 1024),
	} {
		if err := checkFileName(name); err != nil {
			t.Errorf("%q: got %v, want no error", name, err)
		}
	}

	for name, code := range map[string]string{
		"": "required", strings.Repeat("é", 513): "too_long",
		"/a": "invalid_format", "a/": "invalid_format", "a//b": "invalid_format", "/": "invalid_format",
		".": "invalid_format", "..": "invalid_format", "../a": "invalid_format",
		"a/../b": "invalid_format", "a/./b": "invalid_format",
		`a\b`: "invalid_format", `..\a`: "invalid_format",
		"a\x00": "invalid_format", "a\nb": "invalid_format", "a\x7f": "invalid_format",
		"a\u0085": "invalid_format", "a\xff": "invalid_format",
	} {
		err := checkFileName(name)
		if e := fault.Of(err); !fault.Is(err, fault.Unprocessable) || e.Code != code ||
			e.Fields[0].Name != "full_file_name" {
			t.Errorf("%q: got %v, want %s", name, err, code)
		}
	}
}

func TestMediaType(t *testing.T) {
	t.Parallel()

	const png, html = "\x89PNG\r\n\x1a\n", "<html>"
	for _, test := range []struct{ claim, content, want string }{
		{"image/png", html, "image/png"},
		{"Text/HTML; Charset=UTF-8", html, "text/html; charset=UTF-8"},
		{"Text/HTML; Charset=UTF-8", png, "image/png"},
		{"image/svg+xml", png, "image/png"},
		{"image/svg+xml", "<svg/>", "image/svg+xml"},
		{"text/html", "", "text/html"},
		{"text/javascript", "\x00\x01", "application/octet-stream"},
		{"application/octet-stream", png, "application/octet-stream"},
		{"", png, "image/png"},
		{"", "", "text/plain; charset=utf-8"},
		{"png", png, "image/png"},
		{"image/", png, "image/png"},
		{"image/png, text/html", html, "text/html; charset=utf-8"},
		{"text/plain\r\nX-Evil: 1", png, "image/png"},
		{"text/" + strings.Repeat("x", 255), png, "image/png"},
		{"", strings.Repeat("long ", 1000), "text/plain; charset=utf-8"},
	} {
		content, got, err := mediaType(test.claim, iotest.OneByteReader(strings.NewReader(test.content)))
		if err != nil || got != test.want {
			t.Errorf("claim %q of %.10q: got %q (%v), want %q", test.claim, test.content, got, err, test.want)
			continue
		}

		if all, err := io.ReadAll(content); err != nil || string(all) != test.content {
			t.Errorf("claim %q: got content %.20q (%v), want %.20q", test.claim, all, err, test.content)
		}
	}

	if _, _, err := mediaType("", iotest.ErrReader(errConnectionLost)); !errors.Is(err, errConnectionLost) {
		t.Errorf("got %v, want %v", err, errConnectionLost)
	}
}

var errConnectionLost = errors.New("connection lost")

func TestBlobKey(t *testing.T) {
	t.Parallel()

	project, blob := uuid.MustParse(
		"01234567-89ab-7def-8123-456789abcdef",
	), uuid.MustParse("fedcba98-7654-4210-8edc-ba9876543210")
	got, want := blobKey(project,
		blob), "projects/01234567-89ab-7def-8123-456789abcdef/files/fe/fedcba98-7654-4210-8edc-ba9876543210"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPlansAreKept repeats the reads of containers and files until PostgreSQL keeps their plans. It
// makes five custom plans first.
func TestPlansAreKept(t *testing.T) {
	t.Parallel()

	b := newBucket(t)
	file := FileRef{Container: b.container.UUID, UUID: b.create("a", "b").UUID}

	page := pg.Page{Number: 1, Limit: 20, Sort: "createdAt"}
	for i := range 24 {
		ref := ContainerRef{UUID: b.container.UUID}
		if i >= 12 {
			ref = ContainerRef{ID: b.container.ID}
		}

		_, inContainer := GetContainer(t.Context(), b.project, b.member, ref)
		_, inFile := GetFile(t.Context(), b.project, b.member, file)
		_, _, inList := ListFiles(t.Context(), b.project, b.container.UUID, page)
		if err := errors.Join(inContainer, inFile, inList); err != nil {
			t.Fatal(err)
		}
	}

	// The pool hands out the connection that was released last.
	custom, err := pg.Values[string](t.Context(), b.project.Trusted(),
		`select statement from pg_prepared_statements where custom_plans > 5`)
	if err != nil || len(custom) > 0 {
		t.Errorf("planned anew each time: %q, %v", custom, err)
	}
	kept, err := pg.Value[int](t.Context(), b.project.Trusted(),
		`select count(*)::int from pg_prepared_statements where generic_plans > 5`)
	if err != nil || kept < 4 {
		t.Errorf("got %d kept plans, %v, want 4", kept, err)
	}
}

// TestNamesAreIndexed looks a name up by plans from a time without files.
func TestNamesAreIndexed(t *testing.T) {
	t.Parallel()

	conn, err := newBucket(t).project.Trusted().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	if _, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}

	args := strings.NewReplacer("@container", "$1", "@name", "$2")
	for what, sql := range map[string]string{
		"exists":  `select ` + nameExists + ` from storage.containers c where c.uuid = @container`,
		"file":    `select ` + fileColumns + ` from storage.files where ` + byName,
		"locked":  `select ` + fileColumns + ` from storage.files where ` + byName + ` for no key update`,
		"object":  `select uuid from storage.objects where ` + byName,
		"updated": `delete from storage.objects where uuid = (select uuid from storage.objects where ` + byName + `)`,
	} {
		if _, err := conn.Exec(t.Context(), `prepare "`+what+`" (uuid, text) as `+args.Replace(sql)); err != nil {
			t.Fatal(err)
		}

		plan, err := pg.Values[string](t.Context(), conn, `explain execute "`+what+`" (gen_random_uuid(), 'name')`)
		got := strings.Join(plan, "\n")
		if err != nil || !strings.Contains(got, "files_full_file_name_key") {
			t.Errorf("%s: got %s (%v), want a scan of files_full_file_name_key", what, got, err)
		}
	}
}
