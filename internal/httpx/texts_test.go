package httpx_test

import (
	"net/http/httptest"
	"testing"

	"github.com/socle-dev/socle/internal/httpx"
)

func TestHostileText(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ target, header, value, want string }{
		{"/a/b?x=1&y=%C3%BC", "X-Name", "bücher", ""},
		{"/a%00", "", "", "path"},
		{"/a%ff", "", "", "path"},
		{"/a%ED%A0%80", "", "", "path"},
		{"/?x=%00", "", "", "query"},
		{"/?x=1&y=%fe", "", "", "query"},
		{"/?%c0%80=1", "", "", "query"},
		{"/?x=a%zz", "", "", ""},
		{"/", "X-Name", "a\xffb", "X-Name"},
		{"/", "X-Name", "a\x00b", "X-Name"},
		{"/", "User-Agent", "Brows\xe9r", ""},
	} {
		r := httptest.NewRequest("GET", tt.target, nil)
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		if got := httpx.HostileText(r); got != tt.want {
			t.Errorf("%s, %s: %q: got %q, want %q", tt.target, tt.header, tt.value, got, tt.want)
		}
	}
}
