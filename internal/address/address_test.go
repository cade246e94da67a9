package address

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]string{
		" Ann@Example.COM ":                      "ann@example.com",
		"ｖic@example.com":                        "vic@example.com",
		"vic@ｅxample.com":                        "vic@example.com",
		"vic＠example.com":                        "vic@example.com",
		"\u212aim@example.com":                   "kim@example.com", // Kelvin sign, the same character by Unicode
		"İ@example.com":                          "İ@example.com",
		"ı@example.com":                          "ı@example.com",
		"Ä@example.com":                          "Ä@example.com",
		"a\u0308@example.com":                    "ä@example.com",
		"ann@BÜCHER.example":                     "ann@bücher.example",
		"ann@xn--bcher-kva.example":              "ann@bücher.example",
		"ann@XN--BCHER-KVA.example":              "ann@bücher.example",
		"ann@bu\u0308cher。example":               "ann@bücher.example",
		"ann@straße.example":                     "ann@straße.example",
		"ann+tag@a_b.example":                    "ann+tag@a_b.example",
		"ann@localhost":                          "ann@localhost",
		"用户@例子.example":                          "用户@例子.example",
		"":                                       "",
		"ann":                                    "",
		"ann@":                                   "",
		"@example.com":                           "",
		"a@b@c":                                  "",
		"Ann <ann@example.com>":                  "",
		"ann@example.com, b@x.org":               "",
		"ann@example.com\r\nBcc: x@y":            "",
		"a nn@example.com":                       "",
		"ann\u200b@example.com":                  "",
		"ann@exam\u00adple.com":                  "",
		"ann@-example.com":                       "",
		"ann@xn--a.example":                      "",
		"ann@[10.0.0.1]":                         "",
		`"a"@example.com`:                        "",
		strings.Repeat("a", 65) + "@example.com": "",
		"a@" + strings.Repeat("ü.", 60) + "example":      "",
		"a@" + strings.Repeat("long-label.", 25) + "com": "",
	} {
		got, ok := Clean(s)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("Clean(%q) = %q, want %q", s, got, want)
		}
		if again, _ := Clean(got); ok && again != got {
			t.Errorf("Clean(%q) = %q, want the same", got, again)
		}
	}
}

func TestForServer(t *testing.T) {
	t.Parallel()

	for s, want := range map[string]string{"ann@bücher.example": "ann@xn--bcher-kva.example",
		"ann@example.com": "ann@example.com", "ä@例子.example": "ä@xn--fsqu00a.example"} {
		if got, ok := ForServer(s); !ok || got != want {
			t.Errorf("ForServer(%s) = %s, %v, want %s", s, got, ok, want)
		}
	}

	if NeedsUTF8("ann@bücher.example") || !NeedsUTF8("ä@example.com") {
		t.Error("only the local part decides about SMTPUTF8")
	}
	if got := Forms("ann@bücher.example"); len(got) != 2 || len(Forms("ann@example.com")) != 1 {
		t.Errorf("got %v", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("Ann@Bücher.example")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Clean(s)
		if !ok {
			return
		}
		if again, ok := Clean(got); !ok || again != got {
			t.Errorf("Clean(%q) = %q, whose form is %q, %v", s, got, again, ok)
		}
		wire, ok := ForServer(got)
		if back, cleaned := Clean(wire); !ok || !cleaned || back != got {
			t.Errorf("%q is sent to %q, which is %q", got, wire, back)
		}
	})
}
