package token

import (
	"bytes"
	"testing"
)

// TestMAC: another split of the same bytes, and another key, give another MAC.
func TestMAC(t *testing.T) {
	t.Parallel()

	key := []byte("key")
	split := func(texts ...string) []byte {
		fields := make([][]byte, len(texts))
		for i, text := range texts {
			fields[i] = []byte(text)
		}

		return MAC(key, fields...)
	}

	want := split("ab", "c")
	if !bytes.Equal(want, split("ab", "c")) {
		t.Error("the same fields have two MACs")
	}

	for _, other := range [][]string{{"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"ab", "c", ""}} {
		if bytes.Equal(want, split(other...)) {
			t.Errorf("%q has the MAC of [ab c]", other)
		}
	}

	if bytes.Equal(want, MAC([]byte("other"), []byte("ab"), []byte("c"))) {
		t.Error("two keys have one MAC")
	}
}
