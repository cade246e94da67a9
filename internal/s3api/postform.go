package s3api

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
)

// Uploads by an HTML form, whose policy a key has signed. The form's fields precede the file and
// replace headers.

// maxForm is the maximum number of bytes in a form before the file.
const maxForm = 64 << 10

var (
	errLargeForm = malformed("MaxPostPreDataLengthExceededError", "Your POST request fields preceding the upload file "+
		"were too large.")
	errNoFile = malformed("InvalidArgument", "POST requires exactly one file upload per request.")
)

// form is a form's part before the file, fields by lower-case name.
type form struct {
	fields map[string]string
	file   *multipart.Part
}

// isForm reports whether the request is an upload by a form. The signature is in the form.
func (c *call) isForm() bool {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data" && c.r.Method == http.MethodPost && c.key == "" &&
		c.name != "" && len(c.query) == 0 && c.r.Header.Get("Authorization") == ""
}

// postObject stores a form's file.
func (c *call) postObject() error {
	f, err := c.readForm()
	if err != nil {
		return err
	}

	p, err := c.authenticateForm(f)
	if err != nil {
		return err
	}
	if c.Inactive != nil {
		return c.Inactive
	}
	if err := p.check(f.fields, c.name, c.start); err != nil {
		return err
	}

	c.key = f.fields["key"]
	if c.key == "" {
		return malformed("InvalidArgument", "Bucket POST must contain a field named 'key'")
	}
	if err := c.findBucket(); err != nil {
		return err
	}

	c.r = f.request(c.r)
	if err := c.checkRequest(formRoute); err != nil {
		return err
	}

	return c.storeForm(f, p)
}

// formRoute is an upload by form.
var formRoute = route{headers: join(objectHeaders, bodyHeaders, absentOnly)}

func (c *call) storeForm(f form, p policy) error {
	n, err := c.headers()
	if err != nil {
		return err
	}
	if n.MimeType == "" {
		n.MimeType = f.file.Header.Get("Content-Type")
	}

	c.body = &body{length: -1, in: &sizedReader{in: f.file, min: p.min, max: p.max}}
	if err := c.body.expect(c.r.Header); err != nil {
		return err
	}

	n.Content = c.body
	file, err := c.store(n)
	if err != nil {
		return c.bodyFailure(err)
	}

	return c.answerForm(f.fields, tag(file.SHA256))
}

// readForm reads a form up to the file.
func (c *call) readForm() (form, error) {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return form{}, malformed("MalformedPOSTRequest", "The body of your POST request is not well-formed "+
			"multipart/form-data.")
	}

	head := &headReader{in: httpx.NewPacedReader(c.w, c.r), remaining: maxForm}
	parts := multipart.NewReader(head, params["boundary"])
	f := form{fields: map[string]string{}}
	for {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, errLargeForm):
			return f, errLargeForm
		case err == io.EOF:
			return f, errNoFile
		case err != nil:
			return f, malformed("MalformedPOSTRequest", "The body of your POST request is not well-formed "+
				"multipart/form-data.").WithCause(err)
		}

		name := strings.ToLower(part.FormName())
		if name == "file" {
			head.remaining = -1
			f.file = part
			if key, ok := f.fields["key"]; ok {
				file := part.FileName()
				f.fields["key"] = strings.ReplaceAll(key, "${filename}", file[strings.LastIndexByte(file, '\\')+1:])
			}
			return f, nil
		}

		value, err := io.ReadAll(part)
		if errors.Is(err, errLargeForm) {
			return f, errLargeForm
		}
		if err != nil {
			return f, readFailure(err)
		}
		if !pg.Storable(string(value)) || (name != "policy" && bytes.ContainsAny(value, "\r\n")) {
			return f, malformed("InvalidArgument", "The field "+name+" must be a line of UTF-8 without null characters")
		}
		if _, ok := f.fields[name]; ok {
			return f, malformed("InvalidArgument", "POST requires exactly one field "+name+" per request.")
		}
		f.fields[name] = string(value)
	}
}

