package s3api

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeLayout = "20060102T150405Z"
	maxSkew    = 15 * time.Minute
	maxExpiry  = 7 * 24 * time.Hour

	unsignedPayload = "UNSIGNED-PAYLOAD"
	signedChunks    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// signature is a request's claimed signature (AWS Signature Version 4). A successful verify sets
// signing, the key for chunk signatures.
type signature struct {
	key         uuid.UUID // access key
	scope       string    // DATE/REGION/s3/aws4_request
	time        string
	headers     []string // signed headers, lower case
	text        string   // hexadecimal
	payload     string   // body SHA-256 in hexadecimal, or a word from above
	isPresigned bool
	signing     []byte
}

func denied(code, message string) *fault.Error {
	return fault.New(fault.Forbidden, "%s", message).WithCode(code)
}

func malformed(code, message string) *fault.Error {
	return fault.New(fault.Invalid, "%s", message).WithCode(code)
}

// parseSignature reads a request's signature from the header or the query, and checks all but the
// MAC.
func parseSignature(r *http.Request, query url.Values, now time.Time) (*signature, error) {
	parse := readQuery
	if r.Header.Get("Authorization") != "" {
		parse = readHeader
	}

	s, credential, err := parse(r, query)
	if err != nil {
		return nil, err
	}

	date, err := s.setCredential(credential)
	if err != nil {
		return nil, err
	}
	if err := s.checkHeaders(r); err != nil {
		return nil, err
	}

	return s, s.checkTime(query, date, now)
}

// readHeader reads the signature in the Authorization header.
func readHeader(r *http.Request, _ url.Values) (s *signature, credential string, err error) {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), algorithm)
	if !ok {
		return nil, "", malformed("InvalidArgument", "Only AWS4-HMAC-SHA256 is supported")
	}

	s = &signature{time: r.Header.Get("X-Amz-Date"), payload: r.Header.Get("X-Amz-Content-Sha256")}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.text = value
		}
	}

	if s.payload == "" {
		return nil, "", malformed("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}

	return s, credential, nil
}

// readQuery reads a presigned URL's signature.
func readQuery(r *http.Request, query url.Values) (s *signature, credential string, err error) {
	switch query.Get("X-Amz-Algorithm") {
	case algorithm:
	case "":
		return nil, "", denied("AccessDenied", "The request is not signed")
	default:
		return nil, "", malformed("AuthorizationQueryParametersError", "X-Amz-Algorithm only supports AWS4-HMAC-SHA256")
	}

	return &signature{
		time: query.Get("X-Amz-Date"), text: query.Get("X-Amz-Signature"), isPresigned: true,
		headers: strings.Split(query.Get("X-Amz-SignedHeaders"), ";"),
		payload: cmp.Or(query.Get("X-Amz-Content-Sha256"), r.Header.Get("X-Amz-Content-Sha256"), unsignedPayload),
	}, query.Get("X-Amz-Credential"), nil
}

// setCredential sets the key and scope from a credential, and returns the date.
func (s *signature) setCredential(credential string) (date string, err error) {
	access, scope, _ := strings.Cut(credential, "/")
	key, err := uuid.Parse(access)
	if err != nil || len(access) != 32 {
		return "", denied("InvalidAccessKeyId", "The access key does not exist in our records")
	}

	parts := strings.Split(scope, "/")
	if len(parts) != 4 || parts[2] != "s3" || parts[3] != "aws4_request" {
		return "", malformed("AuthorizationHeaderMalformed", "The credential must be KEY/DATE/REGION/s3/aws4_request")
	}

	s.key, s.scope = key, scope
	return parts[0], nil
}

// checkHeaders fails unless the host and all S3 headers are signed.
func (s *signature) checkHeaders(r *http.Request) error {
	if !slices.Contains(s.headers, "host") {
		return denied("AccessDenied", "The header host must be signed")
	}

	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(s.headers, name) &&
			!(s.isPresigned && name == "x-amz-content-sha256") {
			return denied("AccessDenied", "There were headers present in the request which were not signed: "+name)
		}
	}

	return nil
}

