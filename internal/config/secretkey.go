package config

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const minKeySize = 32 // bytes

func secretKey(text string) (Secret, error) {
	_, err := decodeKey(text)
	return Secret(text), err
}

// decodeKey decodes a key in hex or in any variant of base64. Its errors do not repeat the text.
func decodeKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil {
		standard := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		key, err = base64.RawStdEncoding.DecodeString(standard)
	}
	if err != nil {
		return nil, errors.New("is neither base64 nor hex; make one with: openssl rand -base64 32")
	}

	if len(key) < minKeySize {
		return nil, fmt.Errorf("has %d bytes, fewer than %d; make one with: openssl rand -base64 32",
			len(key), minKeySize)
	}
	if isPlaceholder(text) || isPlaceholder(string(key)) || distinctBytes(key) < minKeySize/2 {
		return nil, errors.New("is not random; make one with: openssl rand -base64 32")
	}

	return key, nil
}

// isPlaceholder reports whether text contains a word that is typical for placeholder secrets.
func isPlaceholder(text string) bool {
	text = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(text))
	for _, word := range []string{
		"changeme", "changethis", "replaceme", "secret", "password", "example", "placeholder", "default", "insecure",
	} {
		if strings.Contains(text, word) {
			return true
		}
	}

	return false
}

// distinctBytes returns the number of distinct bytes in key: about 30 out of 32 in a random one.
func distinctBytes(key []byte) int {
	seen := map[byte]bool{}
	for _, b := range key {
		seen[b] = true
	}

	return len(seen)
}