// headReader bounds the bytes before a form's file.
type headReader struct {
	in        io.Reader
	remaining int // bytes, negative without a bound
}

// Read implements io.Reader.
func (h *headReader) Read(p []byte) (int, error) {
	if h.remaining == 0 {
		return 0, errLargeForm
	}
	if h.remaining > 0 {
		p = p[:min(len(p), h.remaining)]
	}

	n, err := h.in.Read(p)
	if h.remaining > 0 {
		h.remaining -= n
	}

	return n, err
}

// authenticateForm verifies the policy's signature and returns the policy.
func (c *call) authenticateForm(f form) (policy, error) {
	if f.fields["policy"] == "" || f.fields["x-amz-signature"] == "" {
		return policy{}, denied("AccessDenied", "The form has no signed policy")
	}
	if f.fields["x-amz-algorithm"] != algorithm {
		return policy{}, malformed("InvalidArgument", "Only AWS4-HMAC-SHA256 is supported")
	}

	s := &signature{time: f.fields["x-amz-date"], text: f.fields["x-amz-signature"]}
	date, err := s.setCredential(f.fields["x-amz-credential"])
	if err != nil {
		return policy{}, err
	}
	if _, err := time.Parse(timeLayout, s.time); err != nil || !strings.HasPrefix(s.time, date+"T") {
		return policy{}, denied("AccessDenied", "X-Amz-Date must be an ISO 8601 date, that of the credential")
	}

	got, err := hex.DecodeString(s.text)
	if err != nil || !hmac.Equal(got, sign(s.derive(c.S3Secret(s.key)), f.fields["policy"])) {
		return policy{}, errSignature
	}
	if err := c.hasKey(s.key); err != nil {
		return policy{}, err
	}

	c.signature = s
	return parsePolicy(f.fields["policy"])
}

// headerNames maps form fields to headers with a different name.
var headerNames = map[string]string{"acl": "X-Amz-Acl", "tagging": "X-Amz-Tagging"}

// request returns the request with the form's fields as headers.
func (f form) request(r *http.Request) *http.Request {
	as := *r
	as.Header = http.Header{}
	for name, value := range f.fields {
		if other := headerNames[name]; other != "" {
			name = other
		}

		switch name {
		case "policy", "key", "bucket", "success_action_redirect", "success_action_status", "redirect",
			"x-amz-signature", "x-amz-credential", "x-amz-algorithm":
			continue
		}
		as.Header.Set(name, value)
	}

	return &as
}

// answerForm responds to a stored form as its fields demand.
func (c *call) answerForm(fields map[string]string, etag string) error {
	location := c.location(c.key)
	c.w.Header().Set("ETag", etag)

	target := fields["success_action_redirect"]
	if target == "" {
		target = fields["redirect"]
	}
	if at, err := url.Parse(target); err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" {
		query := at.Query()
		query.Set("bucket", c.name)
		query.Set("key", c.key)
		query.Set("etag", etag)
		at.RawQuery = query.Encode()

		c.w.Header().Set("Location", at.String())
		return c.empty(http.StatusSeeOther)
	}

	c.w.Header().Set("Location", location)
	switch fields["success_action_status"] {
	case "201":
		return c.respondWith(http.StatusCreated, struct {
			XMLName  xml.Name `xml:"PostResponse"`
			Location string
			Bucket   string
			Key      string
			ETag     string
		}{Location: location, Bucket: c.name, Key: c.key, ETag: etag})
	case "", "200":
		return c.empty(http.StatusOK)
	}

	return c.empty(http.StatusNoContent)
}

// sizedReader fails unless the content size is in a range.
type sizedReader struct {
	in       io.Reader
	min, max int64 // bytes; a negative max is none
	read     int64
}

// Read implements io.Reader.
func (s *sizedReader) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.read += int64(n)
	switch {
	case s.max >= 0 && s.read > s.max:
		return 0, fault.New(fault.Invalid, "Your proposed upload exceeds the maximum allowed size").
			WithCode("EntityTooLarge")
	case err == io.EOF && s.read < s.min:
		return 0, malformed("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
	}

	return n, err
}
