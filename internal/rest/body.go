package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"socle/internal/httpx"
)

// payload is the body of a request.
type payload struct {
	text []byte     // JSON unless raw says otherwise; nil if the request has none, or in CSV
	csv  *csvBody   // nil unless the rows came as CSV and are not JSON yet
	form url.Values // of a function's arguments; nil unless they came so
	// json, text, xml or bytea: the type of a function's one unnamed parameter that may take the body whole; "" for none
	raw string
}

// readBody reads a body of at most most bytes, and makes JSON of a form. A function also takes plain text, XML and bytes.
// It takes room for a long body, and fails if there is none.
func readBody(w http.ResponseWriter, r *http.Request, maxSize int64, function bool, lease *bodyLease) (payload, error) {
	kind := r.Header.Get("Content-Type")
	switch kind {
	case "":
		kind = "application/json"
	case "application/json": // nearly always
	default: // parameters, even those that are none, say nothing here
		if end := strings.IndexAny(kind, "; ,\t"); end >= 0 {
			kind = kind[:end]
		}
		kind = strings.ToLower(kind)
	}

	text, err := readAll(w, r, maxSize, lease)
	if err != nil {
		return payload{}, err
	}

	switch kind {
	case "application/json", "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		return payload{text: text, raw: "json"}, nil
	case "text/csv":
		rows, err := readCSV(text)
		return payload{csv: rows}, err
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(text))
		if err != nil {
			return payload{}, newError(http.StatusBadRequest, "PGRST102", "Empty or invalid form")
		}

		p := payload{text: formRow(values)}
		if function {
			p.form = values
		}

		return p, nil
	case "text/plain":
		if function {
			return payload{text: text, raw: "text"}, nil
		}
	case "text/xml":
		if function {
			return payload{text: text, raw: "xml"}, nil
		}
	case "application/octet-stream":
		if function {
			return payload{text: text, raw: "bytea"}, nil
		}
	}

	return payload{}, newError(http.StatusBadRequest, "PGRST102", "Content-Type not acceptable: "+kind)
}

// readAll reads a body into memory that grows with what has arrived, not with what the client declares.
func readAll(w http.ResponseWriter, r *http.Request, maxSize int64, lease *bodyLease) ([]byte, error) {
	if r.ContentLength > maxSize {
		return nil, tooLarge()
	}

	body := http.MaxBytesReader(w, r.Body, maxSize)
	size := maxSize + 1 // one more tells the end
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

// formRow makes a JSON object of a form. Of a field given twice the last value counts.
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

// appendJSON appends a string as JSON. Bytes that are no UTF-8 become U+FFFD.
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

// BodiesSize is how many bytes a process usually has for the bodies of requests under way.
const BodyBudgetSize = 256 << 20

// uncountedBody is how many bytes a body may have that is not counted: nearly all are shorter.
const uncountedBody = 64 << 10

// bodyRoom is what the body of one request has of the budget.
type bodyLease struct {
	budget   *httpx.Budget
	owner    string        // who is charged
	timeout  time.Duration // for room
	size     int64         // bytes that were taken
	releases []func()      // each gives its part back
}

// take takes room for so many bytes more. It waits a while for others to give theirs back.
func (r *bodyLease) take(ctx context.Context, n int64) error {
	exhausted := newError(http.StatusServiceUnavailable, "53200", "too many bodies of requests are under way")
	if r.size+n > r.budget.Most() {
		return exhausted
	}

	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()

	release, err := r.budget.Take(ctx, r.owner, n)
	if err != nil {
		return exhausted
	}

	r.size += n
	r.releases = append(r.releases, release)

	return nil
}

// release gives back all that was taken.
func (r *bodyLease) release() {
	for _, give := range r.releases {
		give()
	}
	r.size, r.releases = 0, nil
}
