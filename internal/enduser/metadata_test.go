package enduser

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMergeMetadata(t *testing.T) {
	t.Parallel()

	got, err := mergeMetadata("data", json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b":null,"c":{"d":[]}}`))
	if err != nil || string(got) != `{"a":1,"c":{"d":[]}}` {
		t.Errorf("got %s, %v", got, err)
	}

	for _, bad := range []string{`[]`, `1`, `{"a":"` + strings.Repeat("x", maxMetadata) + `"}`, `{"a":"\u0000"}`} {
		if got, err := mergeMetadata("data", nil, json.RawMessage(bad)); err == nil {
			t.Errorf("%.20s: got %s, want an error", bad, got)
		}
	}
}
