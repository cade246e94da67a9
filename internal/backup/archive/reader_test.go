package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// entry is an entry of an archive that a test has changed.
type entry struct {
	tar.Header
	text string
}

func regular(name, text string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}, text}
}

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// manifestWith returns the manifest of the parts with other members.
func (all parts) manifestWith(t *testing.T, members map[string]any) entry {
	t.Helper()

	text, err := io.ReadAll(all.manifest(t).JSON())
	if err != nil {
		t.Fatal(err)
	}

	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}

	for name, value := range members {
		m[name] = value
	}

	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}

	return regular(manifestName, string(text))
}

// TestInvalidArchives reads files that no release has written, or that were changed since.
func TestInvalidArchives(t *testing.T) {
	t.Parallel()

	all := parts{"a dump", "hello", "more"}
	whole := all.write(t, nil)
	manifest := all.manifestWith(t, nil)
	dump := regular(dumpName, "a dump")
	hello := regular(filesName+digestOf("hello").SHA256, "hello")
	more := regular(filesName+digestOf("more").SHA256, "more")

	with := func(name string, value any) []byte {
		return pack(t, all.manifestWith(t, map[string]any{name: value}), dump, hello, more)
	}

	renamed := func(e entry, name string) entry { e.Name = name; return e }
	typed := func(e entry, kind byte) entry { e.Typeflag, e.Linkname = kind, "/etc/passwd"; return e }
	link := typed(entry{hello.Header, ""}, tar.TypeSymlink)
	link.Size = 0
	folder := renamed(typed(link, tar.TypeDir), hello.Name+"/")
	spaces := regular(manifestName, `{"format":1}`+strings.Repeat(" ", 1<<10))

	for name, c := range map[string]struct {
		archive []byte
		want    string // code of the error
	}{
		"whole":                   {whole, ""},
		"repacked":                {pack(t, manifest, dump, hello, more), ""},
		"with padding":            {append(bytes.Clone(whole), make([]byte, maxPadding-2*tarBlock)...), ""},
		"without its last blocks": {whole[:len(whole)-2*tarBlock], ""},

		"nothing":                 {nil, "damaged_backup"},
		"text":                    {[]byte("hello"), "damaged_backup"},
		"zeros":                   {make([]byte, 10_240), "damaged_backup"},
		"cut in the manifest":     {whole[:700], "damaged_backup"},
		"cut in the last part":    {whole[:len(whole)-2*tarBlock-510], "damaged_backup"},
		"much padding":            {append(bytes.Clone(whole), make([]byte, maxPadding+tarBlock)...), "damaged_backup"},
		"no manifest":             {pack(t, dump, hello, more), "damaged_backup"},
		"manifest elsewhere":      {pack(t, renamed(manifest, "./manifest.json"), dump, hello, more), "damaged_backup"},
		"two manifests":           {pack(t, manifest, manifest, dump, hello, more), "damaged_backup"},
		"no dump":                 {pack(t, manifest, hello, more), "damaged_backup"},
		"a file too few":          {pack(t, manifest, dump, hello), "damaged_backup"},
		"a file too many":         {pack(t, manifest, dump, hello, more, regular("files/x", "x")), "damaged_backup"},
		"a file twice":            {pack(t, manifest, dump, hello, hello, more), "damaged_backup"},
		"files before the dump":   {pack(t, manifest, hello, more, dump), "damaged_backup"},
		"files out of order":      {pack(t, manifest, dump, more, hello), "damaged_backup"},
		"a way out":               {pack(t, manifest, dump, renamed(hello, "../"+hello.Name), more), "damaged_backup"},
		"a link":                  {pack(t, manifest, dump, link, more), "damaged_backup"},
		"a folder":                {pack(t, manifest, dump, folder, more), "damaged_backup"},
		"a dump that changed":     {pack(t, manifest, regular(dumpName, "b dump"), hello, more), "damaged_backup"},
		"a longer dump":           {pack(t, manifest, regular(dumpName, "a dump."), hello, more), "damaged_backup"},
		"a file that changed":     {pack(t, manifest, dump, regular(hello.Name, "hallo"), more), "damaged_backup"},
		"a shorter file":          {pack(t, manifest, dump, regular(hello.Name, "hell"), more), "damaged_backup"},
		"a newer format":          {with("format", Format+1), "newer_version"},
		"no format":               {with("format", 0), "damaged_backup"},
		"no schema":               {with("schema", 0), "damaged_backup"},
		"no PostgreSQL":           {with("postgresql", 0), "damaged_backup"},
		"no project":              {with("project", uuid.Nil), "damaged_backup"},
		"a project that is none":  {with("project", "x"), "damaged_backup"},
		"of the future":           {with("at", time.Now().AddDate(2, 0, 0)), "damaged_backup"},
		"another database":        {with("database", "postgres"), "damaged_backup"},
		"a list of numbers":       {with("tables", []int{1}), "damaged_backup"},
		"a dump that is a path":   {with("dump", Digest{6, "../../x"}), "damaged_backup"},
		"a dump of negative size": {with("dump", Digest{-1, digestOf("").SHA256}), "damaged_backup"},
		"a file that is a path":   {with("files", []Digest{{1, "../../x"}}), "damaged_backup"},
		"other files":             {with("files", []Digest{digestOf("other")}), "damaged_backup"},
		"no files":                {with("files", nil), "damaged_backup"},
		"no members":              {pack(t, spaces, dump), "damaged_backup"},
	} {
		if got, err := read(bytes.NewReader(c.archive), unlimited); codeOf(err) != c.want {
			t.Errorf("%s: got %q, %v, want code %q", name, got, err, c.want)
		}
	}
}

