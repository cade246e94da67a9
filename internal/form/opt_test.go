package form

import (
	"encoding/json"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestOptUnmarshal(t *testing.T) {
	t.Parallel()

	type body struct {
		Absent Opt[string] `json:"absent"`
		Null   Opt[int64]  `json:"null"`
		Zero   Opt[int64]  `json:"zero"`
		Text   Opt[string] `json:"text"`
		No     Opt[bool]   `json:"no"`
	}

	const text = `{"null": null, "zero": 0, "text": "é", "no": false}`
	want := body{Null: optNull[int64](), Zero: optOf(int64(0)), Text: optOf("é"), No: optOf(false)}
	for name, unmarshal := range map[string]func([]byte, any) error{
		"v1": json.Unmarshal,
		"v2": func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) },
	} {
		var got body
		if err := unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}

		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: got -, want +\n%s", name, diff)
		}

		for _, bad := range []string{
			`{"zero": "1"}`, `{"zero": 1.5}`, `{"zero": 9223372036854775808}`, `{"text": 1}`, `{"no": "true"}`,
		} {
			if err := unmarshal([]byte(bad), new(body)); err == nil {
				t.Errorf("%s: %s was accepted", name, bad)
			}
		}
	}
}

// optOf returns a member with value v.
func optOf[T any](v T) Opt[T] { return Opt[T]{Named: true, Value: &v} }

// optNull returns a member that is null.
func optNull[T any]() Opt[T] { return Opt[T]{Named: true} }
