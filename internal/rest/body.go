package rest

import (
	"context"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fair"
)

// payload is a request body.
type payload struct {
	text  []byte     // JSON unless raw says otherwise; nil without a body or with CSV
	csv   *csvBody   // rows in CSV before their conversion to JSON, or nil
	cells bool       // text has the rows of CSV for a relation
	form  url.Values // arguments of a function sent as a form, or nil
	// raw is the type of a function's single unnamed parameter that can take the whole body: json,
	// text, xml or bytea. "" means none.
	raw string
	// lease is the memory of text.
	lease bodyLease
	// sum hashes the body as it was received; nil if nothing needs that.
	sum hash.Hash
}

// read reads a body of at most maxSize bytes and converts a form to JSON. Functions also accept
// plain text, XML and bytes. It fails if the lease gets no room for a long body.
func (p *payload) read(w http.ResponseWriter, r *http.Request, maxSize int64, function bool) error {
	kind := r.Header.Get("Content-Type")
	switch kind {
	case "":
		kind = "application/json"
	case "application/json": // nearly always
	default: // ignore parameters, even malformed ones
		if end := strings.IndexAny(kind, "; ,\t"); end >= 0 {
			kind = kind[:end]
		}
		kind = strings.ToLower(kind)
	}

	text, err := readAll(w, r, maxSize, &p.lease)
	if err != nil {
		return err
	}

	if p.sum != nil {
		p.sum.Write(text)
	}

	raw := ""
	switch kind {
	case "application/json", "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		p.text, p.raw = text, "json"
		return nil
	case "text/csv":
		p.csv, err = readCSV(text)
		return err
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(text))
		if err != nil {
			return newError(http.StatusBadRequest, "PGRST102", "Empty or invalid form")
		}

		p.text = formRow(values)
		if function {
			p.form = values
		}

		return nil
	case "text/plain":
		raw = "text"
	case "text/xml":
		raw = "xml"
	case "application/octet-stream":
		raw = "bytea"
	}

	if raw == "" || !function {
		return newError(http.StatusBadRequest, "PGRST102", "Content-Type not acceptable: "+kind)
	}

	p.text, p.raw = text, raw
	return nil
}

// readAll reads a body into memory that grows with the received bytes, not with the declared
// length.
func readAll(w http.ResponseWriter, r *http.Request, maxSize int64, lease *bodyLease) ([]byte, error) {
	if r.ContentLength > maxSize {
		return nil, tooLarge()
	}

	body := http.MaxBytesReader(w, r.Body, maxSize)
	size := maxSize + 1 // one more byte to detect EOF
	if r.ContentLength >= 0 {
		size = r.ContentLength + 1
	}

	text := make([]byte, 0, min(size, uncountedBody))
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, unreadable(err)
		}

		if len(text) < cap(text) {
			continue
		}

		more := min(size, 4*int64(cap(text)))
		if err := lease.take(r.Context(), more); err != nil {
			return nil, err
		}

		text = append(make([]byte, 0, more), text...)
	}
}

func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	return newError(http.StatusBadRequest, "PGRST102", "The body can't be read")
}

func tooLarge() error {
	return newError(http.StatusRequestEntityTooLarge, "PGRST102", "The body is too large")
}

// formRow converts a form to a JSON object. The last value of a field wins.
func formRow(values url.Values) []byte {
	out := []byte{'{'}
	for name, all := range values {
		if len(out) > 1 {
			out = append(out, ',')
		}

		out = append(appendJSON(out, name), ':')
		out = appendJSON(out, all[len(all)-1])
	}

	return append(out, '}')
}

// appendJSON appends a string as JSON. Invalid UTF-8 becomes U+FFFD.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if _, size := utf8.DecodeRuneInString(s[i:]); size > 1 {
				i += size
				continue
			}

			b = append(append(b, s[start:i]...), "\uFFFD"...)
			i++
			start = i

			continue
		}

		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}

		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}

		i++
		start = i
	}

	return append(append(b, s[start:]...), '"')
}

// BodyPoolSize is the default memory of a process for request bodies, in bytes.
const BodyPoolSize = 256 << 20

// uncountedBody is the size in bytes up to which a body is not charged to the pool. Nearly all
// are shorter.
const uncountedBody = 64 << 10

// bodyLease is the share of one request in the memory of bodies.
type bodyLease struct {
	pool    *fair.Pool
	owner   func(context.Context) fair.Key
	timeout time.Duration // for room in the pool
	leases  []*fair.Lease
}

// take takes n more bytes. It waits up to timeout for others to release theirs.
func (l *bodyLease) take(ctx context.Context, n int64) error {
	exhausted := newError(http.StatusServiceUnavailable, "53200", "too many bodies of requests are under way")
	key := l.owner(ctx)

	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()

	lease, err := l.pool.Acquire(ctx, key, n)
	if err != nil {
		return exhausted
	}

	l.leases = append(l.leases, lease)

	return nil
}

// release returns all taken bytes.
func (l *bodyLease) release() {
	for _, lease := range l.leases {
		lease.Release()
	}
	l.leases = nil
}
