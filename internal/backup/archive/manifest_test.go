package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json"
)

// streamManifest streams the manifest of a project with a number of files.
func streamManifest(files int, seen func(n int)) io.Reader {
	out, in := io.Pipe()
	go func() {
		fmt.Fprint(in,
			`{"format":2,"project":"01890000-0000-7000-8000-000000000000","backup":"01890000-0000-7000-8000-000000000001","schema":1,"postgresql":150018,"at":"2026-01-01T00:00:00Z","dump":{"size":1,"sha256":"`+strings.Repeat("a", 64)+`"},"files":[`)

		var line bytes.Buffer
		for n := range files {
			sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
			fmt.Fprintf(&line, `{"size":%d,"sha256":"%s"}`, n, hex.EncodeToString(sum[:]))

			if n < files-1 {
				line.WriteByte(',')
			}

			if line.Len() > 1<<16 || n == files-1 {
				if _, err := in.Write(line.Bytes()); err != nil {
					return
				}

				line.Reset()
				seen(n)
			}
		}

		fmt.Fprint(in, `],"tables":[{"schema":"public","name":"orders","rows":7}]}`)
		in.Close()
	}()

	return out
}

func heapBytes() uint64 {
	runtime.GC()

	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.HeapAlloc
}

// TestManifestOfManyFiles reads and writes the manifest of a hundred thousand files, larger than
// the limit for everything else in it, in the memory of a small one.
func TestManifestOfManyFiles(t *testing.T) {
	const files, most = 100_000, 2 << 20
	before, peak := heapBytes(), uint64(0)
	next := 0

	manifest, err := parseManifest(streamManifest(files, func(n int) {
		if n >= next {
			peak, next = max(peak, heapBytes()), next+10_000
		}
	}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Files.Close()

	if got := manifest.Files.Len(); got != files || len(manifest.Tables) != 1 {
		t.Errorf("got %d contents and %[3]d tables, want %[2]d and 1", got, files, len(manifest.Tables))
	}

	if err := manifest.validate(); err != nil {
		t.Error(err)
	}

	text := NewHasher()
	if err := json.MarshalWrite(text, manifest); err != nil {
		t.Fatal(err)
	}

	if text.size < 8<<20 {
		t.Errorf("got a manifest of %d bytes, want more", text.size)
	}
	if peak = max(peak, heapBytes()); peak > before+most {
		t.Errorf("got %d bytes of memory, want at most %d", peak-before, most)
	}

	t.Logf("%d MiB of text, %d KiB of memory", text.size>>20, (peak-before)>>10)
	i := 0
	for f, err := range manifest.Files.All() {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
		if want := (Digest{int64(i), hex.EncodeToString(sum[:])}); err != nil || f.Digest != want {
			t.Fatalf("content %d: got %v, %v, want %v", i, f.Digest, err, want)
		}

		i++
	}
}

// TestManifestDatabase tests the name of the dumped database, from which the dump names its logins.
func TestManifestDatabase(t *testing.T) {
	t.Parallel()

	const project, source = `"01912b8c-0000-7000-8000-00000000abcd"`, `"01912b8c-0000-7000-8000-00000000dcba"`

	for text, want := range map[string]string{
		`{"format":2,"project":` + project + `}`:                         "socle_01912b8c00007000800000000000abcd",
		`{"format":2,"project":` + project + `,"source":` + source + `}`: "socle_01912b8c00007000800000000000dcba",
		`{"format":3,"project":` + project + `,"database":"socle_0123"}`: "socle_0123",
	} {
		m, err := parseManifest(strings.NewReader(text), 1000)
		if err != nil {
			t.Fatal(err)
		}

		if got := m.DatabaseName(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}

		m.Files.Close()
	}
}

// TestInvalidManifests parses manifests that no release has written.
func TestInvalidManifests(t *testing.T) {
	t.Parallel()

	sum := strings.Repeat("a", 64)
	for text, want := range map[string]error{
		`{"format":1,"files":null}`: nil,
		`{"format":1}`:              nil, `{"format":1,"files":[{"size":1,"sha256":"` + sum + `"}]}`: nil,
		`{"format":4,"files":7}`: ErrNewer, `{"format":1,"files":7}`: ErrDamaged,
		`{"format":1,"files":{}}`: ErrDamaged, `{"format":1,"files":[7]}`: ErrDamaged,
		`{"format":1,"files":[{"size":-1,"sha256":"` + sum + `"}]}`:                 ErrDamaged,
		`{"format":1,"files":[{"size":1,"sha256":"../x"}]}`:                         ErrDamaged,
		`{"format":1,"files":[{"size":1,"sha256":"` + strings.ToUpper(sum) + `"}]}`: ErrDamaged,
		`{"format":1,"files":[`: ErrDamaged, ``: ErrDamaged, `{"format":1} x`: ErrDamaged,
		`{"format":1,"socle":"` + strings.Repeat("x", 2000) + `"}`: ErrDamaged,
	} {
		got, err := parseManifest(strings.NewReader(text), 1000)
		if !errors.Is(err, want) {
			t.Errorf("%.60s: got %v, want %v", text, err, want)
		}

		got.Files.Close()
	}
}

// TestManifestLimit reads manifests around the limit of bytes, which contents do not count toward.
func TestManifestLimit(t *testing.T) {
	t.Parallel()

	const most = 1 << 20
	contents := strings.Repeat(`{"size":1,"sha256":"`+strings.Repeat("a", 64)+`"},`, most/50)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"below":               {`{"format":1` + strings.Repeat(" ", most-100) + `}`, nil},
		"above":               {`{"format":1` + strings.Repeat(" ", most) + `}`, ErrDamaged},
		"much above":          {`{"format":1,"socle":"` + strings.Repeat("x", 3*most) + `"}`, ErrDamaged},
		"contents":            {`{"format":1,"files":[` + strings.TrimSuffix(contents, ",") + `]}`, nil},
		"contents, and above": {`{"format":1,"files":[` + contents + strings.Repeat(" ", 2*most) + `]}`, ErrDamaged},
	} {
		m, err := parseManifest(strings.NewReader(c.text), most)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}

		m.Files.Close()
	}
}

// TestManifestFromFailingSource reads a manifest from a storage that fails, which is no damage.
func TestManifestFromFailingSource(t *testing.T) {
	t.Parallel()

	away := errors.New("the storage is unavailable")
	text := formats["3"]
	for i := range text {
		_, err := ReadManifest(io.MultiReader(strings.NewReader(text[:i]), iotest.ErrReader(away)))
		if !errors.Is(err, away) || errors.Is(err, ErrDamaged) {
			t.Errorf("failure at byte %d: got %v, want %v", i, err, away)
		}
	}
}
