package outbound

import "testing"

func TestCheckAddress(t *testing.T) {
	t.Parallel()

	for _, address := range []string{"functions://hello", "functions://Hello_1-x/sub/path", "https://example.com/x"} {
		if err := CheckAddress(address); err != nil {
			t.Errorf("%s: got %v", address, err)
		}
	}
	for _, address := range []string{"functions:", "functions://", "functions:hello", "functions:///hello",
		"functions://a.b", "functions://a:80", "functions://u@a", "functions://a?x=1", "functions://a#x",
		"functions://-a", "functions://a/../b", "functions://a b", "pg-functions://postgres/a/b", "ftp://a", "a"} {
		if err := CheckAddress(address); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
}
