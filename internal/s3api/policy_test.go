package s3api

import (
	"encoding/base64"
	"io"
	"maps"
	"strings"
	"testing"
	"time"
)

// TestPolicy checks forms against a policy: each change of a valid form is refused.
func TestPolicy(t *testing.T) {
	t.Parallel()

	const conditions = `{"bucket": "b"}, ["starts-with", "$key", "dir/"], ["eq", "$acl", "private"],
		["starts-with", "$Content-Type", "image/"], {"X-Amz-Meta-A": "1"}, ["starts-with", "$name", ""],
		["content-length-range", 2, "4"]`
	encode := func(expiration, conditions string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"expiration": "` + expiration + `", "conditions": [` +
			conditions + `]}`))
	}

	p, err := parsePolicy(encode("2030-01-02T03:04:05.000Z", conditions))
	if err != nil || p.min != 2 || p.max != 4 {
		t.Fatalf("got %+v, %v", p, err)
	}

	now := time.Date(2030, 1, 2, 3, 4, 4, 0, time.UTC)
	valid := map[string]string{"key": "dir/a", "acl": "private", "content-type": "image/png, image/gif", "name": "any",
		"x-amz-meta-a": "1", "policy": "x", "x-amz-signature": "x", "x-ignore-me": "x", "bucket": "b"}
	if err := p.check(valid, "b", now); err != nil {
		t.Errorf("got %v", err)
	}
	if p.check(valid, "b", now.Add(time.Minute)) == nil || p.check(valid, "c", now) == nil {
		t.Error("an expired policy, or one of another bucket, is accepted")
	}

	for field, value := range map[string]string{"key": "other/a", "acl": "public-read",
		"content-type": "image/png, text/html", "x-amz-meta-a": "2", "x-amz-meta-b": "1", "tagging": "",
		"bucket": "c"} {
		changed := maps.Clone(valid)
		changed[field] = value
		if got := p.check(changed, "b", now); codeOf(got) != "AccessDenied" {
			t.Errorf("%s %q: got %v, want AccessDenied", field, value, got)
		}
		delete(changed, field)
		if field == "key" && p.check(changed, "b", now) == nil {
			t.Error("a form without a key is accepted")
		}
	}

	for _, bad := range []string{"x", encode("", conditions), encode("2030-01-02", conditions),
		encode("2030-01-02T03:04:05Z", `["ends-with", "$key", "a"]`),
		encode("2030-01-02T03:04:05Z", `["eq", "key", "a"]`),
		encode("2030-01-02T03:04:05Z", `["content-length-range", 1.5, 2]`), encode("2030-01-02T03:04:05Z", `{}`),
		encode("2030-01-02T03:04:05Z", `{"key": 1}`)} {
		if _, err := parsePolicy(bad); codeOf(err) != "InvalidPolicyDocument" {
			t.Errorf("%q: got %v, want InvalidPolicyDocument", bad, err)
		}
	}
}

func TestSizedReader(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{"a": "EntityTooSmall", "ab": "", "abcd": "", "abcde": "EntityTooLarge"} {
		_, err := io.ReadAll(&sizedReader{in: strings.NewReader(text), min: 2, max: 4})
		if codeOf(err) != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
