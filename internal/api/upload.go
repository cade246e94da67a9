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
	uploadLull = 60 * time.Second // for the client to take the next piece of an answer
	mostParts  = 10
	mostName   = 4 << 10  // bytes of a name's part; how long a name may be is the file's own rule
	mostHeads  = 64 << 10 // bytes of all that is not the file, once before it and once behind
	unbounded  = -1
	pieceSize  = 64 << 10 // bytes of a body that are read at a time
)

// Upload is embedded in the input of an operation that takes a file as multipart/form-data, which its handler
// reads as it arrives.
type Upload struct {
	parts *multipart.Reader
	body  *arriving
	part  *multipart.Part // the file's, once open has found it
	end   error           // how the body ended; nil before that
	scale scale
}

// begin takes the body of a request, and reads none of it.
func (u *Upload) begin(w http.ResponseWriter, r *http.Request) error {
	u.body = newArriving(w, r, mostHeads)
	r.Body = struct { // the multipart reader would read 4 KiB at a time
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

// open reads the body up to its file. It returns the name and the media type that the client gives to the file.
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

			u.part, u.body.left = part, unbounded // how large the file may be is the container's rule
			mimeType = part.Header.Get("Content-Type")
			u.scale.names(name, mimeType)

			return name, mimeType, nil
		}
	}

	return "", "", tooManyParts()
}

// Read reads the file, and at its end the rest of the body: only a body that is whole makes a file.
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

// rest reads what comes behind the file. It returns io.EOF if that is as it should be.
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

// broken says that a multipart body can't be read to its end.
func broken(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return tooSlow(err)
	}

	return fault.New(fault.Invalid, "the body is not whole, or no multipart/form-data").
		WithCode("malformed_multipart").Because(err)
}

// incomplete says that a body that is the file itself can't be read to its end.
func incomplete(err error) error {
	if errors.Is(err, httpx.ErrTooSlow) {
		return tooSlow(err)
	}
	return fault.New(fault.Invalid, "the body did not arrive").WithCode("incomplete_body").Because(err)
}

func tooSlow(err error) error {
	return fault.New(fault.TooSlow, "the body arrives too slowly").Because(err)
}

// arriving is a body that is read for as long as it arrives at the least rate. The multipart reader would keep heads of
// megabytes; what stands beside the file is bounded here.
type arriving struct {
	*httpx.PacedReader
	control *http.ResponseController
	left    int // bytes that may still come, or unbounded
}

// newArriving returns the body of a request, which it replaces.
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
