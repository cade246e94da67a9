package object

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fault"
)

const (
	maxFileNameLength  = 1024 // bytes
	maxMediaTypeLength = 255  // bytes
	sniffLength        = 512  // bytes that content sniffing looks at
)

// checkFileName fails with Unprocessable on full_file_name unless name is a relative path that
// every client reads alike. Names are compared byte by byte and are never used as paths on a disk,
// so there are no further rules.
func checkFileName(name string) error {
	const field = "full_file_name"
	switch {
	case name == "":
		return fault.OnField(fault.Unprocessable, field, "required", "is required")
	case len(name) > maxFileNameLength:
		return fault.OnField(fault.Unprocessable, field, "too_long", "must be at most %d bytes", maxFileNameLength)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fault.OnField(fault.Unprocessable, field, "invalid_format",
			"must not contain control characters or backslashes")
	}

	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fault.OnField(fault.Unprocessable, field, "invalid_format",
				`must not have an empty part, "." or ".." between slashes`)
		}
	}

	return nil
}

// mediaType returns the media type for content: the claimed type if it is valid, else the detected
// one. A claimed type that browsers execute is accepted only for content detected as text. The
// caller continues to read from the returned reader.
func mediaType(claim string, content io.Reader) (io.Reader, string, error) {
	mimeType := claimedType(claim)
	if mimeType != "" && !isActiveContent(mimeType) {
		return content, mimeType, nil
	}

	reader := bufio.NewReaderSize(content, sniffLength)
	head, err := reader.Peek(sniffLength)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}

	sniffType := http.DetectContentType(head)
	if mimeType != "" && strings.HasPrefix(sniffType, "text/") {
		return reader, mimeType, nil
	}

	return reader, sniffType, nil
}

// isActiveContent reports whether browsers may execute content with a type.
func isActiveContent(mimeType string) bool {
	plain, _, _ := strings.Cut(mimeType, ";")
	return strings.Contains(plain, "html") || strings.Contains(plain, "xml") || strings.Contains(plain, "script")
}

// claimedType normalizes the media type that a client claims, so that it is safe in a header. It
// returns "" if the type is invalid.
func claimedType(claim string) string {
	kind, params, err := mime.ParseMediaType(claim)
	if err != nil || !strings.Contains(kind, "/") {
		return ""
	}

	mimeType := mime.FormatMediaType(kind, params)
	if len(mimeType) > maxMediaTypeLength {
		return ""
	}

	return mimeType
}
