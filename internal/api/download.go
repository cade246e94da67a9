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

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
)

// download responds with the bytes of a file. Its headers keep browsers from treating the file as a
// page of this origin.
type download struct {
	file    object.File
	content *object.Content
}

// inlineTypes lists the media types that browsers may display; all others are saved.
var inlineTypes = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain", "audio/", "video/",
	"application/pdf",
}

const (
	maxRangeLength = 200 // bytes of a Range header; longer ones are ignored, which RFC 9110 allows

	// dateResolution is the resolution of Last-Modified plus a margin. A younger file may be
	// replaced within the same second, so its date must not validate a range.
	dateResolution = 2 * time.Second
)

// ServeHTTP writes the file or the requested range.
func (d download) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.content.Close()

	disposition := "attachment"
	if slices.ContainsFunc(inlineTypes, func(prefix string) bool {
		return strings.HasPrefix(d.file.MimeType, prefix)
	}) {
		disposition = "inline"
	}

	h := w.Header()
	h.Set("Content-Type", d.file.MimeType)
	h.Set("Content-Disposition", disposition+"; "+fileNameParam(path.Base(d.file.FullFileName)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "private, no-cache") // caches must revalidate, since access is checked each time
	h.Set("ETag", d.file.ETag())
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(d.file.SHA256)+":")

	if requested := d.rangeOf(r); requested == "" {
		r.Header.Del("Range")
	} else {
		r.Header.Set("Range", requested)
	}

	modified := d.file.UpdatedAt
	if time.Since(modified) < dateResolution {
		modified = time.Time{} // suppresses Last-Modified and its conditions
	}

	http.ServeContent(&rangeWriter{ResponseWriter: httpx.NewPacedWriter(w), request: r}, r, "", modified, d.content)
	if err := d.content.Err(); err != nil {
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler) // Content withheld the last bytes, so no client takes the file for complete
	}
}

// rangeOf returns the requested range in the syntax that http.ServeContent accepts, or "" to ignore
// it (RFC 9110, 14.2). Ranges apply to GET and to bytes only.
func (d download) rangeOf(r *http.Request) string {
	text := r.Header.Get("Range")
	unit, ranges, _ := strings.Cut(text, "=")
	if r.Method != http.MethodGet || len(text) > maxRangeLength || !strings.EqualFold(unit, "bytes") {
		return ""
	}

	if zeros, ok := strings.CutPrefix(ranges, "-"); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		ranges = strconv.FormatInt(d.file.Size, 10) + "-" // the last 0 bytes: an unsatisfiable range
	}

	return "bytes=" + hugeNumber.ReplaceAllLiteralString(ranges, "999999999999999999")
}

// hugeNumber matches offsets beyond the end of any file, which overflow in net/http.
var hugeNumber = regexp.MustCompile(`[1-9][0-9]{18,}`)

// fileNameParam returns the parameters of Content-Disposition that name a file: filename alone if
// it is plain ASCII, else an ASCII fallback and filename* (RFC 6266, RFC 8187).
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
		c := name[i]
		alphanumeric := (c|0x20 >= 'a' && c|0x20 <= 'z') || (c >= '0' && c <= '9')

		if c < utf8.RuneSelf && (alphanumeric || strings.IndexByte("!#$&+-.^_`|~", c) >= 0) {
			full.WriteByte(c)
		} else {
			fmt.Fprintf(&full, "%%%02X", c)
		}
	}

	return `filename="` + plain + `"; filename*=UTF-8''` + full.String()
}

// rangeWriter replaces the plain-text responses of net/http for failed ranges and conditions by an
// envelope.
type rangeWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		w.refuse(status, "invalid_range", "the range is outside of the file")
	case http.StatusPreconditionFailed:
		w.refuse(status, "changed", "the file does not match the conditions of the request")
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

// refuse removes the headers that describe the file and writes a failure.
func (w *rangeWriter) refuse(status int, code, detail string) {
	w.refused = true

	for _, name := range []string{"Content-Disposition", "Accept-Ranges", "Last-Modified", "Repr-Digest", "ETag"} {
		w.Header().Del(name)
	}

	operation.RespondFailure(w.ResponseWriter, w.request, status, code, detail)
}

func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets the kernel send a file where possible, without copying it through this process.
func (w *rangeWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return io.Copy(io.Discard, r)
	}

	if part, ok := r.(*io.LimitedReader); ok { // the reader that http.ServeContent passes
		if content, ok := part.R.(*object.Content); ok {
			return content.Send(w.ResponseWriter, part.N)
		}
	}

	return io.Copy(w.ResponseWriter, r)
}
