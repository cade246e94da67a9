package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/client"
)

func TestFit(t *testing.T) {
	t.Parallel()

	g := grid{
		heads: []string{"UUID", "ESTIMATED ROWS", "MEANING"},
		rows:  [][]string{{"01912b8c-0000-7000-8000-000000000001", "1", "Whether anyone may create an account."}},
	}
	for _, test := range []struct {
		terminal int
		widths   []int
		fits     bool
	}{
		{0, []int{36, 14, 37}, true},
		{100, []int{36, 14, 37}, true},
		{80, []int{36, 14, 26}, true},
		{70, []int{36, 10, 20}, true},
		{60, nil, false},
	} {
		widths, fits := g.fit(test.terminal)
		if fits != test.fits || (fits && !cmp.Equal(widths, test.widths)) {
			t.Errorf("%d columns: got %v, %v, want %v, %v", test.terminal, widths, fits, test.widths, test.fits)
		}
	}
}

func TestFormatNumber(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, number, want string }{
		{"totalSize", "2048", "2.0 KiB"}, {"rows", "2048", "2048"}, {"ratio", "0.123456", "0.1235"},
		{"duration", "412", "412µs"}, {"duration", "12345", "12.345ms"}, {"durationMs", "1.5", "1.5"},
	} {
		if got := formatNumber(tt.name, json.Number(tt.number)); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.name, tt.number, got, tt.want)
		}
	}
}

func TestWithoutMinor(t *testing.T) {
	t.Parallel()

	const id = "01912b8c-0000-7000-8000-000000000001"
	g := grid{
		heads:   []string{"UUID", "PUBLIC", "ACTOR", "NAME"},
		rows:    [][]string{{id, "no", id, "a"}, {id, "no", "", "b"}},
		numbers: make([]bool, 4),
	}

	if kept, _ := g.withoutMinor(true); !cmp.Equal(kept.heads, []string{"NAME"}) {
		t.Errorf("got the heads %v, want NAME only", kept.heads)
	}

	kept, left := g.withoutMinor(false)
	if want := []string{"UUID", "NAME"}; !cmp.Equal(kept.heads, want) {
		t.Errorf("got the heads %v, want %v", kept.heads, want)
	}
	if want := []string{"PUBLIC", "ACTOR"}; !cmp.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
	if want := [][]string{{id, "a"}, {id, "b"}}; !cmp.Equal(kept.rows, want) {
		t.Errorf("got the rows %v, want %v", kept.rows, want)
	}
}

func TestCaret(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		query              string
		position, terminal int
		want               string
	}{
		{"select * form x", 10, 0, "LINE 1: select * form x\n                 ^\n"},
		{"select 1;\nselect\t* form x", 20, 0, "LINE 2: select * form x\n                 ^\n"},
		{"select 'é', x", 13, 0, "LINE 1: select 'é', x\n                    ^\n"},
		{"select", 7, 0, "LINE 1: select\n              ^\n"},
		{"select", 0, 0, ""},
		{"select", 9, 0, ""},
		{strings.Repeat("a", 50) + "b", 51, 30, "LINE 1: aaaaaaaaaaaaaaaaaaaab\n                            ^\n"},
	} {
		if got := caret(test.query, test.position, 1, test.terminal); got != test.want {
			t.Errorf("caret(%q, %d, %d): got\n%s, want\n%s", test.query, test.position, test.terminal, got, test.want)
		}
	}
}

func TestCell(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, text, want string }{
		{"size", "92743", "90.6 KiB"},
		{"files bytes", "0", "0 B"},
		{"bytes", "268435456000", "250 GiB"},
		{"rows", "12345678901234567890", "12345678901234567890"},
		{"meanTime", "10.945931999999999", "10.9459"},
		{"roles", `["anon", "authenticated"]`, "anon, authenticated"},
		{"isPublic", "false", "no"},
		{"text", `"a\u001b[31mb\nc"`, "a�[31mb c"},
		{"none", "null", ""},
		{"answers", `[{"label": "Name", "value": "Ada"}, {"label": "Topics", "value": ["a", "b"]}]`,
			"Name: Ada, Topics: a, b"},
	} {
		v, err := decode(json.RawMessage(test.text))
		if err != nil {
			t.Fatal(err)
		}

		if got := cell(test.name, v); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

func TestReplyKeepsItsOrder(t *testing.T) {
	t.Parallel()

	p, err := newReply(&client.Reply{Content: json.RawMessage(`[{"b": 1, "a": {"y": [1, {"z": null}], "x": 2}}]`)})
	if err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(p.content)
	if want := `[{"b":1,"a":{"y":[1,{"z":null}],"x":2}}]`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

func TestProgressText(t *testing.T) {
	t.Parallel()

	p := &progress{done: 3 << 20, total: 4 << 20}
	want := "[######################        ]  75 %  3.0 MiB of 4.0 MiB, 1.0 MiB/s, 1s left"
	if got := p.text(3 * time.Second); got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	p.total = -1
	if got, want := p.text(time.Second), "3.0 MiB, 3.0 MiB/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLineCounter(t *testing.T) {
	t.Parallel()

	var l lineCounter
	for _, part := range []string{"a,b\n1,\"x", "\ny \"\" z\"\n", "2,\n"} {
		if _, err := l.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}

	if l.n != 3 {
		t.Errorf("got %d lines, want 3", l.n)
	}
}

func TestCompleteURL(t *testing.T) {
	t.Parallel()

	for address, want := range map[string]string{
		"":                       "",
		"127.0.0.1:8080":         "http://127.0.0.1:8080",
		"localhost":              "http://localhost",
		"[::1]:8080/":            "http://[::1]:8080",
		"socle.example.com":      "https://socle.example.com",
		"socle.example.com:8443": "https://socle.example.com:8443",
		"http://10.0.0.1:8080/":  "http://10.0.0.1:8080",
	} {
		if got := completeURL(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
