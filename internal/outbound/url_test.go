package outbound

import "testing"

func TestCheckURL(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{"https://id.example.com/realms/x": true, "http://127.0.0.1:8": true,
		"ftp://x": false, "https://u@x": false, "https://x/?a": false, "https:///x": false,
		"javascript:alert(1)": false} {
		if got := CheckURL(text) == nil; got != want {
			t.Errorf("CheckURL(%q) accepts: %v, want %v", text, got, want)
		}
	}
}
