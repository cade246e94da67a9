package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
)

// docsPolicy lets the API reference run its own script and style, known by their hashes, read this server's
// document, and nothing else: whatever gets into the page from elsewhere stays dead text.
var docsPolicy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
	"; script-src '" + hashOf(docsPage, "script") + "'; style-src '" + hashOf(docsPage, "style") + "'"

// hashOf returns the hash, as a policy has it, of what stands in the page's one element of this tag.
func hashOf(page []byte, tag string) string {
	_, rest, opened := bytes.Cut(page, []byte("<"+tag+">"))
	content, _, closed := bytes.Cut(rest, []byte("</"+tag+">"))
	if !opened || !closed {
		panic("server: the API reference has no " + tag)
	}

	sum := sha256.Sum256(content)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
