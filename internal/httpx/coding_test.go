package httpx

import (
	"net/http"
	"testing"
)

func TestAcceptsCoding(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]bool{
		"gzip": true, "deflate, gzip;q=0.5, br": true, "GZIP": true, "gzip; q=0.001": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "*": false, "xgzip": false,
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {header}}}
		if got := AcceptsCoding(r, "gzip"); got != want {
			t.Errorf("%q: got %t, want %t", header, got, want)
		}
	}
}
