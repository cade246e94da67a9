package s3api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// The example of Amazon's documentation: "Signature Calculations for the Authorization Header:
// Transferring Payload in Multiple Chunks".
const (
	exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	exampleSeed   = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
)

func exampleBody() string {
	return "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
		strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
		strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"
}

func readExample(t *testing.T, text string) ([]byte, error) {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), "PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt",
		nil)
	if err != nil {
		t.Fatal(err)
	}

	headers := []string{"content-encoding", "content-length", "host", "x-amz-content-sha256", "x-amz-date",
		"x-amz-decoded-content-length", "x-amz-storage-class"}
	for i, value := range []string{"aws-chunked", "66824", "", signedChunks, "20130524T000000Z", "66560",
		"REDUCED_REDUNDANCY"} {
		if value != "" {
			r.Header.Set(headers[i], value)
		}
	}

	s := &signature{scope: "20130524/us-east-1/s3/aws4_request", time: "20130524T000000Z", headers: headers,
		text: exampleSeed, payload: signedChunks}
	if err := s.verify(r, nil, exampleSecret); err != nil {
		t.Fatal(err)
	}

	b, err := newBody(r, s, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	return io.ReadAll(b)
}

func TestSignedChunks(t *testing.T) {
	t.Parallel()

	got, err := readExample(t, exampleBody())
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("a"), 66560)) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}

	for name, tt := range map[string]struct{ from, to, code string }{
		"a changed byte":         {"a\r\n400", "b\r\n400", "SignatureDoesNotMatch"},
		"a changed signature":    {"signature=0055", "signature=0056", "SignatureDoesNotMatch"},
		"no signature":           {";chunk-signature=b6c6", ";x=b6c6", "SignatureDoesNotMatch"},
		"a chunk left out":       {exampleBody()[65536+87 : 65536+87+1024+86+2], "", "SignatureDoesNotMatch"},
		"another size":           {"400;", "3ff;", "InvalidChunkSizeError"},
		"a size out of range":    {"400;", "8000000000000000;", "InvalidChunkSizeError"},
		"a negative size":        {"400;", "-1;", "InvalidChunkSizeError"},
		"an endless line":        {"400;", "400;" + strings.Repeat("x", 2000), "InvalidChunkSizeError"},
		"the end without a line": {"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n", "", ""},
	} {
		text := strings.Replace(exampleBody(), tt.from, tt.to, 1)
		if text == exampleBody() {
			t.Fatalf("%s: the body is unchanged", name)
		}

		_, err := readExample(t, text)
		if err == nil || (tt.code != "" && fault.Of(err).Code != tt.code) {
			t.Errorf("%s: got %v, want %s", name, err, tt.code)
		}
	}
}

func TestTrailingChecksum(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ header, trailer, code string }{
		{"x-amz-checksum-crc32", "x-amz-checksum-crc32:O4unxw==", ""}, // of "text"
		{"x-amz-checksum-crc32", "x-amz-checksum-crc32:AAAAAA==", "BadDigest"},
		{"x-amz-checksum-crc32", "x-amz-checksum-crc32:AAAA", "InvalidDigest"},
		{"x-amz-checksum-crc32", "", "BadDigest"},
		{"", "", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Decoded-Content-Length", "4")
		r.Header.Set("X-Amz-Trailer", tt.header)

		b, err := newBody(r, &signature{payload: unsignedTrailer},
			strings.NewReader("4\r\ntext\r\n0\r\n"+tt.trailer+"\r\n\r\n"))
		if err != nil {
			t.Fatal(err)
		}

		got, err := io.ReadAll(b)
		if (err == nil) != (tt.code == "") || (err != nil && fault.Of(err).Code != tt.code) {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}
