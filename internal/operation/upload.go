package operation

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

const (
	// MaxFormOverhead is the maximum number of bytes in a multipart body except the file, once
	// before and once after it.
	MaxFormOverhead = 64 << 10

	maxParts       = 10
	maxNameBytes   = 4 << 10 // bytes in the file-name part; the file's rules limit the name itself
	unlimited      = -1
	readBufferSize = 64 << 10 // bytes per read from a body

	multipartType = "multipart/form-data"
)

// Body is how an operation takes files. The zero Body takes none: the body is JSON if the input has
// a field Body.
type Body struct {
	content map[string]*huma.MediaType // for the OpenAPI document

	// begin prepares the body for an input that embeds [Upload], and reads none of it.
	begin func(u *Upload, w http.ResponseWriter, r *http.Request) error

	member    string // name of the first part for an input that embeds [AttachedFiles]
	hasDigest bool   // a repeated request with an Idempotency-Key must send the same files
}

// MultipartFile is a file in multipart/form-data, and before it optionally its full name. The input
// embeds [Upload].
var MultipartFile = Body{content: map[string]*huma.MediaType{multipartType: fileForm("full_file_name")},
	begin: (*Upload).beginMultipart, hasDigest: true}

// RawFile is a body that is a file with any type. The input embeds [Upload].
var RawFile = Body{content: map[string]*huma.MediaType{"*/*": {Schema: binarySchema}}, begin: (*Upload).beginRaw}

// FileOfTypes is a file in multipart/form-data, or a body that is a file with one of the media
// types. description names the accepted types in an error. The input embeds [Upload].
func FileOfTypes(description string, types ...string) Body {
	content := map[string]*huma.MediaType{multipartType: fileForm()}
	for _, media := range types {
		content[media] = &huma.MediaType{Schema: binarySchema}
	}

	begin := func(u *Upload, w http.ResponseWriter, r *http.Request) error {
		media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || media == multipartType {
			return u.beginMultipart(w, r)
		}
		if !slices.Contains(types, media) {
			return fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be %s", description)
		}

		u.start(w, r, unlimited)
		u.mimeType = media

		return nil
	}

	return Body{content: content, hasDigest: true, begin: begin}
}

var binarySchema = &huma.Schema{Type: huma.TypeString, Format: "binary"}

// fileForm describes a form with the part file and optional text parts.
func fileForm(texts ...string) *huma.MediaType {
	s := &huma.Schema{Type: huma.TypeObject, Required: []string{"file"},
		Properties: map[string]*huma.Schema{"file": binarySchema}}
	for _, name := range texts {
		s.Properties[name] = &huma.Schema{Type: huma.TypeString}
	}

	return &huma.MediaType{Schema: s}
}

// Upload is embedded in the input of an operation that takes a file. The handler reads the file
// while it arrives.
type Upload struct {
	body     *pacedBody
	length   int64             // announced body length; 0 if unknown
	mimeType string            // raw file's type
	parts    *multipart.Reader // nil: the body is the file
	part     *multipart.Part   // part with the file, set by Open
	readErr  error             // final read result; nil before the end
	digest   bodyDigest
}

func (u *Upload) start(w http.ResponseWriter, r *http.Request, remaining int) {
	u.body, u.length = newPacedBody(w, r, remaining), max(r.ContentLength, 0)
}

func (u *Upload) beginMultipart(w http.ResponseWriter, r *http.Request) error {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != multipartType || len(params["boundary"]) > 70 {
		return fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be multipart/form-data")
	}

	u.start(w, r, MaxFormOverhead)
	r.Body = struct { // multipart.Reader would read 4 KiB at a time
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(u.body, readBufferSize), u.body}

	u.parts, err = multipartReader(r)
	return err
}

func (u *Upload) beginRaw(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Content-Range") != "" { // a partial body, which must not replace the whole file
		return fault.OnField(fault.Invalid, "Content-Range", "not_applicable",
			"is not supported: the body must be the whole file")
	}

	u.mimeType = r.Header.Get("Content-Type")
	switch media, _, _ := mime.ParseMediaType(u.mimeType); media {
	case multipartType:
		return fault.OnField(fault.Invalid, "Content-Type", "unknown",
			"must be the type of the file: the body is the file, not a form")
	case "application/x-www-form-urlencoded": // curl's default
		u.mimeType = ""
	}

	u.start(w, r, unlimited)

	return nil
}

// Length returns the announced length of the whole body in bytes, or 0 if it is unknown.
func (u *Upload) Length() int64 { return u.length }

// MimeType returns a raw file's media type as the client sent it, or "".
func (u *Upload) MimeType() string { return u.mimeType }

