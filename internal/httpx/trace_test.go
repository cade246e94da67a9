package httpx

import (
	"net/http"
	"testing"
)

func TestTraceID(t *testing.T) {
	t.Parallel()

	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for given, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01": id,
		"00-" + id + "-00f067aa0ba902b7-00": id,
		"":                                  "",
		"01-" + id + "-00f067aa0ba902b7-01": "",
		"00-" + id + "-0000000000000000-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-" + id + "-00f067aa0ba902b7-01-x":                     "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"00-" + id[1:] + "\n-00f067aa0ba902b7-01":                 "",
	} {
		if got := traceID(http.Header{"Traceparent": {given}}); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}

	if got := traceID(http.Header{}); got != "" {
		t.Errorf("no header: got %q", got)
	}
}
