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

	"socle/internal/fault"
)

const (
	maxFileName  = 1024 // bytes
	maxMediaType = 255  // bytes
	sniffed      = 512  // bytes that tell the type of a file
)

// checkFileName fails with Unprocessable on full_file_name unless the name is a relative path as everybody
// reads it. It is compared byte for byte and never reaches a disk, so nothing else about it matters.
func checkFileName(name string) error {
	const field = "full_file_name"
	switch {
	case name == "":
		return fault.OnField(fault.Unprocessable, field, "required", "is required")
	case len(name) > maxFileName:
		return fault.OnField(fault.Unprocessable, field, "too_long", "must be at most %d bytes", maxFileName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fault.OnField(fault.Unprocessable, field, "invalid_format",
			"must be text without control characters and backslashes")
	}

	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fault.OnField(fault.Unprocessable, field, "invalid_format",
				`must have no empty part, "." or ".." between its slashes`)
		}
	}

	return nil
}

// mediaType returns the media type of content: what the client claims if that is one, else what its first
// bytes look like. A claim of what a browser would run is believed of text alone. content is read on from the reader that it returns.
func mediaType(claim string, content io.Reader) (io.Reader, string, error) {
	claimed := claimedType(claim)
	if claimed != "" && !active(claimed) {
		return content, claimed, nil
	}

	buffered := bufio.NewReaderSize(content, sniffed)
	head, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}

	seen := http.DetectContentType(head)
	if claimed != "" && strings.HasPrefix(seen, "text/") {
		return buffered, claimed, nil
	}

	return buffered, seen, nil
}

// active reports whether a browser may run what is in a file of the type.
func active(mimeType string) bool {
	plain, _, _ := strings.Cut(mimeType, ";")
	return strings.Contains(plain, "html") || strings.Contains(plain, "xml") || strings.Contains(plain, "script")
}

// claimedType returns a client's media type in its usual spelling, safe in a header, or "" if it is none.
func claimedType(claim string) string {
	kind, params, err := mime.ParseMediaType(claim)
	if err != nil || !strings.Contains(kind, "/") {
		return ""
	}

	claimed := mime.FormatMediaType(kind, params)
	if len(claimed) > maxMediaType {
		return ""
	}

	return claimed
}
