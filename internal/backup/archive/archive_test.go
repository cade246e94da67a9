package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

var (
	testProject = uuid.MustParse("01912b8c-0000-7000-8000-00000000abcd")
	testSource  = uuid.MustParse("01912b8c-0000-7000-8000-00000000dcba")
	testBackup  = uuid.MustParse("01912b8c-0000-7000-8000-000000000001")
)

const testPassphrase = "the owls are not"

// parts are the texts of a dump and of contents, in the order of the manifest.
type parts []string

// manifest returns the manifest of the parts. The test closes its files.
func (all parts) manifest(t *testing.T) Manifest {
	t.Helper()

	m := Manifest{
		Format:     firstFormat,
		Project:    testProject,
		Backup:     testBackup,
		Schema:     1,
		PostgreSQL: 150018,
		At:         time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC),
		Dump:       digestOf(all[0]),
		Files:      &Contents{},
		Tables:     []Table{{"public", "orders", 7}},
	}
	t.Cleanup(m.Files.Close)

	for _, text := range all[1:] {
		if err := m.Files.Add(Content{Digest: digestOf(text)}); err != nil {
			t.Fatal(err)
		}
	}

	return m
}

// open passes a part to read, as a storage does.
func (all parts) open(p Part, read func(io.Reader) error) error {
	i := slices.IndexFunc(all, func(text string) bool { return digestOf(text) == p.Digest })
	if i < 0 || p.Dump != (i == 0) {
		return fmt.Errorf("no part %v", p)
	}

	return read(strings.NewReader(all[i]))
}

// write writes the parts as an archive.
func (all parts) write(t *testing.T, recipient age.Recipient) []byte {
	t.Helper()

	w, err := NewWriter(all.manifest(t), recipient)
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	announced := int64(-1)
	if err := w.Write(&out, func(size int64) {
		if out.Len() > 0 {
			t.Error("bytes were written before the size was known")
		}
		announced = size
	}, all.open); err != nil {
		t.Fatal(err)
	}

	if int64(out.Len()) != announced {
		t.Errorf("got %d bytes, announced %d", out.Len(), announced)
	}

	return out.Bytes()
}

// codeOf returns the code of an error for clients, or "" for nil.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).CodeWord()
}

// read reads an archive as an import does.
func read(from io.Reader, c ReaderConfig) (parts, error) {
	c.Passphrases = &Passphrases{}

	r, err := NewReader(from, c)
	if err != nil {
		return nil, err
	}
	defer r.Close()

	var all parts
	err = r.Each(func(p Part, content io.Reader) error {
		text, err := io.ReadAll(content)
		all = append(all, string(text))

		return err
	})

	return all, err
}

var unlimited = ReaderConfig{Key: testKey, MaxBytes: 1 << 40}

func newRecipient(t *testing.T, e Encryption) age.Recipient {
	t.Helper()

	r, err := NewRecipient(e, &Passphrases{})
	if err != nil {
		t.Fatal(err)
	}

	return r
}

func ownRecipient(t *testing.T) age.Recipient {
	t.Helper()

	own, err := testKey.Recipient()
	if err != nil {
		t.Fatal(err)
	}

	return newRecipient(t, Encryption{Recipient: own})
}

// TestArchive writes archives with parts of sizes around those of a block and a chunk, and reads
// them.
func TestArchive(t *testing.T) {
	t.Parallel()

	var sizes parts
	for i, n := range []int{7, 0, 1, tarBlock - 1, tarBlock, tarBlock + 1, chunk - 1, chunk, chunk + 1, 3 * chunk} {
		sizes = append(sizes, strings.Repeat(fmt.Sprint(i), n))
	}

	for name, all := range map[string]parts{
		"no files": {"a dump"}, "empty dump": {""}, "two files": {"a dump", "hello", "more"}, "sizes": sizes,
	} {
		for kind, recipient := range map[string]age.Recipient{"plain": nil, "encrypted": ownRecipient(t)} {
			got, err := read(bytes.NewReader(all.write(t, recipient)), unlimited)
			if diff := cmp.Diff(all, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v (-want +got):\n%s", name, kind, err, diff)
			}
		}
	}
}

