package files

import (
	"net/http"
	"path"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
)

// download responds with a file's bytes.
type download struct {
	file    object.File
	content *object.Content
}

// ServeHTTP writes the file or the requested range.
func (d download) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpx.Download{
		Content: d.content, MimeType: d.file.MimeType, Size: d.file.Size, SHA256: d.file.SHA256, ETag: d.file.ETag(),
		Modified: d.file.UpdatedAt, Name: path.Base(d.file.FullFileName),
		CacheControl: "private, no-cache", // caches must revalidate, since access is checked each time
		Encoding:     d.file.Headers["Content-Encoding"], Language: d.file.Headers["Content-Language"],
		Refuse: func(w http.ResponseWriter, status int) {
			if status == http.StatusPreconditionFailed {
				operation.RespondFailure(w, r, status, "changed", "the file does not match the conditions of the request")
				return
			}

			operation.RespondFailure(w, r, status, "invalid_range", "the range is outside of the file")
		},
	}.ServeHTTP(w, r)
}
