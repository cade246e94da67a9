// Package console has the built web console in binaries, as Vite writes it to dist: index.html, and
// assets with hashed names. Text files are there three times: plain, and compressed by brotli (.br)
// and gzip (.gz). `make console` builds them, package internal/console serves them.
package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the files of the built console.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("console: " + err.Error()) // the name is valid
	}

	return files
}
