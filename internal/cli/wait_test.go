package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/socle-dev/socle/client"
)

// TestMergeMaps checks that a list of all pages keeps the metadata of single items, and drops those
// of pages.
func TestMergeMaps(t *testing.T) {
	t.Parallel()

	merged := map[string]map[string]json.RawMessage{}
	for _, metadata := range []string{
		`{"page": 1, "total": 2, "sort": "name", "uuids": {"public.a": "1"}, "details": null}`,
		`{"page": 2, "total": 2, "sort": "name", "uuids": {"public.b": "2"}}`,
		`null`, `[]`, ``,
	} {
		mergeMaps(merged, json.RawMessage(metadata))
	}

	got, err := json.Marshal(merged)
	if want := `{"uuids":{"public.a":"1","public.b":"2"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestBackupDetails checks that a list of backups shows their sizes and proofs.
func TestBackupDetails(t *testing.T) {
	t.Parallel()

	p, err := newReply(&client.Reply{
		Content:  json.RawMessage(`[{"uuid": "u1", "status": "completed"}, {"uuid": "u2", "status": "pending"}]`),
		Metadata: json.RawMessage(`{"details": {"u1": {"size": 2048, "provenAt": null, "proofError": "lost", "origin": "made"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	p.addDetails()

	var out strings.Builder
	if err := p.print(&out, &out, "backups"); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"SIZE", "PROOF", "lost", "u2"} {
		if !strings.Contains(strings.ToUpper(out.String()), strings.ToUpper(want)) {
			t.Errorf("got\n%s, without %q", out.String(), want)
		}
	}
}
