package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// TestChainOfTwoReleases: entries of this and the previous release may alternate, and changes of
// either are detected.
func TestChainOfTwoReleases(t *testing.T) {
	t.Parallel()

	key := []byte("key")
	type hashing func(key []byte, seq int64, previous, entry []byte) []byte
	last, rows := make([]byte, 32), []row{}
	for i, hash := range []hashing{chainHashV1, chainHashV1, chainHash, chainHashV1, chainHash, chainHash} {
		entry, err := json.Marshal(map[string]int{"n": i})
		if err != nil {
			t.Fatal(err)
		}

		last = hash(key, int64(i+1), last, entry)
		rows = append(rows, row{int64(i + 1), string(entry), last})
	}

	faults := func(rows []row) []string {
		c := checker{key: key, last: Head{Hash: make([]byte, 32)}}
		for _, r := range rows {
			c.row = r
			if err := c.next(); err != nil {
				t.Fatal(err)
			}
		}

		return c.report.Faults
	}
	if got := faults(rows); len(got) > 0 {
		t.Errorf("found %q in a log that is whole", got)
	}

	for i := range rows {
		changed := bytes.Clone(rows[i].Hash)
		changed[len(changed)-1] ^= 1
		forged := append([]row{}, rows...)
		forged[i].Hash = changed
		if got := faults(forged); len(got) == 0 || got[0] != fmt.Sprintf("entry %d does not match its hash", i+1) {
			t.Errorf("hash %d changed: found %q", i+1, got)
		}

		forged[i].Hash, forged[i].Entry = rows[i].Hash, rows[i].Entry+" "
		if got := faults(forged); len(got) != 1 {
			t.Errorf("entry %d changed: found %q", i+1, got)
		}
	}

	// Another split of the same bytes is another entry.
	a, b := chainHash(key, 1, []byte("ab"), []byte("c")), chainHash(key, 1, []byte("a"), []byte("bc"))
	if bytes.Equal(a, b) {
		t.Error("two cuts have one hash")
	}
}
