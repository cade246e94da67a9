package token

import (
	"strings"
	"testing"
)

func TestAPIKey(t *testing.T) {
	t.Parallel()

	for _, prefix := range []string{PublishablePrefix, SecretPrefix} {
		key, other := NewAPIKey(prefix), NewAPIKey(prefix)
		if !strings.HasPrefix(key, prefix) || key == other || !IsAPIKey(key) {
			t.Errorf("NewAPIKey(%q) = %q, then %q", prefix, key, other)
		}

		for i := range len(key) {
			typo := key[:i] + "9" + key[i+1:]
			if IsAPIKey(typo) {
				t.Errorf("IsAPIKey(%q) = true, want false: character %d is wrong", typo, i)
			}
		}

		for _, text := range []string{
			"", prefix, key[:len(key)-1], key + "a", strings.ToUpper(key), " " + key, strings.TrimPrefix(key, prefix),
		} {
			if IsAPIKey(text) {
				t.Errorf("IsAPIKey(%q) = true, want false", text)
			}
		}
	}

	if secret := strings.Replace(NewAPIKey(PublishablePrefix), PublishablePrefix, SecretPrefix, 1); IsAPIKey(secret) {
		t.Error("a publishable key passes for a secret one by its prefix")
	}
}
