// Package tus has the parts of the tus protocol for resumable uploads that do not depend on where
// the bytes go: https://tus.io/protocols/resumable-upload, version 1.0.0. Packages api and
// storageapi word its failures as their contracts do.
package tus

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

const (
	// Version is the supported version of the protocol.
	Version = "1.0.0"
	// ContentType is the media type of the body of a PATCH.
	ContentType = "application/offset+octet-stream"
	// MaxMetadata is the limit of an Upload-Metadata header in bytes.
	MaxMetadata = 8 << 10
	// MethodOverride is the header with the method of a client that can't send PATCH or DELETE.
	MethodOverride = "X-HTTP-Method-Override"
)

// ErrMetadata is the failure of [ParseMetadata].
var ErrMetadata = errors.New("malformed Upload-Metadata header")

// OverrideMethod replaces the method of a request by that of the header, which the protocol
// requires.
func OverrideMethod(r *http.Request) {
	if method := r.Header.Get(MethodOverride); method != "" {
		r.Method = strings.ToUpper(method)
	}
}

// ParseMetadata returns the pairs of an Upload-Metadata header: distinct keys, and values in
// base64, which may be missing. It fails with [ErrMetadata].
func ParseMetadata(header string) (map[string]string, error) {
	metadata := map[string]string{}
	if header == "" {
		return metadata, nil
	}
	if len(header) > MaxMetadata {
		return nil, ErrMetadata
	}

	for pair := range strings.SplitSeq(header, ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if _, repeated := metadata[key]; err != nil || repeated || key == "" || !isASCII(key) {
			return nil, ErrMetadata
		}

		metadata[key] = string(value)
	}

	return metadata, nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}