// TestArchiveLayout reads an archive with package tar alone.
func TestArchiveLayout(t *testing.T) {
	t.Parallel()

	type entry struct {
		Name, Text string
		Mode       int64
		At         time.Time
	}

	var got []entry
	for r := tar.NewReader(bytes.NewReader(parts{"a dump", "hello", "more"}.write(t, nil))); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}

		got = append(got, entry{h.Name, string(text), h.Mode, h.ModTime.UTC()})
	}

	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []entry{
		{"manifest.json", got[0].Text, 0o600, at},
		{"database.dump", "a dump", 0o600, at},
		{"files/" + digestOf("hello").SHA256, "hello", 0o600, at},
		{"files/" + digestOf("more").SHA256, "more", 0o600, at},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestArchiveOfImportedBackup exports a backup that was imported: the archive names the project
// whose logins the dump names.
func TestArchiveOfImportedBackup(t *testing.T) {
	t.Parallel()

	all := parts{"a dump"}
	stored := all.manifest(t)
	stored.Project = testSource
	stored = stored.Import(testProject, testBackup)

	w, err := NewWriter(stored, nil)
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	if err := w.Write(&out, func(int64) {}, all.open); err != nil {
		t.Fatal(err)
	}

	r, err := NewReader(&out, unlimited)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	if m := r.Manifest; m.Project != testSource || m.Imported() || m.Format != extensionsFormat {
		t.Errorf("got project %s, source %s, format %d", m.Project, m.Source, m.Format)
	}
}

// TestWriteDamaged writes an archive from a storage whose dump is not that of the manifest.
func TestWriteDamaged(t *testing.T) {
	t.Parallel()

	broken := errors.New("broken")
	for name, stored := range map[string]io.Reader{
		"changed": strings.NewReader("b dump"), "shorter": strings.NewReader("a dum"),
		"longer": strings.NewReader("a dump."), "broken": iotest.ErrReader(broken),
	} {
		w, err := NewWriter(parts{"a dump"}.manifest(t), nil)
		if err != nil {
			t.Fatal(err)
		}

		open := func(_ Part, read func(io.Reader) error) error { return read(stored) }
		err = w.Write(io.Discard, func(int64) {}, open)
		if want := map[string]error{"longer": tar.ErrWriteTooLong, "broken": broken}[name]; err == nil ||
			!errors.Is(err, want) && (want != nil || !errors.Is(err, ErrMismatch)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPassphrase opens an archive with the right passphrase only, and without one where it is for
// another install.
func TestPassphrase(t *testing.T) {
	t.Parallel()

	all := parts{"a dump"}
	locked := all.write(t, newRecipient(t, Encryption{Passphrase: testPassphrase}))
	own := all.write(t, ownRecipient(t))

	for name, c := range map[string]struct {
		archive    []byte
		key        Key
		passphrase string
		want       string // code of the error
	}{
		"passphrase":                 {locked, testKey, testPassphrase, ""},
		"passphrase, other install":  {locked, bytes.Repeat([]byte{8}, 32), testPassphrase, ""},
		"wrong passphrase":           {locked, testKey, "the owls are", "wrong_passphrase"},
		"no passphrase":              {locked, testKey, "", "required"},
		"this install":               {own, testKey, "", ""},
		"this install, a passphrase": {own, testKey, testPassphrase, ""},
		"other install":              {own, bytes.Repeat([]byte{8}, 32), "", "required"},
	} {
		config := ReaderConfig{Key: c.key, Passphrase: c.passphrase, MaxBytes: 1 << 20}
		got, err := read(bytes.NewReader(c.archive), config)
		if c.want == "" && (err != nil || !slices.Equal(got, all)) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}

		if f := fault.Of(err); c.want != "" && (err == nil || f.Code != c.want || f.Fields[0].Name != "X-Passphrase") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}

	for _, invalid := range []string{"age1", "AGE-SECRET-KEY-1", "ssh-ed25519 AAAA"} {
		_, err := NewRecipient(Encryption{Recipient: invalid}, &Passphrases{})
		if f := fault.Of(err); err == nil || f.Code != "invalid_format" {
			t.Errorf("recipient %s: got %v", invalid, err)
		}
	}

	if r := newRecipient(t, Encryption{}); r != nil {
		t.Errorf("got recipient %v without encryption", r)
	}
}
