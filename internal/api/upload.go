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
	uploadLull = 60 * time.Second // for the client to accept one piece of a response
	mostParts  = 10
	mostName   = 4 << 10  // bytes of the part with the file name; the file's rules limit the name itself
	mostHeads  = 64 << 10 // bytes of everything except the file, once before and once after it
	unbounded  = -1
	pieceSize  = 64 << 10 // read size of bodies, in bytes
)

// Upload is embedded in the input of an operation that takes a file as multipart/form-data. The
// handler reads the file while it arrives.
type Upload struct {
	parts *multipart.Reader
	body  *arriving
	part  *multipart.Part // of the file, set by open
	end   error           // final result of Read; nil before the end
	scale scale
}

// begin prepares the body and reads none of it.
func (u *Upload) begin(w http.ResponseWriter, r *http.Request) error {
	u.body = newArriving(w, r, mostHeads)
	r.Body = struct { // multipart.Reader would read 4 KiB at a time
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(u.body, pieceSize), u.body}

	var err error
	if u.parts, err = r.MultipartReader(); err != nil {
		return fault.OnField(fault.Invalid, "Content-Type", "invalid_format",
			"must be multipart/form-data with a boundary").Because(err)
	}

	return nil
}

// open reads the body up to its file. It returns the file name and the media type that the client
// sent.
func (u *Upload) open() (name, mimeType string, err error) {
	named := false
	for range mostParts {
		part, err := u.parts.NextRawPart()
		if err == io.EOF {
			return "", "", fault.OnField(fault.Unprocessable, "file", "required", "is required")
		}
		if err != nil {
			return "", "", broken(err)
		}

		switch part.FormName() {
		case "full_file_name":
			if named {
				return "", "", outOfOrder("full_file_name")
			}

			text, err := io.ReadAll(io.LimitReader(part, mostName))
			if err != nil {
				return "", "", broken(err)
			}

			name, named = string(text), true
		case "file":
			if !named {
				name = part.FileName() // without folders
			}

			u.part, u.body.left = part, unbounded // the container limits the size of the file
			mimeType = part.Header.Get("Content-Type")
			u.scale.names(name, mimeType)

			return name, mimeType, nil
		}
	}

	return "", "", tooManyParts()
}

// Read reads the file and, at its end, the rest of the body: a truncated body must not create a
// file.
func (u *Upload) Read(b []byte) (int, error) {
	if u.end != nil {
		return 0, u.end
	}

	n, err := u.part.Read(b)
	u.scale.bytes(b[:n])

	switch {
	case err == io.EOF:
		u.end = u.rest()
	case err != nil:
		u.end = broken(err)
	}

	return n, u.end
}

// rest reads the parts after the file. It returns io.EOF if the body is valid.
func (u *Upload) rest() error {
	u.body.left = mostHeads

	for range mostParts {
		part, err := u.parts.NextRawPart()
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return broken(err)
		}

		if name := part.FormName(); name == "full_file_name" || name == "file" {
			return outOfOrder(name)
		}
	}

	return tooManyParts()
}

func outOfOrder(part string) error {
	return fault.OnField(fault.Unprocessable, part, "out_of_order", "must come once, full_file_name before file")
}

func tooManyParts() error {
	return fault.New(fault.Invalid, "the body has too many parts").WithCode("malformed_multipart")
}

// broken returns the failure of a truncated or malformed multipart body.
func broken(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return tooSlow(err)
	}

	return fault.New(fault.Invalid, "the body is not whole, or no multipart/form-data").
		WithCode("malformed_multipart").Because(err)
}

// incomplete returns the failure of a truncated raw body.
func incomplete(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return tooSlow(err)
	}
	return fault.New(fault.Invalid, "the body did not arrive").WithCode("incomplete_body").Because(err)
}

func tooSlow(err error) error {
	return fault.New(fault.TooSlow, "the body arrives too slowly").Because(err)
}

// arriving is a body that must arrive at a minimum rate. It also limits the bytes beside the file,
// since the multipart reader accepts headers of several megabytes.
type arriving struct {
	*httpx.PacedReader
	control *http.ResponseController
	left    int // remaining bytes, or unbounded
}

// newArriving wraps the body of a request and replaces it.
func newArriving(w http.ResponseWriter, r *http.Request, left int) *arriving {
	a := &arriving{PacedReader: httpx.NewPacedReader(w, r), control: http.NewResponseController(w), left: left}
	r.Body = a

	return a
}

func (a *arriving) Read(b []byte) (int, error) {
	if a.left == 0 {
		return 0, errors.New("too many bytes beside the file")
	}

	if a.left > 0 {
		b = b[:min(len(b), a.left)]
	}

	n, err := a.PacedReader.Read(b)
	if a.left > 0 {
		a.left -= n
	}

	return n, err
}
