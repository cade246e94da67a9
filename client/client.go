// Package client calls the platform API of a Socle server. It handles the response envelope, tokens
// and safe retries. The operations are in the server's OpenAPI document. It uses the standard
// library only.
//
//	c := &client.Client{URL: "http://localhost:8080"}
//	if _, err := c.Login(ctx, "ada@example.com", password, ""); err != nil { … }
//	project := map[string]any{"name": "library"}
//	reply, err := c.Do(ctx, client.Request{Method: "POST", Path: "/projects", Body: project})
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls a server for one user. Its fields may be changed between calls, not during one.
type Client struct {
	URL       string       // address of the server, without a trailing slash
	Token     string       // access token of a session, or a personal access token; "": anonymous
	Project   string       // UUID of the project for X-Project; "": none
	UserAgent string       // "": that of net/http
	HTTP      *http.Client // nil: http.DefaultClient
}

// Request is a request to the server.
type Request struct {
	Method string
	Path   string // escaped, with a leading slash
	Query  url.Values
	Header http.Header // additional headers
	Body   any         // JSON, or an io.Reader with its Content-Type in Header; nil: none
}

// Reply is a successful response. Content and Metadata are JSON as sent by the server.
type Reply struct {
	Status   int
	Header   http.Header
	Content  json.RawMessage
	Metadata json.RawMessage
}

// Into unmarshals the content into v.
func (r *Reply) Into(v any) error { return json.Unmarshal(r.Content, v) }

// Error is a failure response of the server.
type Error struct {
	Status    int             `json:"-"`         // HTTP status
	Code      string          `json:"code"`      // stable word, such as not_found; of the rows API SQLSTATE or PGRST…
	Detail    string          `json:"detail"`    // sentence for people
	Fields    []Field         `json:"fields"`    // invalid fields
	RequestID string          `json:"requestId"` // id of the request in the server's log
	Retry     time.Duration   `json:"-"`         // delay before a retry; 0: not given
	Metadata  json.RawMessage `json:"-"`         // all metadata, such as postgres, dependents and rejectedLines
	Body      json.RawMessage `json:"-"`         // the whole response; nil if it is not JSON
}

// Field is an invalid field of the request.
type Field struct {
	Name    string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the detail, followed by the invalid fields if it is not about the only one.
func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = fmt.Sprintf("the server responded with %d %s", e.Status, http.StatusText(e.Status))
	}

	for i, f := range e.Fields {
		sentence := f.Name + " " + f.Message
		if i > 0 || !strings.EqualFold(strings.TrimSuffix(text, "."), sentence) {
			text += "\n  " + sentence
		}
	}

	return text
}

// Retry policy and limits.
const (
	maxAttempts    = 3                      // per request that may be retried
	initialBackoff = 200 * time.Millisecond // doubles with each attempt
	maxBackoff     = 5 * time.Second        // a longer Retry-After is left to the caller
	maxReplySize   = 64 << 20               // bytes of an envelope
)

// Do sends a request and returns the response. It fails with an [*Error] if the server reports a
// failure.
//
// Do makes up to three attempts while the server is unreachable or busy. Retries are safe: a POST
// carries an Idempotency-Key, which Do generates if Header has none. A request whose Body is an
// io.Reader is sent once.
func (c *Client) Do(ctx context.Context, r Request) (*Reply, error) { return c.do(ctx, r, maxAttempts) }

func (c *Client) do(ctx context.Context, r Request, attempts int) (*Reply, error) {
	stream, body, err := encode(r.Body)
	if err != nil {
		return nil, err
	}

	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}

	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	if r.Method == http.MethodPost && header.Get("Idempotency-Key") == "" {
		header.Set("Idempotency-Key", rand.Text())
	}

	for attempt, wait := 1, initialBackoff; ; attempt, wait = attempt+1, 2*wait {
		reader := stream
		if body != nil {
			reader = bytes.NewReader(body)
		}

		res, err := c.send(ctx, r, header, reader)
		var reply *Reply
		if err == nil {
			reply, err = read(res)
		}
		if err == nil {
			return reply, nil
		}

		after, retry := retryable(err)
		if !retry || stream != nil || attempt == attempts || max(after, wait) > maxBackoff {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(max(after, wait)):
		}
	}
}

