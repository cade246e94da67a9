package leaked

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fair"
)

// hashOfPassword is the SHA-1 hash of "password" behind its range.
const rangeOfPassword, hashOfPassword = "5BAA6", "1E4C9B93F3F0682250B6CF8331B7EE68FD8"

func TestPasswords(t *testing.T) {
	t.Parallel()

	var asked []string
	down := false
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.Path); r.Header.Get("Add-Padding") != "true" || down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%s:3\r\n0018A45C4D1DEF81644B54AB7F969B88D65:1\r\n", strings.ToLower(hashOfPassword))
	}))
	t.Cleanup(service.Close)

	folder, padded := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(folder, rangeOfPassword+".txt"): "00:1\n" + hashOfPassword + ":9\n",
		filepath.Join(padded, rangeOfPassword):        hashOfPassword + ":0\r\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for address, want := range map[string]bool{service.URL + "/range/": true, folder: true, padded: false} {
		l := New(address)
		if got, err := l.Contains(t.Context(), fair.Key{}, "password"); got != want || err != nil {
			t.Errorf("%s: got %v (%v), want %v", address, got, err, want)
		}
	}
	if _, err := New(folder).Contains(t.Context(), fair.Key{}, "another"); err == nil {
		t.Error("a range without a file: got no error")
	}

	l := New(service.URL + "/")
	clock := time.Now()
	l.clock = func() time.Time { return clock }

	asked = nil
	for range 2 {
		if got, err := l.Contains(t.Context(), fair.Key{}, "password"); !got || err != nil {
			t.Errorf("got %v (%v), want true", got, err)
		}
	}
	if len(asked) != 1 || asked[0] != "/"+rangeOfPassword {
		t.Errorf("the service was asked for %v, want one range", asked)
	}

	clock, down = clock.Add(rangeTTL), true
	if _, err := l.Contains(t.Context(), fair.Key{}, "password"); err == nil {
		t.Error("an old range while the service is down: got no error")
	}

	down = false
	for i := range 2 * maxCachedRanges {
		if _, err := l.Contains(t.Context(), fair.Key{}, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.ranges.Len(); got > maxCachedRanges {
		t.Errorf("%d ranges are cached, want at most %d", got, maxCachedRanges)
	}
}