// checkTime fails if the signature is too old, too young or expired.
func (s *signature) checkTime(query url.Values, date string, now time.Time) error {
	at, err := time.Parse(timeLayout, s.time)
	if err != nil || !strings.HasPrefix(s.time, date+"T") {
		return denied("AccessDenied", "X-Amz-Date must be an ISO 8601 date, that of the credential")
	}

	if !s.isPresigned {
		if at.Before(now.Add(-maxSkew)) || at.After(now.Add(maxSkew)) {
			return denied("RequestTimeTooSkewed",
				"The difference between the request time and the server's time is too large")
		}
		return nil
	}

	seconds, err := strconv.ParseUint(query.Get("X-Amz-Expires"), 10, 32)
	if err != nil || seconds < 1 || time.Duration(seconds)*time.Second > maxExpiry {
		return malformed("AuthorizationQueryParametersError", "X-Amz-Expires must be 1 to 604800 seconds")
	}

	switch {
	case at.After(now.Add(maxSkew)):
		return denied("AccessDenied", "Request is not yet valid")
	case now.After(at.Add(time.Duration(seconds) * time.Second)):
		return denied("AccessDenied", "Request has expired")
	}

	return nil
}

// verify fails with SignatureDoesNotMatch unless the secret has signed the request.
func (s *signature) verify(r *http.Request, query url.Values, secret string) error {
	key := s.derive(secret)
	canonical := strings.Join([]string{r.Method, escape(r.URL.Path, true), canonicalQuery(query), s.canonicalHeaders(r),
		strings.Join(s.headers, ";"), s.payload}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	want := sign(key, strings.Join([]string{algorithm, s.time, s.scope, hex.EncodeToString(sum[:])}, "\n"))

	got, err := hex.DecodeString(s.text)
	if err != nil || !hmac.Equal(got, want) {
		return errSignature
	}

	s.signing = key
	return nil
}

var errSignature = denied("SignatureDoesNotMatch", "The request signature we calculated does not match the signature "+
	"you provided. Check your key and signing method.")

// derive returns the signing key for the scope.
func (s *signature) derive(secret string) []byte {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(s.scope, "/") {
		key = sign(key, part)
	}

	return key
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))

	return mac.Sum(nil)
}

func (s *signature) canonicalHeaders(r *http.Request) string {
	var b strings.Builder
	for _, name := range s.headers {
		var value string
		switch values := r.Header.Values(name); {
		case name == "host":
			value = r.Host
		case name == "content-length" && len(values) == 0:
			value = strconv.FormatInt(r.ContentLength, 10)
		default:
			clean := make([]string, len(values))
			for i, v := range values {
				clean[i] = strings.Join(strings.Fields(v), " ")
			}
			value = strings.Join(clean, ",")
		}

		b.WriteString(name + ":" + value + "\n")
	}

	return b.String()
}

// canonicalQuery sorts parameters by their escaped names, then by their escaped values.
func canonicalQuery(query url.Values) string {
	params := make(map[string][]string, len(query))
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			key := escape(name, false)
			params[key] = append(params[key], escape(value, false))
		}
	}

	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, value := range slices.Sorted(slices.Values(params[name])) {
			pairs = append(pairs, name+"="+value)
		}
	}

	return strings.Join(pairs, "&")
}

// escape escapes all but unreserved characters, as signatures do, and slashes unless they separate
// a path.
func escape(text string, path bool) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if letter || (c >= '0' && c <= '9') || strings.IndexByte("-_.~", c) >= 0 || (path && c == '/') {
			b.WriteByte(c)
			continue
		}

		b.Write([]byte{'%', upper[c>>4], upper[c&15]})
	}

	return b.String()
}
