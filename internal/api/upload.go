package api

import (
	"bufio"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"socle/internal/fault"
	"socle/internal/httpx"
)

const (
	clientWriteTimeout = 60 * time.Second // for the client to accept one piece of a response
	maxParts           = 10
	maxNameBytes       = 4 << 10  // bytes of the part with the file name; the file's rules limit the name itself
	maxFormOverhead    = 64 << 10 // bytes of everything except the file, once before and once after it
	unlimited          = -1
	readBufferSize     = 64 << 10 // read size of bodies, in bytes
)

// Upload is embedded in the input of an operation that takes a file as multipart/form-data. The
// handler reads the file while it arrives.
type Upload struct {
	parts   *multipart.Reader
	body    *pacedBody
	part    *multipart.Part // of the file, set by open
	readErr error           // final result of Read; nil before the end
	digest  bodyDigest
}

// begin prepares the body and reads none of it.
func (u *Upload) begin(w http.ResponseWriter, r *http.Request) error {
	u.body = newPacedBody(w, r, maxFormOverhead)
	r.Body = struct { // multipart.Reader would read 4 KiB at a time
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(u.body, readBufferSize), u.body}

	var err error
	if u.parts, err = r.MultipartReader(); err != nil {
		return fault.OnField(fault.Invalid, "Content-Type", "invalid_format",
			"must be multipart/form-data with a boundary").WithCause(err)
	}

	return nil
}

// open reads the body up to its file. It returns the file name and the media type that the client
// sent.
func (u *Upload) open() (name, mimeType string, err error) {
	named := false
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
			if named {
				return "", "", errOutOfOrder("full_file_name")
			}

			text, err := io.ReadAll(io.LimitReader(part, maxNameBytes))
			if err != nil {
				return "", "", malformedMultipart(err)
			}

			name, named = string(text), true
		case "file":
			if !named {
				name = part.FileName() // without folders
			}

			u.part, u.body.remaining = part, unlimited // the container limits the size of the file
			mimeType = part.Header.Get("Content-Type")
			u.digest.writeNames(name, mimeType)

			return name, mimeType, nil
		}
	}

	return "", "", errTooManyParts()
}

// Read reads the file and, at its end, the rest of the body: a truncated body must not create a
// file.
func (u *Upload) Read(b []byte) (int, error) {
	if u.readErr != nil {
		return 0, u.readErr
	}

	n, err := u.part.Read(b)
	u.digest.writeBytes(b[:n])

	switch {
	case err == io.EOF:
		u.readErr = u.readTrailer()
	case err != nil:
		u.readErr = malformedMultipart(err)
	}

	return n, u.readErr
}

// readTrailer reads the parts after the file. It returns io.EOF if the body is valid.
func (u *Upload) readTrailer() error {
	u.body.remaining = maxFormOverhead

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

	return errTooManyParts()
}

func errOutOfOrder(part string) error {
	return fault.OnField(fault.Unprocessable, part, "out_of_order", "must come once, full_file_name before file")
}

func errTooManyParts() error {
	return fault.New(fault.Invalid, "the body has too many parts").WithCode("malformed_multipart")
}

// malformedMultipart returns the failure of a truncated or malformed multipart body.
func malformedMultipart(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return errTooSlow(err)
	}

	return fault.New(fault.Invalid, "the body is truncated or not valid multipart/form-data").
		WithCode("malformed_multipart").WithCause(err)
}

// incompleteBody returns the failure of a truncated raw body.
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

// newPacedBody wraps the body of a request and replaces it.
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