// Open sends a request whose response is not an envelope, such as a file. The caller closes the
// body. It fails like [Client.Do], but never retries.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	stream, body, err := encode(r.Body)
	if err != nil {
		return nil, err
	}

	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}

	if body != nil {
		header.Set("Content-Type", "application/json")
		stream = bytes.NewReader(body)
	}

	res, err := c.send(ctx, r, header, stream)
	if err != nil {
		return nil, err
	}

	if res.StatusCode >= 400 {
		_, err := read(res)
		return nil, err
	}

	return res, nil
}

// encode returns a body as a stream, or as bytes that can be sent again.
func encode(body any) (stream io.Reader, text []byte, err error) {
	switch b := body.(type) {
	case nil:
		return nil, nil, nil
	case io.Reader:
		return b, nil, nil
	case json.RawMessage:
		return nil, b, nil
	}

	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false) // which makes six bytes of <, > and &
	if err := e.Encode(body); err != nil {
		return nil, nil, fmt.Errorf("encode the body: %w", err)
	}

	return nil, bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

func (c *Client) send(ctx context.Context, r Request, header http.Header, body io.Reader) (*http.Response, error) {
	address := strings.TrimSuffix(c.URL, "/") + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}

	req, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return nil, err
	}

	req.Header = header.Clone()
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Project != "" {
		req.Header.Set("X-Project", c.Project)
	}
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}

	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}

	return client.Do(req)
}

// read reads an envelope.
func read(res *http.Response) (*Reply, error) {
	defer res.Body.Close()

	text, err := io.ReadAll(io.LimitReader(res.Body, maxReplySize))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}

	// The list of files wraps its envelope in an array.
	if start := bytes.TrimSpace(text); len(start) > 1 && start[0] == '[' {
		var wrapped []json.RawMessage
		if json.Unmarshal(text, &wrapped) == nil && len(wrapped) == 1 {
			text = wrapped[0]
		}
	}

	var envelope struct {
		Content  json.RawMessage
		Metadata json.RawMessage
		Success  *bool
	}
	if err := json.Unmarshal(text, &envelope); err != nil || envelope.Success == nil {
		if res.StatusCode >= 400 {
			return nil, rowsFailure(res.StatusCode, text)
		}
		return nil, errors.New("the response is not from a Socle server")
	}

	if *envelope.Success {
		return &Reply{
			Status:   res.StatusCode,
			Header:   res.Header,
			Content:  envelope.Content,
			Metadata: envelope.Metadata,
		}, nil
	}

	failure := &Error{Status: res.StatusCode, Metadata: envelope.Metadata, Body: text}
	if err := json.Unmarshal(envelope.Metadata, failure); err != nil {
		return nil, fmt.Errorf("decode the failure: %w", err)
	}

	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		failure.Retry = time.Duration(seconds) * time.Second
	}

	return nil, failure
}

// rowsFailure returns a failure of the rows API, which has no envelope. Its metadata is the whole
// response. Any other response gives the status only.
func rowsFailure(status int, text []byte) *Error {
	var m struct{ Code, Message string }
	if json.Unmarshal(text, &m) != nil {
		return &Error{Status: status}
	}

	return &Error{Status: status, Code: m.Code, Detail: m.Message, Metadata: text, Body: text}
}

// retryable reports whether a failure is temporary, and the delay that the server requests.
func retryable(err error) (after time.Duration, retry bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return 0, false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Retry, e.Code == "unavailable" || e.Code == "busy" || e.Code == "in_progress" ||
			e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable
	}

	_, unreachable := errors.AsType[*url.Error](err)
	return 0, unreachable
}
