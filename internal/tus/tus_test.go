package tus

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fault"
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

// TestUploadHeaders checks the state of an upload in the headers of a response.
func TestUploadHeaders(t *testing.T) {
	t.Parallel()

	expires := time.Date(2026, 11, 26, 18, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, u := range map[string]Upload{
		"Upload-Expires: Thu, 26 Nov 2026 17:00:00 GMT, Upload-Length: 12, Upload-Metadata: a YQ==, Upload-Offset: 5": {
			Offset: 5, Length: 12, Metadata: "a YQ==", Expires: expires},
		"Upload-Defer-Length: 1, Upload-Expires: Thu, 26 Nov 2026 17:00:00 GMT, Upload-Offset: 0": {
			Length: 12, Deferred: true, Expires: expires},
	} {
		h := http.Header{}
		u.SetHeaders(h)

		var got []string
		for _, name := range slices.Sorted(maps.Keys(h)) {
			got = append(got, name+": "+h.Get(name))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%+v: got %q, want %q", u, got, want)
		}
	}
}

// TestChecksum checks the bytes of a part against the checksum of its client.
func TestChecksum(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"sha1", "md5 XUFAKrxLKna5cZ2REBfFkg==", "sha256 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1 %",
	} {
		if _, err := ParseChecksum(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", text, err)
		}
	}

	for content, matches := range map[string]bool{"hello": true, "jello": false, "": false} {
		sum, err := ParseChecksum("sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=")
		if err != nil {
			t.Fatal(err)
		}

		_, err = io.ReadAll(sum.Verify(strings.NewReader(content)))
		if matches != (err == nil) || (!matches && !fault.Is(err, fault.Mismatch)) {
			t.Errorf("%q: got %v, want a match %t", content, err, matches)
		}
	}
}
