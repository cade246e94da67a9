package s3api

import (
	"net/url"
	"testing"
)

// TestCanonicalQuery checks the order of parameters, where a name is the beginning of another, too.
func TestCanonicalQuery(t *testing.T) {
	t.Parallel()

	query, err := url.ParseQuery("prefix=b&prefix-x=1&prefix=a%20&prefix0=2&list-type=2&X-Amz-Signature=0&%C3%A9=%2F")
	if err != nil {
		t.Fatal(err)
	}

	const want = "%C3%A9=%2F&list-type=2&prefix=a%20&prefix=b&prefix-x=1&prefix0=2"
	if got := canonicalQuery(query); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