// TestChangedArchive changes an archive in many bytes and cuts it off in many places. Whoever reads
// it gets its parts, or the archive is at fault.
func TestChangedArchive(t *testing.T) {
	t.Parallel()

	all := parts{"a dump", "hello"}
	for name, whole := range map[string][]byte{"plain": all.write(t, nil), "encrypted": all.write(t, ownRecipient(t))} {
		check := func(change string, changed []byte) {
			t.Helper()

			got, err := read(bytes.NewReader(changed), unlimited)
			if err == nil && (name == "encrypted" || !slices.Equal(got, all)) {
				t.Errorf("%s, %s: got %q", name, change, got)
			}
			if fault.Is(err, fault.Internal) {
				t.Errorf("%s, %s: got %v", name, change, err)
			}
		}

		for i := 0; i < len(whole); i += stride {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << (i % 8)
			check(fmt.Sprintf("byte %d changed", i), flipped)
			check(fmt.Sprintf("cut off at %d", i), whole[:i])
		}
	}
}

// TestArchiveLimits reads archives that are larger than allowed, or say so.
func TestArchiveLimits(t *testing.T) {
	t.Parallel()

	all := parts{"a dump", "hello"}
	whole := all.write(t, nil)

	w, err := NewWriter(all.manifest(t), nil)
	if err != nil {
		t.Fatal(err)
	}

	exactly := w.manifestSize + int64(len("a dump")+len("hello"))
	const header = agePrefix + "v1\n-> x "
	huge := func(sizes ...int64) []byte {
		digests := make([]Digest, len(sizes))
		for i, n := range sizes {
			digests[i] = Digest{n, digestOf(fmt.Sprint(i)).SHA256}
		}

		return pack(t, all.manifestWith(t, map[string]any{"files": digests}))
	}

	for name, c := range map[string]struct {
		archive io.Reader
		most    int64
		want    fault.Kind // Internal: none
	}{
		"just fits":              {bytes.NewReader(whole), exactly, fault.Internal},
		"one byte too many":      {bytes.NewReader(whole), exactly - 1, fault.TooLarge},
		"a huge file":            {bytes.NewReader(huge(1 << 60)), 1 << 40, fault.TooLarge},
		"huge files":             {bytes.NewReader(huge(1<<63-1, 1<<63-1)), 1<<63 - 1, fault.TooLarge},
		"endless padding":        {io.MultiReader(bytes.NewReader(whole), endless{}), 1 << 20, fault.Unprocessable},
		"endless age header":     {io.MultiReader(strings.NewReader(header), endless{'x'}), 1 << 20, fault.Unprocessable},
		"endless manifest":       {io.MultiReader(endlessManifest(t), endless{' '}), 1 << 40, fault.Unprocessable},
		"endless name":           {io.MultiReader(bytes.NewReader(longName(t)), endless{'x'}), 1 << 10, fault.Unprocessable},
		"endless list of tables": {io.MultiReader(endlessManifest(t), endless{'['}), 1 << 40, fault.Unprocessable},
	} {
		_, err := read(c.archive, ReaderConfig{Key: testKey, MaxBytes: c.most})
		if c.want == fault.Internal && err == nil {
			continue
		}

		if err == nil || fault.Of(err).Kind != c.want {
			t.Errorf("%s: got %v, want kind %v", name, err, c.want)
		}
	}
}

