package apitest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

// Reply is the server's response.
type Reply struct {
	t       testing.TB
	request string
	Status  int
	Header  http.Header
	Body    []byte
	json    any
}

// Want fails the test unless the response has this status.
func (r *Reply) Want(status int) *Reply {
	r.t.Helper()

	if r.Status != status {
		r.t.Fatalf("%s: got status %d, want %d\n%s", r.request, r.Status, status, r.Body)
	}

	return r
}

// Content fails the test unless a content member has this value: a string, bool, nil, or an int.
// The member is a path with dots and array indexes.
func (r *Reply) Content(member string, want any) *Reply {
	r.t.Helper()

	r.equal("content."+member, r.Get(member), want)
	return r
}

// Total fails the test unless the list has this total item count.
func (r *Reply) Total(want int) *Reply {
	r.t.Helper()

	if got := fmt.Sprint(r.Metadata("total")); got != strconv.Itoa(want) {
		r.t.Errorf("%s: got total %s, want %d", r.request, got, want)
	}

	return r
}

// Code fails the test unless the failure has this code.
func (r *Reply) Code(want string) *Reply {
	r.t.Helper()

	r.equal("metadata.code", r.Metadata("code"), want)
	return r
}

// Field fails the test unless the failure names these fields, in this order.
func (r *Reply) Field(want ...string) *Reply {
	r.t.Helper()

	var got []string
	fields, _ := r.Metadata("fields").([]any)
	for _, f := range fields {
		got = append(got, fmt.Sprint(f.(map[string]any)["field"]))
	}

	if strings.Join(got, " ") != strings.Join(want, " ") {
		r.t.Fatalf("%s: got fields %q at fault, want %q\n%s", r.request, got, want, r.Body)
	}

	return r
}

// Get returns a content member, or the content itself if member is "".
func (r *Reply) Get(member string) any {
	r.t.Helper()

	return r.findMember("content", member)
}

// Metadata returns a metadata member.
func (r *Reply) Metadata(member string) any {
	r.t.Helper()

	return r.findMember("metadata", member)
}

func (r *Reply) findMember(part, member string) any {
	r.t.Helper()

	v := r.json
	if array, ok := v.([]any); ok && len(array) == 1 { // the result from a multi-file upload
		v = array[0]
	}

	path := []string{part}
	if member != "" {
		path = append(path, strings.Split(member, ".")...)
	}

	for _, name := range path {
		switch value := v.(type) {
		case map[string]any:
			found, ok := value[name]
			if !ok {
				r.t.Fatalf("%s: the response has no %s.%s\n%s", r.request, part, member, r.Body)
			}

			v = found
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(value) {
				r.t.Fatalf("%s: the response has no %s.%s\n%s", r.request, part, member, r.Body)
			}

			v = value[i]
		default:
			r.t.Fatalf("%s: the response has no %s.%s\n%s", r.request, part, member, r.Body)
		}
	}

	return v
}

func (r *Reply) equal(description string, got, want any) {
	r.t.Helper()

	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Fatalf("%s: got %s %v, want %v\n%s", r.request, description, got, want, r.Body)
	}
}

// Until polls a condition until it holds, see [pgtest.Eventually].
func Until(t testing.TB, description string, condition func() bool) {
	t.Helper()

	pgtest.Eventually(t, description, condition)
}

// Log is a concurrency-safe buffer for a server log, or a view into such a buffer from a position
// on.
type Log struct {
	mu   sync.Mutex
	text strings.Builder

	of    *Log // nil: no view
	start int
}

// fromNow returns a view into the log that begins with the next record.
func (l *Log) fromNow() *Log { return &Log{of: l, start: len(l.String())} }

// Write appends to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(b)
}

// String returns the log so far.
func (l *Log) String() string {
	if l.of != nil {
		return l.of.String()[l.start:]
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}
