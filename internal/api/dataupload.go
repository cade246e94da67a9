package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"socle/internal/fault"
	"socle/internal/transfer"
)

// dataTypes maps media types to import formats; "" leaves the format open.
var dataTypes = map[string]string{"text/csv": transfer.CSV, "text/tab-separated-values": transfer.TSV,
	"application/x-ndjson": transfer.JSONL, "application/jsonl": transfer.JSONL,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": transfer.XLSX, "application/octet-stream": ""}

// dataExtensions maps file name extensions to import formats.
var dataExtensions = map[string]string{
	".csv": transfer.CSV, ".tsv": transfer.TSV, ".tab": transfer.TSV, ".jsonl": transfer.JSONL,
	".ndjson": transfer.JSONL, ".xlsx": transfer.XLSX,
}

// DataUpload is embedded in the input of an operation that takes a data file, as
// multipart/form-data or as the raw body.
type DataUpload struct {
	Upload
	media  string // media type of a raw body; "" for multipart/form-data
	length int64  // Content-Length of the request
}

func dataContent() map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{Type: huma.TypeObject,
		Required:   []string{"file"},
		Properties: map[string]*huma.Schema{"file": {Type: huma.TypeString, Format: "binary"}}}}}

	for media := range dataTypes {
		content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}

	return content
}

func (u *DataUpload) begin(w http.ResponseWriter, r *http.Request) error {
	u.length = r.ContentLength
	return u.Upload.begin(w, r)
}

func (u *DataUpload) beginRaw(w http.ResponseWriter, r *http.Request, media string) error {
	if _, ok := dataTypes[media]; !ok {
		return fault.OnField(fault.Invalid, "Content-Type", "unknown",
			"must be multipart/form-data, text/csv, text/tab-separated-values, application/x-ndjson, "+
				"application/octet-stream or the type of an XLSX workbook")
	}

	u.length, u.media = r.ContentLength, media
	u.body = newPacedBody(w, r, unlimited)

	return nil
}

// Read reads the file.
func (u *DataUpload) Read(b []byte) (int, error) {
	if u.media == "" {
		return u.Upload.Read(b)
	}

	n, err := u.body.Read(b)
	u.digest.writeBytes(b[:n])

	if err != nil && err != io.EOF {
		err = incompleteBody(err)
	}

	return n, err
}

// receive stores the whole file, so that no database connection waits for a slow client. name is
// the base name of the file without extension and may be empty. The caller closes the file.
func (u *DataUpload) receive(
	ctx context.Context, s *Server, format string,
) (file *os.File, name, foundFormat string, err error) {
	maxBytes, err := s.maxFileBytes(ctx)
	if err != nil {
		return nil, "", "", err
	}

	maxBytes = min(maxBytes, transfer.MaxFileBytes)
	tooLarge := fault.OnField(fault.TooLarge, "file", "too_large", "must be at most %d bytes", maxBytes)
	if u.length > maxBytes+maxFormOverhead {
		return nil, "", "", tooLarge
	}

	media := u.media
	if u.media == "" {
		if name, media, err = u.open(); err != nil {
			return nil, "", "", err
		}
	}

	extension := strings.ToLower(path.Ext(name))
	name = strings.TrimSuffix(path.Base(name), path.Ext(name))
	for _, guess := range []string{
		format, dataExtensions[extension], dataTypes[strings.TrimSpace(strings.Split(media, ";")[0])],
	} {
		if foundFormat == "" {
			foundFormat = guess
		}
	}

	if foundFormat == "" {
		return nil, "", "", fault.OnField(fault.Invalid, "format", "required",
			"is required, since neither the file's name nor its media type determines it")
	}

	if file, err = s.blobs.Scratch(); err != nil {
		return nil, "", "", err
	}

	n, err := io.Copy(file, io.LimitReader(u, maxBytes+1))
	if err == nil && n > maxBytes {
		err = tooLarge
	}

	if err == nil {
		err = errors.Join(ctx.Err(), u.extendDeadlines())
	}
	if err != nil {
		return nil, "", "", errors.Join(err, file.Close())
	}

	return file, name, foundFormat, nil
}

// extendDeadlines extends the connection's deadlines by the time that an import takes.
func (u *DataUpload) extendDeadlines() error {
	end := time.Now().Add(transfer.ImportTimeout + clientWriteTimeout)
	err := errors.Join(u.body.control.SetReadDeadline(end), u.body.control.SetWriteDeadline(end))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}

	return err
}
