package api

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"socle/internal/httpx"
	"socle/internal/object"
)

// download answers with a file's bytes. Whatever they are, a browser must not take them for a page of ours.
type download struct {
	file    object.File
	content *object.Content
}

// inline are the types that a browser may show in place; it offers all others for saving.
var inline = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain", "audio/", "video/",
	"application/pdf",
}

const (
	mostRange = 200 // bytes of a Range header; a longer one is ignored, as a server may

	// oneDate is for how long a file may still be replaced by one that was modified in the same second, by which no part of it may be taken for one of this.
	oneDate = 2 * time.Second
)

// ServeHTTP writes the file, or the range of it that is asked for.
func (d download) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.content.Close()

	disposition := "attachment"
	if slices.ContainsFunc(inline, func(prefix string) bool { return strings.HasPrefix(d.file.MimeType, prefix) }) {
		disposition = "inline"
	}

	h := w.Header()
	h.Set("Content-Type", d.file.MimeType)
	h.Set("Content-Disposition", disposition+"; "+fileNameParam(path.Base(d.file.FullFileName)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "private, no-cache") // who may read it is asked each time
	h.Set("ETag", d.file.ETag())
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(d.file.SHA256)+":")

	if span := d.span(r); span == "" {
		r.Header.Del("Range")
	} else {
		r.Header.Set("Range", span)
	}

	modified := d.file.UpdatedAt
	if time.Since(modified) < oneDate {
		modified = time.Time{} // none is said, and none compared
	}

	http.ServeContent(&ranged{ResponseWriter: httpx.NewPacedWriter(w), request: r}, r, "", modified, d.content)
	if err := d.content.Err(); err != nil {
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler) // the end of the file was held back: nobody takes what was sent for the whole
	}
}

// span returns the range that is asked for as http.ServeContent reads it; "" if there is none to look at (RFC 9110, 14.2): of another method than GET it
// means nothing, nor in a unit that is not known here.
func (d download) span(r *http.Request) string {
	text := r.Header.Get("Range")
	unit, set, _ := strings.Cut(text, "=")
	if r.Method != http.MethodGet || len(text) > mostRange || !strings.EqualFold(unit, "bytes") {
		return ""
	}

	if zeros, ok := strings.CutPrefix(set, "-"); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		set = strconv.FormatInt(d.file.Size, 10) + "-" // the last 0 bytes are none: a range that nothing satisfies
	}

	return "bytes=" + hugeNumber.ReplaceAllLiteralString(set, "999999999999999999")
}

// hugeNumber is one that is beyond the end of any file.
var hugeNumber = regexp.MustCompile(`[1-9][0-9]{18,}`)

// fileNameParam returns the parameters that name a file: as it is if every client reads it alike, else once in ASCII for
// old clients, and once in full (RFC 6266, RFC 8187).
func fileNameParam(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("\"\\%", r) {
			return '_'
		}
		return r
	}, name)
	if plain == name {
		return `filename="` + name + `"`
	}

	var full strings.Builder
	for i := range len(name) {
		if c := name[i]; c < utf8.RuneSelf &&
			(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0) {
			full.WriteByte(c)
		} else {
			fmt.Fprintf(&full, "%%%02X", c)
		}
	}

	return `filename="` + plain + `"; filename*=UTF-8''` + full.String()
}

// ranged answers with an envelope where net/http refuses a range or a condition in plain text.
type ranged struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

func (w *ranged) WriteHeader(status int) {
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		w.refuse(status, "invalid_range", "the file has no such range")
	case http.StatusPreconditionFailed:
		w.refuse(status, "changed", "the file is not the one that the request counts on")
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

// refuse takes back what was said of the file.
func (w *ranged) refuse(status int, code, detail string) {
	w.refused = true

	for _, name := range []string{"Content-Disposition", "Accept-Ranges", "Last-Modified", "Repr-Digest", "ETag"} {
		w.Header().Del(name)
	}

	Fail(w.ResponseWriter, w.request, status, code, detail)
}

func (w *ranged) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets a file go to the connection without passing through this process, where it may.
func (w *ranged) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return io.Copy(io.Discard, r)
	}

	if part, ok := r.(*io.LimitedReader); ok { // so http.ServeContent asks for it
		if content, ok := part.R.(*object.Content); ok {
			return content.Send(w.ResponseWriter, part.N)
		}
	}

	return io.Copy(w.ResponseWriter, r)
}
