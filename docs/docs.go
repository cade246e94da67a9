// Package docs has the OpenAPI document of the platform API for programs without the server.
package docs

import _ "embed" // of the document

// OpenAPI is the OpenAPI document.
//
//go:embed openapi.json
var OpenAPI []byte
