// Package objecttest has file names that URL tests share.
package objecttest

import "strings"

// HostileNames are valid file names that break URLs which are put together carelessly: characters
// with a meaning in a URL, text that looks escaped, and what clients cut off, fold or normalize.
var HostileNames = []string{
	"plain.txt", "a?b.txt", "a#b.txt", "a%b.txt", "a%2Fb.txt", "a%3Fb.txt", "a%253Fb.txt", "a%zz", "100%",
	"a&b=c;d,e+f@g$h!i'j.txt", `q"u(o)t[e]s{}.txt`, "a<b>c|d~e^f`g.txt", "a:b", "a;b", "http:/x/y", "?", "#",
	"%", "&", "=", "+", "a b c.txt", " leading", "trailing ", " ", "..x", "...", ".hidden", "x..", "dir/..a/b..",
	"dir.with.dots/a.",
	"?token=x", "a?download=1#top", "a%00b", "a%0Ab", "%2e%2e/%2e", "é-nfc", "e\u0301-nfd", "ß", "İ", "😀/👩‍💻.png",
	"שלום.txt", "\u202egnp.exe", "日本語/ファイル.txt", "\u00a0nbsp", "\ufeffbom", "public", "sign/x",
	strings.Repeat("é", 512),
	strings.Repeat("d/", 500) + "deep",
}
