package backup

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
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

func tableOfContents(entries ...entry) string {
	w := &tocWriter{}
	w.WriteString("PGDMP\x01\x0e\x00\x04\x08\x01")

	for range 8 { // compression and creation time
		w.number(0)
	}

	w.texts("database", "15", "15")
	w.number(len(entries))

	for _, e := range entries {
		w.number(e.id)
		w.number(0)
		w.texts("0", "0", e.tag, e.desc)
		w.number(0)
		w.texts(e.definition, "", e.copy, e.namespace, "", "", e.owner, "false")
		w.WriteString("\x01\x01\x00\x00\x00") // end of the dependencies
		w.WriteString(strings.Repeat("\x00", 9))
	}

	return w.String()
}

// TestContentsAreBounded reads tables of contents with large statements: only those that Socle
// executes itself are retained, up to a limit.
func TestContentsAreBounded(t *testing.T) {
	large := strings.Repeat("x", 20<<20)
	text := tableOfContents(entry{
		id:         1,
		tag:        "f()",
		desc:       "FUNCTION",
		definition: large,
		namespace:  "public",
		owner:      "o",
	},
		entry{id: 2, tag: "t p", desc: "POLICY", definition: "create policy", namespace: "public", owner: "o"})

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := readTOC(strings.NewReader(text))
	runtime.ReadMemStats(&after)

	if err != nil || len(got) != 2 || got[0].definition != "" ||
		got[1] != (entry{2, "t p", "POLICY", "create policy", "", "public", "o"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("got %d bytes of memory for a statement of %d", taken, len(large))
	}

	var many []entry
	for i := range 4 {
		many = append(many, entry{id: i, tag: "t p", desc: "POLICY", definition: large})
	}

	if _, err := readTOC(strings.NewReader(tableOfContents(many...))); !errors.Is(err, errTOC) {
		t.Errorf("80 MB of policies: got %v", err)
	}
}

// TestReadLine reads lines, one of them longer than the retained part.
func TestReadLine(t *testing.T) {
	t.Parallel()

	r := bufio.NewReader(strings.NewReader("one\n" + strings.Repeat("x", 3*maxLine) + "\ntwo"))
	for i, want := range []int{4, maxLine, 3} {
		line, err := readLine(r)
		if len(line) != want || (err != nil && (err != io.EOF || i < 2)) {
			t.Errorf("line %d: got %d bytes, %v, want %d", i, len(line), err, want)
		}
	}
}
