package schema

import (
	"strings"
	"testing"
)

func TestNearestType(t *testing.T) {
	t.Parallel()

	own := []string{"mood", "app.status"}
	for text, want := range map[string]string{
		"varchr": "varchar", "varchr(80)[]": "varchar", "txt": "text", "TXT": "text", "bigit": "bigint",
		"timestmptz": "timestamptz", "bolean": "boolean", "string": "text", "datetime": "timestamptz", "mod": "mood",
		"app.statsu": "app.status",
		"geography":  "", "x": "", "nope": "", strings.Repeat("a", 63): "",
	} {
		spec, err := parseType(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}

		if got := nearestType(spec.name(), own); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
