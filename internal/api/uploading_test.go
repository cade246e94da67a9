package api_test

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/api/apitest"
)

const boundary = "the-boundary"

// part returns a part of a multipart body. Empty headers are left out.
func part(disposition, contentType, content string) string {
	head := "--" + boundary + "\r\nContent-Disposition: " + disposition + "\r\n"
	if contentType != "" {
		head += "Content-Type: " + contentType + "\r\n"
	}

	return head + "\r\n" + content + "\r\n"
}

const end = "--" + boundary + "--\r\n"

func namePart(name string) string { return part(`form-data; name="full_file_name"`, "", name) }

func filePart(contentType, content string) string {
	return part(`form-data; name="file"; filename="upload.bin"`, contentType, content)
}

// multipartOf returns the body of an upload.
func multipartOf(name, content string) string {
	return namePart(name) + filePart("text/plain", content) + end
}

// upload uploads a file to a container.
func upload(a *apitest.API, container, name, content string) *apitest.Reply {
	return uploadBody(a, container, multipartOf(name, content))
}

func uploadBody(a *apitest.API, container, body string) *apitest.Reply {
	return a.Send("POST", "/containers/"+container+"/files", body,
		"Content-Type: multipart/form-data; boundary="+boundary)
}

// address returns the path of a file by its name.
func address(a *apitest.API, container, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}

	return "/files/" + a.Project + "/" + container + "/" + strings.Join(parts, "/")
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
