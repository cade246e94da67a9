package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestIdempotencyKeyOfUploads checks that a repeated upload under a key is compared by the bytes of
// the file, regardless of the encoding of its body.
func TestIdempotencyKeyOfUploads(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	send := func(body, key string) *apitest.Reply {
		t.Helper()

		return a.Send("POST", "/containers/"+c+"/files", body, "Content-Type: multipart/form-data; boundary="+boundary,
			"Idempotency-Key: "+key)
	}

	first := send(multipartOf("a.txt", "hello"), "one").Want(201)
	repeated := send(multipartOf("a.txt", "hello"), "one").Want(201)
	if got, want := string(repeated.Body), string(first.Body); got != want ||
		repeated.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s, want %s", got, want)
	}

	a.Send("POST", "/containers/"+c+"/files",
		strings.ReplaceAll(multipartOf("a.txt", "hello"), boundary, strings.ToUpper(boundary)),
		"Content-Type: multipart/form-data; boundary="+strings.ToUpper(boundary), "Idempotency-Key: one").Want(201)

	send(multipartOf("a.txt", "jello"), "one").Want(409).Code("idempotency_key_reused")
	send(multipartOf("b.txt", "hello"), "one").Want(409).Code("idempotency_key_reused")
	send(multipartOf("a.txt", "hello, world"), "one").Want(409)
	send(multipartOf("a.txt", "hello")[:100], "one").Want(409) // truncated
	send(multipartOf("a.txt", "taken"), "two").Want(409).Code("already_exists")
	send(multipartOf("c.txt", "taken"), "two").Want(201) // a failed request can be corrected

	rows := func(body, key string) *apitest.Reply {
		t.Helper()

		return a.Send("POST", "/tables/import?name=imported", body, "Content-Type: text/csv", "Idempotency-Key: "+key)
	}

	rows("a,b\n1,2\n", "rows").Want(201)
	rows("a,b\n1,2\n", "rows").Want(201)
	rows("a,b\n1,3\n", "rows").Want(409).Code("idempotency_key_reused")
	wantFiles(t, a, 2)
}
