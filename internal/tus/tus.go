// Package tus implements what the tus protocol for resumable uploads requires wherever the bytes
// go: https://tus.io/protocols/resumable-upload, version 1.0.0. Packages api and storageapi have
// the routes, and word failures as their contracts do; package object has the uploads.
package tus

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Version is the supported protocol version.
	Version = "1.0.0"
	// ContentType is the media type for PATCH bodies.
	ContentType = "application/offset+octet-stream"
	// MaxMetadata is the size limit for an Upload-Metadata header in bytes.
	MaxMetadata = 8 << 10
	// MethodOverride is the header with the method from a client that can't send PATCH or DELETE.
	MethodOverride = "X-HTTP-Method-Override"
)

// ErrMetadata is the failure that [ParseMetadata] returns.
var ErrMetadata = errors.New("malformed Upload-Metadata header")

// SetHeaders sets the headers that every response has. They tell clients with another version the
// supported one.
func SetHeaders(h http.Header) {
	h.Set("Tus-Resumable", Version)
	h.Set("Tus-Version", Version)
	h.Set("Cache-Control", "no-store")
}

// SetCapabilities sets the headers with the extensions, separated by commas, and the maximum file
// size in bytes.
func SetCapabilities(h http.Header, extensions string, maxSize int64) {
	h.Set("Tus-Extension", extensions)
	h.Set("Tus-Max-Size", strconv.FormatInt(maxSize, 10))
}

// Upload is an upload's state.
type Upload struct {
	Offset   int64 // bytes received
	Length   int64 // file size in bytes, unless Deferred
	Deferred bool  // the client sends the length later
	Metadata string
	Expires  time.Time
}

// SetHeaders sets the headers in a response about the upload.
func (u Upload) SetHeaders(h http.Header) {
	h.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	h.Set("Upload-Expires", u.Expires.UTC().Format(http.TimeFormat))

	if u.Deferred {
		h.Set("Upload-Defer-Length", "1")
	} else {
		h.Set("Upload-Length", strconv.FormatInt(u.Length, 10))
	}

	if u.Metadata != "" {
		h.Set("Upload-Metadata", u.Metadata)
	}
}

// OverrideMethod replaces a request's method by the one in the [MethodOverride] header, as the
// protocol requires.
func OverrideMethod(r *http.Request) {
	if method := r.Header.Get(MethodOverride); method != "" {
		r.Method = strings.ToUpper(method)
	}
}

// ParseMetadata returns the pairs in an Upload-Metadata header: distinct keys, and base64 values,
// which may be missing. It fails with [ErrMetadata].
func ParseMetadata(header string) (map[string]string, error) {
	metadata := map[string]string{}
	if header == "" {
		return metadata, nil
	}
	if len(header) > MaxMetadata {
		return nil, ErrMetadata
	}

	for pair := range strings.SplitSeq(header, ",") {
		key, text, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(text)
		if _, exists := metadata[key]; err != nil || exists || key == "" || !isASCII(key) {
			return nil, ErrMetadata
		}

		metadata[key] = string(value)
	}

	return metadata, nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}
