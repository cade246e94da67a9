package tus

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
)

func TestParseMetadata(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]map[string]string{
		"":                      {},
		"filename YS50eHQ=":     {"filename": "a.txt"},
		"a YQ==, empty ,b Yg==": {"a": "a", "empty": "", "b": "b"},
		"a YQ==,a Yg==":         nil,
		"a YQ":                  nil,
		"é YQ==":                nil,
		"a YQ==,,b Yg==":        nil,
		" ":                     nil,
		"a " + strings.Repeat("YWFh", MaxMetadata/4): nil,
	} {
		got, err := ParseMetadata(header)
		if (want == nil) != errors.Is(err, ErrMetadata) || want != nil && !maps.Equal(got, want) {
			t.Errorf("%.40q: got %v, %v, want %v", header, got, err, want)
		}
	}
}

func TestOverrideMethod(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]string{"": "POST", "PATCH": "PATCH", "delete": "DELETE"} {
		r, err := http.NewRequest("POST", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(MethodOverride, header)

		if OverrideMethod(r); r.Method != want {
			t.Errorf("%q: got %s, want %s", header, r.Method, want)
		}
	}
}
