package query

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostileNames are names of columns that mean something else to a path or query string.
var hostileNames = []string{"limit", "offset", "order", "select", "columns", "on_conflict", "and", "or", "not",
	"not.and", "apikey", "a.b", "a.limit", `q"z`, `"`, `\`, `a\"b`, "a b", " a", "a ", "a-b", "a->b", "a->>b", "a[0]",
	"a,b", "a(b)", "a:b", "a::b", "a=b", "a&b", "a;b", "a+b", "a%20b", "a?b", "a#b", "a/b", "..", "é", "名前", "🙂", "$1",
	"*", "A", "1", "-", "a--b", "a - b", "eq", "rpc", "\t", "a\nb"}

// TestQuoteName parses filters by columns of hostile names: each is a filter by that column.
func TestQuoteName(t *testing.T) {
	t.Parallel()

	for _, name := range hostileNames {
		checkQuoted(t, name)
	}

	for name, want := range map[string]string{"id": "id", "a b": "a b",
		"é-1": "é-1", "limit": `"limit"`, `q"\`: `"q\"\\"`} {
		if got := QuoteName(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// FuzzQuoteName is [TestQuoteName] for any name.
func FuzzQuoteName(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}

	f.Fuzz(func(t *testing.T, name string) {
		if name != "" && unescape(url.QueryEscape(name)) == name && !strings.Contains(name, "\x00") {
			checkQuoted(t, name)
		}
	})
}

func checkQuoted(t *testing.T, name string) {
	t.Helper()

	q, err := Parse(url.QueryEscape(QuoteName(name))+"=eq.3", Options{})
	if err != nil {
		t.Errorf("%q as %s: %v", name, QuoteName(name), err)
		return
	}

	want := &Query{Filters: []Filter{{Condition: &Comparison{Field: Field{Name: name}, Operator: "eq", Value: "3"}}}}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("%q as %s (-want +got):\n%s", name, QuoteName(name), diff)
	}
}