// Open reads the body up to its file. It returns the media type that the client sent, and the file
// name in a multipart body.
func (u *Upload) Open() (name, mimeType string, err error) {
	if u.parts == nil {
		return "", u.mimeType, nil
	}

	hasName := false
	for range maxParts {
		part, err := u.parts.NextRawPart()
		if err == io.EOF {
			return "", "", fault.OnField(fault.Unprocessable, "file", "required", "is required")
		}
		if err != nil {
			return "", "", malformedMultipart(err)
		}

		switch part.FormName() {
		case "full_file_name":
			if hasName {
				return "", "", errOutOfOrder("full_file_name")
			}

			text, err := io.ReadAll(io.LimitReader(part, maxNameBytes))
			if err != nil {
				return "", "", malformedMultipart(err)
			}

			name, hasName = string(text), true
		case "file":
			if !hasName {
				name = part.FileName() // without folders
			}

			u.part, u.body.remaining = part, unlimited // the container limits the file size
			mimeType = part.Header.Get("Content-Type")
			u.digest.writeNames(name, mimeType)

			return name, mimeType, nil
		}
	}

	return "", "", tooManyParts()
}

// Read reads the file and, at its end, the rest of the body: a truncated body must not create a
// file.
func (u *Upload) Read(b []byte) (int, error) {
	if u.readErr != nil {
		return 0, u.readErr
	}

	source := io.Reader(u.body)
	if u.parts != nil {
		source = u.part
	}

	n, err := source.Read(b)
	u.digest.writeBytes(b[:n])

	switch {
	case err == io.EOF && u.parts != nil:
		err = u.readTrailer()
	case err != nil && err != io.EOF && u.parts != nil:
		err = malformedMultipart(err)
	case err != nil && err != io.EOF:
		err = incompleteBody(err)
	}

	u.readErr = err
	return n, err
}

// ExtendDeadlines lets the connection live for d more, for work after the file has arrived.
func (u *Upload) ExtendDeadlines(d time.Duration) error {
	end := time.Now().Add(d)
	err := errors.Join(u.body.control.SetReadDeadline(end), u.body.control.SetWriteDeadline(end))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}

	return err
}

// readTrailer reads the parts after the file. It returns io.EOF if the body is valid.
func (u *Upload) readTrailer() error {
	u.body.remaining = MaxFormOverhead

	for range maxParts {
		part, err := u.parts.NextRawPart()
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return malformedMultipart(err)
		}

		if name := part.FormName(); name == "full_file_name" || name == "file" {
			return errOutOfOrder(name)
		}
	}

	return tooManyParts()
}

func multipartReader(r *http.Request) (*multipart.Reader, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, fault.OnField(fault.Invalid, "Content-Type", "invalid_format",
			"must be multipart/form-data with a boundary").WithCause(err)
	}

	return parts, nil
}

func errOutOfOrder(part string) error {
	return fault.OnField(fault.Unprocessable, part, "out_of_order", "must come once, full_file_name before file")
}

// tooManyParts returns the failure for a body with more parts than the operation takes.
func tooManyParts() error {
	return fault.New(fault.Invalid, "the body has too many parts").WithCode("malformed_multipart")
}

// malformedMultipart returns the failure for a truncated or malformed multipart body.
func malformedMultipart(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return errTooSlow(err)
	}

	return fault.New(fault.Invalid, "the body is truncated or not valid multipart/form-data").
		WithCode("malformed_multipart").WithCause(err)
}

// incompleteBody returns the failure for a truncated raw body.
func incompleteBody(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return errTooSlow(err)
	}
	return fault.New(fault.Invalid, "the body is incomplete").WithCode("incomplete_body").WithCause(err)
}

func errTooSlow(err error) error {
	return fault.New(fault.TooSlow, "the body arrives too slowly").WithCause(err)
}

// pacedBody is a body that must arrive at a minimum rate. It also limits the bytes beside the file,
// since the multipart reader accepts headers of several megabytes.
type pacedBody struct {
	*httpx.PacedReader
	control   *http.ResponseController
	remaining int // remaining bytes, or unlimited
}

// newPacedBody wraps and replaces a request's body.
func newPacedBody(w http.ResponseWriter, r *http.Request, remaining int) *pacedBody {
	a := &pacedBody{
		PacedReader: httpx.NewPacedReader(w, r),
		control:     http.NewResponseController(w),
		remaining:   remaining,
	}
	r.Body = a

	return a
}

func (a *pacedBody) Read(b []byte) (int, error) {
	if a.remaining == 0 {
		return 0, errors.New("form overhead too large")
	}

	if a.remaining > 0 {
		b = b[:min(len(b), a.remaining)]
	}

	n, err := a.PacedReader.Read(b)
	if a.remaining > 0 {
		a.remaining -= n
	}

	return n, err
}
