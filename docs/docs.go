// Package docs has the documents that are part of binaries: the OpenAPI document of the platform API,
// for programs without the server, and the guides that the server shows.
package docs

import "embed"

// OpenAPI is the OpenAPI document.
//
//go:embed openapi.json
var OpenAPI []byte

// Guides has the guides in Markdown.
//
//go:embed api.md cli.md operations.md rest.md guides/*.md
var Guides embed.FS
