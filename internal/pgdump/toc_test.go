package pgdump

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tocWriter writes a table of contents in the format of pg_dump 15.
type tocWriter struct{ strings.Builder }

func (w *tocWriter) number(n int) {
	w.WriteByte(0)
	w.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

func (w *tocWriter) texts(texts ...string) {
	for _, s := range texts {
		w.number(len(s))
		w.WriteString(s)
	}
}

func tableOfContents(entries ...Entry) string {
	w := &tocWriter{}
	w.WriteString("PGDMP\x01\x0e\x00\x04\x08\x01")

	for range 8 { // compression and creation time
		w.number(0)
	}

	w.texts("database", "15", "15")
	w.number(len(entries))

	for _, e := range entries {
		w.number(e.ID)
		w.number(0)
		w.texts("0", "0", e.Tag, e.Desc)
		w.number(0)
		w.texts(e.Definition, e.Drop, e.Copy, e.Namespace, "", "", e.Owner, "false")

		for _, id := range e.Depends {
			w.texts(strconv.Itoa(id))
		}

		w.WriteString("\x01\x01\x00\x00\x00") // end of the dependencies
		w.WriteString(strings.Repeat("\x00", 9))
	}

	return w.String()
}

// TestContentsAreBounded reads tables of contents with large statements: only those that Socle
// executes itself are retained, up to a limit.
func TestContentsAreBounded(t *testing.T) {
	large := strings.Repeat("x", 20<<20)
	text := tableOfContents(Entry{
		ID:         1,
		Tag:        "f()",
		Desc:       "FUNCTION",
		Definition: large,
		Namespace:  "public",
		Owner:      "o",
	},
		Entry{ID: 2, Tag: "t p", Desc: "POLICY", Definition: "create policy", Namespace: "public", Owner: "o"})

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := ReadTOC(strings.NewReader(text))
	runtime.ReadMemStats(&after)

	if err != nil || len(got) != 2 || got[0].Definition != "" ||
		!cmp.Equal(got[1],
			Entry{ID: 2, Tag: "t p", Desc: "POLICY", Definition: "create policy", Namespace: "public", Owner: "o"},
			cmpopts.IgnoreUnexported(Entry{})) {
		t.Errorf("got %+v, %v", got, err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("got %d bytes of memory for a statement of %d", taken, len(large))
	}

	var many []Entry
	for i := range 4 {
		many = append(many, Entry{ID: i, Tag: "t p", Desc: "POLICY", Definition: large})
	}

	if _, err := ReadTOC(strings.NewReader(tableOfContents(many...))); !errors.Is(err, ErrTOC) {
		t.Errorf("80 MB of policies: got %v", err)
	}
}

// TestReadSchema reads all statements and dependencies, up to a limit.
func TestReadSchema(t *testing.T) {
	t.Parallel()

	want := []Entry{
		{ID: 1, Tag: "t", Desc: "TABLE", Definition: "create table t", Drop: "drop table t", Owner: "o"},
		{ID: 2, Tag: "v", Desc: "VIEW", Definition: "create view v", Drop: "drop view v", Depends: []int{1}},
	}

	got, err := ReadSchema(strings.NewReader(tableOfContents(want...)))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); err != nil || diff != "" {
		t.Errorf("got %v, (-want +got):\n%s", err, diff)
	}

	large := Entry{ID: 1, Desc: "FUNCTION", Definition: strings.Repeat("x", maxSchemaText)}
	if _, err := ReadSchema(strings.NewReader(tableOfContents(large))); !errors.Is(err, ErrLargeSchema) {
		t.Errorf("a large schema: got %v", err)
	}
}

// TestClear clears owners and entries in place.
func TestClear(t *testing.T) {
	t.Parallel()

	text := tableOfContents(
		Entry{ID: 1, Tag: "t", Desc: "TABLE", Definition: "create table t ();", Namespace: "public", Owner: "ada"},
		Entry{ID: 2, Tag: "e", Desc: "EVENT TRIGGER", Definition: "create event trigger e;", Owner: "ada"})

	f := &archive{bytes: []byte(text + "ada, create event trigger e;")}
	if err := Clear(f, func(e Entry) bool { return e.Tag == "e" }); err != nil {
		t.Fatal(err)
	}

	want := strings.ReplaceAll(text, "ada", "\x00\x00\x00")
	want = strings.Replace(want, "create event trigger e;", strings.Repeat("\x00", 23), 1)
	if got := string(f.bytes); got != want+"ada, create event trigger e;" {
		t.Errorf("got %q, want %q and the data", got, want)
	}

	if err := Clear(&archive{bytes: []byte("PGDMP")}, nil); !errors.Is(err, ErrTOC) {
		t.Errorf("got %v, want %v", err, ErrTOC)
	}
}

// archive is a file in memory.
type archive struct{ bytes []byte }

func (a *archive) ReadAt(p []byte, at int64) (int, error) {
	return strings.NewReader(string(a.bytes)).ReadAt(p, at)
}

func (a *archive) WriteAt(p []byte, at int64) (int, error) { return copy(a.bytes[at:], p), nil }
