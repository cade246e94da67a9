package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
)

// docsPolicy allows the API reference its own script and style, by hash, and requests to this
// server. It forbids everything else, so injected markup stays inert.
var docsPolicy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'" +
	"; frame-ancestors 'none'; script-src '" + cspHash(docsPage, "script") +
	"'; style-src '" + cspHash(docsPage, "style") + "'"

// cspHash returns the CSP hash of the content of the page's only element with this tag.
func cspHash(page []byte, tag string) string {
	_, rest, opened := bytes.Cut(page, []byte("<"+tag+">"))
	content, _, closed := bytes.Cut(rest, []byte("</"+tag+">"))
	if !opened || !closed {
		panic("server: the API reference has no " + tag)
	}

	sum := sha256.Sum256(content)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
