package cli

import "testing"

// TestWithRecord: the statement that records a seed is in the seed's transaction, also if the text
// has a BEGIN and COMMIT.
func TestWithRecord(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"a; b":                          "a; b\n;\nrecord",
		"begin; a; commit; b;":          "begin; a; commit; b;\n;\nrecord",
		"begin; a; commit;\n-- the end": "begin; a;\nrecord; commit;\n-- the end",
		"begin; a; END":                 "begin; a;\nrecord; END",
		"":                              "\n;\nrecord",
	} {
		if got := withRecord(text, "record"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := withRecord(text, ""); got != text {
			t.Errorf("%q without a record: got %q", text, got)
		}
	}
}
