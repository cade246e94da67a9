package httprequest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// request is a request that SQL has left.
type request struct {
	ID                  int64
	Method              string
	URL                 string `db:"url"`
	Params, Headers     map[string]any
	Body                []byte
	TimeoutMilliseconds int
}

func (r request) timeout() time.Duration {
	return time.Duration(r.TimeoutMilliseconds) * time.Millisecond
}

// connectionHeaders are the headers that the connection decides on, and not the caller.
var connectionHeaders = []string{"Host", "Content-Length", "Connection", "Transfer-Encoding", "Upgrade", "Te",
	"Trailer"}

// http returns the request to send, or why it can't be sent, for the developer.
func (r request) http(ctx context.Context) (request *http.Request, refusal string) {
	address, err := url.Parse(r.URL)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return nil, "The URL is no address that begins with https://"
	}

	query := address.Query()
	for name, value := range r.Params {
		query.Set(name, textOf(value))
	}
	if len(r.Params) > 0 {
		address.RawQuery = query.Encode()
	}

	request, err = http.NewRequestWithContext(ctx, r.Method, address.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, "The URL can't be requested"
	}

	for name, value := range r.Headers {
		text := textOf(value)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
			return nil, "The header " + strconv.QuoteToASCII(name) + " has a name or value that HTTP does not allow"
		}
		request.Header.Set(name, text)
	}
	for _, name := range connectionHeaders {
		request.Header.Del(name)
	}
	if len(r.Body) > 0 && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}

	return request, ""
}

// textOf returns a JSON value as a text: a string as it is, all else in JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}

	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // a value from JSON has no error

	return strings.TrimSuffix(b.String(), "\n")
}
