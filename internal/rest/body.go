package rest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// payload is the body of a request.
type payload struct {
	text []byte     // JSON unless raw says otherwise; nil if the request has none
	form url.Values // of a function's arguments; nil unless they came so
	raw  string     // json, text, xml or bytea: the type of a function's one unnamed parameter that may take the body whole; "" for none
}

// readBody reads a body of at most most bytes, and makes JSON of rows in other forms. A function also takes plain text, XML and bytes.
func readBody(w http.ResponseWriter, r *http.Request, most int64, function bool) (payload, error) {
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
	text, err := readAll(w, r, most)
	if err != nil {
		return payload{}, err
	}
	switch kind {
	case "application/json", "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		return payload{text: text, raw: "json"}, nil
	case "text/csv":
		rows, err := csvRows(text)
		return payload{text: rows}, err
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(text))
		if err != nil {
			return payload{}, fail(http.StatusBadRequest, "PGRST102", "Empty or invalid form")
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
	return payload{}, fail(http.StatusBadRequest, "PGRST102", "Content-Type not acceptable: "+kind)
}

func readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge()
	}
	body := http.MaxBytesReader(w, r.Body, most)
	if r.ContentLength >= 0 {
		text := make([]byte, r.ContentLength)
		_, err := io.ReadFull(body, text)
		return text, unreadable(err)
	}
	text, err := io.ReadAll(body)
	return text, unreadable(err)
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	return fail(http.StatusBadRequest, "PGRST102", "The body can't be read")
}

func tooLarge() error {
	return fail(http.StatusRequestEntityTooLarge, "PGRST102", "The body is too large")
}

// csvRows makes a JSON array of objects of rows in CSV, the first of which names the columns.
func csvRows(text []byte) ([]byte, error) {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord, in.ReuseRecord, in.LazyQuotes = -1, true, false
	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return []byte("[]"), nil
	}
	if err != nil {
		return nil, badCSV(err)
	}
	names := make([][]byte, len(first))
	for i, name := range first {
		names[i] = append(appendJSON(nil, name), ':')
	}
	out := append(make([]byte, 0, 2*len(text)+2), '[')
	for n := 0; ; n++ {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return append(out, ']'), nil
		}
		if err != nil {
			return nil, badCSV(err)
		}
		if len(row) < len(names) {
			return nil, fail(http.StatusBadRequest, "PGRST102", "All lines must have same number of fields")
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, name...)
			if row[i] == "NULL" {
				out = append(out, "null"...)
			} else {
				out = appendJSON(out, row[i])
			}
		}
		out = append(out, '}')
	}
}

func badCSV(err error) error {
	e := fail(http.StatusBadRequest, "PGRST102", "Empty or invalid csv")
	e.Details = err.Error()
	return e
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
