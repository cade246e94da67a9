package s3api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

const exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

// example is an upload of Amazon's documentation, of 66560 times the letter a.
type example struct {
	payload string
	seed    string      // the signature of the request
	headers [][2]string // signed, in order
	body    string
}

// chunksExample is that of "Signature Calculations for the Authorization Header: Transferring
// Payload in Multiple Chunks".
var chunksExample = example{
	payload: signedChunks,
	seed:    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
	headers: [][2]string{{"content-encoding", "aws-chunked"}, {"content-length", "66824"}, {"host", ""},
		{"x-amz-content-sha256", signedChunks}, {"x-amz-date", "20130524T000000Z"},
		{"x-amz-decoded-content-length", "66560"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
	body: "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
		strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
		strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
}

// trailerExample is that of "… Transferring payload in multiple chunks with trailing headers".
var trailerExample = example{
	payload: signedTrailer,
	seed:    "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
	headers: [][2]string{{"content-encoding", "aws-chunked"}, {"host", ""},
		{"x-amz-content-sha256", signedTrailer}, {"x-amz-date", "20130524T000000Z"},
		{"x-amz-decoded-content-length", "66560"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
		{"x-amz-trailer", "x-amz-checksum-crc32c"}},
	body: "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" +
		strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" +
		strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n" +
		"x-amz-checksum-crc32c:sOO8/Q==\r\n" +
		"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n",
}

// read reads a body as that of the example's request.
func (e example) read(t *testing.T, text string) ([]byte, error) {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), "PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt",
		nil)
	if err != nil {
		t.Fatal(err)
	}

	s := &signature{scope: "20130524/us-east-1/s3/aws4_request", time: "20130524T000000Z", text: e.seed,
		payload: e.payload}
	for _, header := range e.headers {
		s.headers = append(s.headers, header[0])
		if header[1] != "" {
			r.Header.Set(header[0], header[1])
		}
	}
	if err := s.verify(r, nil, exampleSecret); err != nil {
		t.Fatal(err)
	}

	b, err := newBody(r, s, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	return io.ReadAll(b)
}

// changed is a change of an example's body, and the code of its refusal; "" means any.
type changed struct{ from, to, code string }

func (e example) check(t *testing.T, changes map[string]changed) {
	t.Helper()

	got, err := e.read(t, e.body)
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("a"), 66560)) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}

	for name, tt := range changes {
		text := strings.Replace(e.body, tt.from, tt.to, 1)
		if text == e.body {
			t.Fatalf("%s: the body is unchanged", name)
		}

		_, err := e.read(t, text)
		if err == nil || (tt.code != "" && fault.Of(err).Code != tt.code) {
			t.Errorf("%s: got %v, want %s", name, err, tt.code)
		}
	}
}

func TestSignedChunks(t *testing.T) {
	t.Parallel()

	text := chunksExample.body
	chunksExample.check(t, map[string]changed{
		"a changed byte":         {"a\r\n400", "b\r\n400", "SignatureDoesNotMatch"},
		"a changed signature":    {"signature=0055", "signature=0056", "SignatureDoesNotMatch"},
		"no signature":           {";chunk-signature=b6c6", ";x=b6c6", "SignatureDoesNotMatch"},
		"a chunk left out":       {text[65536+87 : 65536+87+1024+86+2], "", "SignatureDoesNotMatch"},
		"another size":           {"400;", "3ff;", "InvalidChunkSizeError"},
		"a size out of range":    {"400;", "8000000000000000;", "InvalidChunkSizeError"},
		"a negative size":        {"400;", "-1;", "InvalidChunkSizeError"},
		"an endless line":        {"400;", "400;" + strings.Repeat("x", 2000), "InvalidChunkSizeError"},
		"the end without a line": {"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n", "", ""},
	})
}

func TestSignedTrailer(t *testing.T) {
	t.Parallel()

	const signed = "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n"
	trailerExample.check(t, map[string]changed{
		"a changed byte":      {"a\r\n400", "b\r\n400", "SignatureDoesNotMatch"},
		"another checksum":    {"sOO8/Q==", "AAAAAA==", "SignatureDoesNotMatch"},
		"no checksum":         {"x-amz-checksum-crc32c:sOO8/Q==\r\n", "", "SignatureDoesNotMatch"},
		"another line":        {signed, "x-amz-meta-a:b\r\n" + signed, "SignatureDoesNotMatch"},
		"a changed signature": {"signature:d81f", "signature:d81e", "SignatureDoesNotMatch"},
		"no signature":        {signed, "", "SignatureDoesNotMatch"},
		"no trailer":          {"x-amz-checksum-crc32c:sOO8/Q==\r\n" + signed, "", "SignatureDoesNotMatch"},
		"too many lines":      {signed, strings.Repeat("a:b\r\n", maxTrailers) + signed, "SignatureDoesNotMatch"},
	})
}

// TestChecksums verifies the checksums that a request announces, of the text "123456789".
func TestChecksums(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]string{
		"Content-MD5":              "JfnnlDI7RTiF9RgfG2JNCw==",
		"x-amz-checksum-crc32":     "y/Q5Jg==",
		"x-amz-checksum-crc32c":    "4waSgw==",
		"x-amz-checksum-crc64nvme": "rosUhgp5mIg=",
		"x-amz-checksum-sha1":      "98O8HYCOBHMq32eZZczDTKeuNEE=",
		"x-amz-checksum-sha256":    "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
	} {
		for text, code := range map[string]string{"123456789": "", "123456780": "BadDigest", "12345678": "BadDigest"} {
			r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://localhost/", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(header, want)

			b, err := newBody(r, &signature{payload: unsignedPayload}, r.Body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(b)
			if (err == nil) != (code == "") || (err != nil && fault.Of(err).Code != code) {
				t.Errorf("%s of %q: got %q, %v, want %q", header, text, got, err, code)
			}
		}

		r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, want[:4]+"====")
		if _, err := newBody(r, &signature{payload: unsignedPayload}, nil); fault.Of(err).Code != "InvalidDigest" {
			t.Errorf("%s without a checksum: got %v, want InvalidDigest", header, err)
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