// endless is a byte without end.
type endless [1]byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e[0]
	}

	return len(b), nil
}

// endlessManifest returns the header of a manifest as large as one can be.
func endlessManifest(t *testing.T) io.Reader {
	t.Helper()

	var out bytes.Buffer
	h := &tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: MaxManifestSize}
	if err := tar.NewWriter(&out).WriteHeader(h); err != nil {
		t.Fatal(err)
	}

	return &out
}

// longName returns the header of a name that takes a gigabyte.
func longName(t *testing.T) []byte {
	t.Helper()

	var out bytes.Buffer
	h := &tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: 1 << 30}
	if err := tar.NewWriter(&out).WriteHeader(h); err != nil {
		t.Fatal(err)
	}

	block := out.Bytes()
	block[156] = tar.TypeGNULongName
	sum := int64(0)
	copy(block[148:156], "        ")
	for _, b := range block {
		sum += int64(b)
	}

	copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return block
}

// stride is the distance of the positions at which an archive is damaged. It is no power of two, so
// that all parts of a header are met.
const stride = 37

// TestReadFromFailingSource reads an archive whose source fails in many places: the archive is not
// at fault.
func TestReadFromFailingSource(t *testing.T) {
	t.Parallel()

	all := parts{"a dump", "hello"}
	gone := fault.New(fault.Invalid, "the body is incomplete").WithCause(io.ErrUnexpectedEOF)
	for name, whole := range map[string][]byte{"plain": all.write(t, nil), "encrypted": all.write(t, ownRecipient(t))} {
		for i := 0; i < len(whole); i += stride {
			_, err := read(io.MultiReader(bytes.NewReader(whole[:i]), iotest.ErrReader(gone)), unlimited)
			if !errors.Is(err, gone) {
				t.Fatalf("%s, failure at byte %d: got %v, want %v", name, i, err, gone)
			}
		}
	}
}

// TestEachVerifiesEverything reads nothing of the parts: they are verified all the same.
func TestEachVerifiesEverything(t *testing.T) {
	t.Parallel()

	all := parts{"a dump", "hello"}
	whole := all.write(t, nil)
	changed := bytes.Replace(whole, []byte("hello\x00"), []byte("hallo\x00"), 1)

	for want, text := range map[string][]byte{"": whole, "damaged_backup": changed} {
		r, err := NewReader(bytes.NewReader(text), unlimited)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()

		if err := r.Each(func(Part, io.Reader) error { return nil }); codeOf(err) != want {
			t.Errorf("got %v, want code %q", err, want)
		}
	}
}

// TestEachStops fails on the first part.
func TestEachStops(t *testing.T) {
	t.Parallel()

	r, err := NewReader(bytes.NewReader(parts{"a dump", "hello"}.write(t, nil)), unlimited)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	broken := errors.New("broken")
	if err := r.Each(func(p Part, _ io.Reader) error {
		if !p.Dump {
			t.Errorf("got part %v after a failure", p)
		}
		return broken
	}); err != broken {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestNoTemporaryFolder reads a manifest and an archive where no temporary file can be created:
// they are not at fault.
func TestNoTemporaryFolder(t *testing.T) {
	all := parts{"a dump", "hello"}
	whole := all.write(t, nil)
	manifest := all.manifestWith(t, nil).text
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))

	if _, err := ReadManifest(strings.NewReader(manifest)); !errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, ErrDamaged) {
		t.Errorf("manifest: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := read(bytes.NewReader(whole), unlimited); !errors.Is(err, fs.ErrNotExist) ||
		codeOf(err) == "damaged_backup" {
		t.Errorf("archive: got %v, want %v", err, fs.ErrNotExist)
	}
}
