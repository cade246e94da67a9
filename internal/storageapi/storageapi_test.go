package storageapi

import (
	"errors"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

// TestFailureOf checks that the true status is in the body.
func TestFailureOf(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		err    error
		status int
		want   failure
	}{
		"missing": {fault.New(fault.NotFound, "x"), 400, failure{"404", "not_found", "Object not found", "NoSuchKey"}},
		"bucket":  {errNoBucket, 400, failure{"404", "Bucket not found", "Bucket not found", "NoSuchBucket"}},
		"denied":  {fault.New(fault.Forbidden, "no"), 400, failure{"403", "Unauthorized", "no", "AccessDenied"}},
		"type": {
			fault.OnField(fault.Unprocessable, "file", "mime_type_not_allowed", "no"), 400,
			failure{"415", "invalid_mime_type", "file no", "InvalidMimeType"},
		},
		"unknown": {errors.New("secret"), 500, failure{"500", "internal", "Internal Server Error", "InternalError"}},
		"busy":    {fault.New(fault.TooMany, "slow"), 429, failure{"429", "too_many_requests", "slow", "SlowDown"}},
	} {
		if status, got := failureOf(c.err); status != c.status || got != c.want {
			t.Errorf("%s: got %d %+v, want %d %+v", name, status, got, c.status, c.want)
		}
	}
}

// TestReadForm reads the fields before the file, which has an empty name.
func TestReadForm(t *testing.T) {
	t.Parallel()

	const form = "--b\r\nContent-Disposition: form-data; name=\"cacheControl\"\r\n\r\n60\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"\"; filename=\"blob\"\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n"
	var n object.NewObject
	metadata, err := readForm(multipart.NewReader(strings.NewReader(form), "b"), &n)
	if err != nil || string(metadata) != "{}" || n.CacheControl != "max-age=60" || n.MimeType != "text/plain" {
		t.Errorf("got %q, %+v, %v", metadata, n, err)
	}

	_, err = readForm(multipart.NewReader(strings.NewReader("--b--\r\n"), "b"), &n)
	if status, _ := failureOf(err); status != http.StatusBadRequest {
		t.Errorf("a form without a file: got %v", err)
	}
}
