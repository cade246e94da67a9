package cli

import "testing"

// TestShellCommands: commands work within a statement, but not in its quotes and comments.
func TestShellCommands(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		statement, line string
		want            bool
	}{
		{"", `\d`, true},
		{"", ` \q`, true},
		{"", "select 1", false},
		{"select 1\n", `\q`, true},
		{"insert into books values (\n", `\d books`, true},
		{"select 'a\n", `\q`, false},
		{"select $f$ a\n", `\q`, false},
		{"select 1 /* a\n", `\q`, false},
		{"select 'a'\n", `\?`, true},
	} {
		if got := isShellCommand(c.statement, c.line); got != c.want {
			t.Errorf("isShellCommand(%q, %q) = %v, want %v", c.statement, c.line, got, c.want)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()

	const invalid = -1
	for text, want := range map[string]int64{"0": 0, "1048576": 1 << 20, "10GB": 10 << 30, "10 GiB": 10 << 30,
		"1.5k": 1536, "9.5 MiB": 9961472,
		"4 B": 4, "9223372036854775807": 1<<63 - 1, "": invalid, "ten": invalid, "10XB": invalid,
		"GB": invalid, "-1GB": invalid, "9999999PB": invalid, "0.5": invalid} {
		if got, err := parseSize(text); (err != nil) != (want == invalid) || (err == nil && got != want) {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestNearestName(t *testing.T) {
	t.Parallel()

	items := []record{{{"name", "Book shop"}}, {{"name", "titles"}, {"schema", "app"}}, {{"email", "ada@example.com"}}}
	for name, want := range map[string]string{"Book Shop": "Book shop", "book shp": "Book shop",
		"app.title": "app.titles", "ada@exmple.com": "ada@example.com", "Library": "", "x": ""} {
		if got := nearestName(name, items); got != want {
			t.Errorf("nearestName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestCallerName checks that an end user's name needs no prefix, as with socle rows.
func TestCallerName(t *testing.T) {
	t.Parallel()

	for who, want := range map[string]string{"anon": "anon", "authenticated": "authenticated",
		"ada@example.com": "user:ada@example.com", "user:ada@example.com": "user:ada@example.com"} {
		if got := callerName(who); got != want {
			t.Errorf("callerName(%q) = %q, want %q", who, got, want)
		}
	}
}
