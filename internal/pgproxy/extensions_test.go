package pgproxy

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestRequests: a client's stream passes unchanged, however it is cut, and each extension that it
// wants is found before its message passes.
func TestRequests(t *testing.T) {
	t.Parallel()

	var stream []byte
	add := func(m pgproto3.FrontendMessage) {
		t.Helper()

		var err error
		if stream, err = m.Encode(stream); err != nil {
			t.Fatal(err)
		}
	}

	add(&pgproto3.Query{String: "select 1"})
	add(&pgproto3.Query{String: "select 1; CREATE extension IF NOT EXISTS \"uuid-ossp\" with schema x; select 'create extension a'"})
	add(&pgproto3.Parse{Name: "create extension if not exists hstore", Query: "create extension if not exists citext"})
	add(&pgproto3.CopyData{Data: []byte("Q\x00\x00\x00\x30create extension if not exists ltree\x00")})
	add(&pgproto3.Query{String: "create extension if not exists plperlu; create extension cube; create extension if not exists pg_cron"})
	add(&pgproto3.Query{String: "select '" + strings.Repeat("x", bufferSize) + "'; create extension if not exists isn"})
	add(&pgproto3.Terminate{})
	want := []string{"uuid-ossp", "citext"}

	for _, cut := range []int{1, 3, 7, 4096, bufferSize} {
		var r requests
		var got []byte
		var names []string
		buffer := make([]byte, bufferSize)
		held := 0
		for rest := stream; len(rest) > 0; {
			n := copy(buffer[held:], rest[:min(cut, len(rest))])
			rest = rest[n:]
			held += n

			passed, extensions := r.scan(buffer[:held])
			for _, e := range extensions {
				names = append(names, e.Name)
			}
			got = append(got, buffer[:passed]...)
			held = copy(buffer, buffer[passed:held])
		}

		if held != 0 || !bytes.Equal(got, stream) {
			t.Errorf("cut at %d: %d of %d bytes passed, %d held", cut, len(got), len(stream), held)
		}
		if !slices.Equal(names, want) {
			t.Errorf("cut at %d: got %q, want %q", cut, names, want)
		}
	}

	// What is no protocol passes at once, and is not read.
	var r requests
	garbage := []byte("Q\x00\x00\x00\x01create extension if not exists ltree\x00")
	if passed, names := r.scan(garbage); passed != len(garbage) || len(names) > 0 {
		t.Errorf("got %d of %d bytes, %v", passed, len(garbage), names)
	}
}
