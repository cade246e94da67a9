package httpx

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Download responds with a file or a byte range. Its headers keep browsers from treating the file
// as a page from this origin.
type Download struct {
	Content      Content
	MimeType     string
	Size         int64  // bytes
	SHA256       []byte // SHA-256 sum, also if only a range is sent
	ETag         string // strong, with its quotes
	Modified     time.Time
	CacheControl string
	Encoding     string // Content-Encoding; "" means none
	Language     string // Content-Language; "" means none

	// Name is the name under which browsers save the file, without folders; "" leaves it to them.
	Name string
	// Attachment makes browsers save the file. Otherwise they display it if its type is harmless.
	Attachment bool
	// Refuse writes the failure for a range (416) or a condition (412).
	Refuse func(w http.ResponseWriter, status int)
}

// Content is a file's content.
type Content interface {
	io.ReadSeekCloser
	// Send writes the next n bytes to w, with sendfile if possible.
	Send(w io.Writer, n int64) (int64, error)
	// Err returns the failure after which the last bytes were withheld, or nil.
	Err() error
}

// Sandbox is the Content-Security-Policy of every response whose content users chose: what browsers
// run in it has an origin of its own. It never acts on the origin of the console, and gets none of
// its cookies.
const Sandbox = "default-src 'none'; sandbox"

// inlineTypes lists the media types that browsers may display; all others are saved.
var inlineTypes = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain", "audio/", "video/",
	"application/pdf",
}

const (
	maxRangeLength = 200 // longer Range headers are ignored, which RFC 9110 allows

	// dateResolution is the resolution of Last-Modified plus a margin. A younger file may be
	// replaced within the same second, so its date must not validate a range.
	dateResolution = 2 * time.Second
)

// ServeHTTP writes the file or the requested range, and closes the content.
func (d Download) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.Content.Close()

	disposition := "attachment"
	if !d.Attachment && slices.ContainsFunc(inlineTypes, func(prefix string) bool {
		return strings.HasPrefix(d.MimeType, prefix)
	}) {
		disposition = "inline"
	}
	if d.Name != "" {
		disposition += "; " + fileNameParam(d.Name)
	}

	h := w.Header()
	h.Set("Content-Type", d.MimeType)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", Sandbox)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", d.CacheControl)
	h.Set("ETag", d.ETag)
	h.Set("Last-Modified", lastModified(d.Modified)) // young files have it too: clients rely on it
	for name, value := range map[string]string{"Content-Encoding": d.Encoding, "Content-Language": d.Language} {
		if value != "" {
			h.Set(name, value)
		}
	}
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(d.SHA256)+":")

	ServeContent(w, r, d.Content, d.Size, d.Modified, d.Refuse)
}

// lastModified formats a modification time. A time in the future, by another clock, becomes now.
func lastModified(at time.Time) string {
	if now := time.Now(); at.After(now) {
		at = now
	}
	return at.UTC().Format(http.TimeFormat)
}

// ServeContent is [http.ServeContent] for a content of size bytes. refuse writes the failure for a
// range (416) or a condition (412). If the content has changed, the response is aborted before its
// end.
func ServeContent(
	w http.ResponseWriter, r *http.Request, c Content, size int64, mtime time.Time,
	refuse func(w http.ResponseWriter, status int),
) {
	if ranges := rangeOf(r, size); ranges == "" {
		r.Header.Del("Range")
	} else {
		r.Header.Set("Range", ranges)
	}

	if time.Since(mtime) < dateResolution {
		mtime = time.Time{} // suppresses Last-Modified and its conditions
	}

	http.ServeContent(&rangeWriter{ResponseWriter: NewPacedWriter(w), size: size, refuse: refuse}, r, "", mtime, c)
	if err := c.Err(); err != nil {
		From(r.Context()).Err = err
		panic(http.ErrAbortHandler) // Content withheld the last bytes, so no client takes the file for complete
	}
}

// rangeOf returns the requested range in the syntax that http.ServeContent accepts, or "" to ignore
// it (RFC 9110, 14.2). Ranges apply to GET and to bytes only, and never to an empty file: no
// Content-Range can describe a part.
func rangeOf(r *http.Request, size int64) string {
	text := r.Header.Get("Range")
	unit, ranges, _ := strings.Cut(text, "=")
	if r.Method != http.MethodGet || size == 0 || len(text) > maxRangeLength || !strings.EqualFold(unit, "bytes") {
		return ""
	}

	if zeros, ok := strings.CutPrefix(ranges, "-"); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		ranges = strconv.FormatInt(size, 10) + "-" // the last 0 bytes: an unsatisfiable range
	}

	return "bytes=" + hugeNumber.ReplaceAllLiteralString(ranges, "999999999999999999")
}

// hugeNumber matches offsets beyond any file's end, which overflow in net/http.
var hugeNumber = regexp.MustCompile(`[1-9][0-9]{18,}`)

// fileNameParam returns the Content-Disposition parameters for a file name: filename alone if it is
// plain ASCII, else an ASCII fallback and filename* (RFC 6266, RFC 8187).
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

// rangeWriter replaces the plain-text responses of net/http for failed ranges and conditions.
type rangeWriter struct {
	http.ResponseWriter
	size    int64 // bytes in the whole file
	refuse  func(w http.ResponseWriter, status int)
	discard bool // the failure was written; drop the file's bytes
}

// WriteHeader writes the status, or a failure.
func (w *rangeWriter) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable && status != http.StatusPreconditionFailed {
		if status == http.StatusOK { // net/http leaves out the length of encoded bytes
			w.Header().Set("Content-Length", strconv.FormatInt(w.size, 10))
		}
		w.ResponseWriter.WriteHeader(status)
		return
	}

	w.discard = true
	for _, name := range []string{"Content-Disposition", "Content-Encoding", "Content-Language",
		"Expires", "Accept-Ranges", "Last-Modified", "Repr-Digest", "ETag"} {
		w.Header().Del(name) // they describe the file
	}

	w.refuse(w.ResponseWriter, status)
}

// Write writes file bytes.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.discard {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets the kernel send a file where possible, without copying it through this process.
func (w *rangeWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.discard {
		return io.Copy(io.Discard, r)
	}

	if part, ok := r.(*io.LimitedReader); ok { // the reader that http.ServeContent passes
		if content, ok := part.R.(Content); ok {
			return content.Send(w.ResponseWriter, part.N)
		}
	}

	return io.Copy(w.ResponseWriter, r)
}
