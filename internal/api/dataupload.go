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

// dataEndings maps file name extensions to import formats.
var dataEndings = map[string]string{
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
			"must be multipart/form-data, text/csv, text/tab-separated-values, application/x-ndjson, a workbook's or application/octet-stream")
	}

	u.length, u.media = r.ContentLength, media
	u.body = newArriving(w, r, unbounded)

	return nil
}

// Read reads the file.
func (u *DataUpload) Read(b []byte) (int, error) {
	if u.media == "" {
		return u.Upload.Read(b)
	}

	n, err := u.body.Read(b)
	u.scale.bytes(b[:n])

	if err != nil && err != io.EOF {
		err = incomplete(err)
	}

	return n, err
}

// receive stores the whole file, so that no database connection waits for a slow client. name is
// the base name of the file without extension and may be empty. The caller closes the file.
func (u *DataUpload) receive(
	ctx context.Context, s *Server, format string,
) (file *os.File, name, found string, err error) {
	most, err := s.mostBytes(ctx)
	if err != nil {
		return nil, "", "", err
	}

	most = min(most, transfer.MaxFile)
	tooLarge := fault.OnField(fault.TooLarge, "file", "too_large", "must be at most %d bytes", most)
	if u.length > most+mostHeads {
		return nil, "", "", tooLarge
	}

	media := u.media
	if u.media == "" {
		if name, media, err = u.open(); err != nil {
			return nil, "", "", err
		}
	}

	ending := strings.ToLower(path.Ext(name))
	name = strings.TrimSuffix(path.Base(name), path.Ext(name))
	for _, guess := range []string{
		format, dataEndings[ending], dataTypes[strings.TrimSpace(strings.Split(media, ";")[0])],
	} {
		if found == "" {
			found = guess
		}
	}

	if found == "" {
		return nil, "", "", fault.OnField(fault.Invalid, "format", "required",
			"is required, for neither the file's name nor its media type tell")
	}

	if file, err = s.blobs.Scratch(); err != nil {
		return nil, "", "", err
	}

	n, err := io.Copy(file, io.LimitReader(u, most+1))
	if err == nil && n > most {
		err = tooLarge
	}

	if err == nil {
		err = errors.Join(ctx.Err(), u.patience())
	}
	if err != nil {
		return nil, "", "", errors.Join(err, file.Close())
	}

	return file, name, found, nil
}

// patience extends the connection's deadlines by the time that an import takes.
func (u *DataUpload) patience() error {
	end := time.Now().Add(transfer.ImportTime + uploadLull)
	err := errors.Join(u.body.control.SetReadDeadline(end), u.body.control.SetWriteDeadline(end))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}

	return err
}
