package event

import (
	"strings"
	"testing"
)

// TestFlatten: a row beyond the depth of package json loses its long and nested members.
func TestFlatten(t *testing.T) {
	t.Parallel()

	deep := strings.Repeat("[", 12_000) + strings.Repeat("]", 12_000)
	long := strings.Repeat("x", 2000)
	e := &entry{Record: []byte(`{"id":7,"deep":` + deep + `,"o":{"a":"b","c":[1]},"price":12.50,"long":"` + long +
		`","name":"é \"q\"","none":null,"yes":true}`), Old: []byte(`{"id":6}`)}
	e.flatten()
	const want = `{"id":7,"price":12.50,"name":"é \"q\"","none":null,"yes":true}`
	if got := string(e.Record); got != want || !e.Oversized {
		t.Errorf("got %s, oversized %t, want %s", got, e.Oversized, want)
	}
	if string(e.Old) != `{"id":6}` {
		t.Errorf("the other row: got %s", e.Old)
	}

	shallow := &entry{Record: []byte(`{"id":7,"wide":[` + strings.Repeat("1,", 20_000) + `1]}`)}
	if shallow.flatten(); shallow.Oversized {
		t.Error("a wide row is flattened")
	}
}
