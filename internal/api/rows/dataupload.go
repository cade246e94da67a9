package rows

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/transfer"
)

// dataTypes maps media types to import formats; "" leaves the format open.
var dataTypes = map[string]string{"text/csv": transfer.CSV, "text/tab-separated-values": transfer.TSV,
	"application/x-ndjson": transfer.JSONL, "application/jsonl": transfer.JSONL, "application/json": transfer.JSON,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": transfer.XLSX, "application/octet-stream": ""}

// dataExtensions maps file name extensions to import formats.
var dataExtensions = map[string]string{
	".csv": transfer.CSV, ".tsv": transfer.TSV, ".tab": transfer.TSV, ".jsonl": transfer.JSONL,
	".ndjson": transfer.JSONL, ".json": transfer.JSON, ".xlsx": transfer.XLSX,
}

// dataFile is a body with a file in one of the dataTypes.
var dataFile = operation.FileOfTypes("multipart/form-data, text/csv, text/tab-separated-values, application/json, "+
	"application/x-ndjson, application/octet-stream or the type of an XLSX workbook", slices.Collect(maps.Keys(dataTypes))...)

// receiveData stores the whole file, so that no database connection waits for a slow client. name
// is the file's base name without extension and may be empty. The caller closes the file.
func (s *Server) receiveData(
	ctx context.Context, u *operation.Upload, format string,
) (file *os.File, name, foundFormat string, err error) {
	maxBytes, err := s.Platform.MaxUploadSize(ctx)
	if err != nil {
		return nil, "", "", err
	}

	maxBytes = min(maxBytes, transfer.MaxFileBytes)
	tooLarge := fault.OnField(fault.TooLarge, "file", "too_large", "must be at most %d bytes", maxBytes)
	if u.Length() > maxBytes+operation.MaxFormOverhead {
		return nil, "", "", tooLarge
	}

	name, media, err := u.Open()
	if err != nil {
		return nil, "", "", err
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
			"must be csv, tsv, json, jsonl or xlsx, since neither the file's name nor its media type determines it")
	}

	if file, err = s.Blobs.Scratch(); err != nil {
		return nil, "", "", err
	}

	n, err := io.Copy(file, io.LimitReader(u, maxBytes+1))
	if err == nil && n > maxBytes {
		err = tooLarge
	}

	if err == nil {
		err = errors.Join(ctx.Err(), u.ExtendDeadlines(transfer.ImportTimeout+operation.ClientWriteTimeout))
	}
	if err != nil {
		return nil, "", "", errors.Join(err, file.Close())
	}

	return file, name, foundFormat, nil
}
