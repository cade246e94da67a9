package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestOversizedRequests checks that an oversized request is refused as a whole, and that the next
// one succeeds.
func TestOversizedRequests(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	before := databaseState(t, a)
	head := "Host: x\r\nAuthorization: Bearer " + a.Token + "\r\nX-Project: " + a.Project + "\r\n"
	for name, request := range map[string]string{
		"a megabyte of path": "GET /tables/" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\n" + head + "\r\n",
		"a megabyte of header": "GET /tables HTTP/1.1\r\n" + head + "X-Long: " +
			strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"100 000 headers":    "GET /tables HTTP/1.1\r\n" + head + strings.Repeat("X: y\r\n", 100_000) + "\r\n",
		"100 000 parameters": "GET /tables?" + strings.Repeat("a=1&", 100_000) + " HTTP/1.1\r\n" + head + "\r\n",
		"10 000 parameters":  "GET /tables?" + strings.Repeat("a=1&", 10_000) + " HTTP/1.1\r\n" + head + "\r\n",
	} {
		if got := sendRaw(t, a, request); got != 400 && got != 414 && got != 431 {
			t.Errorf("%s: got %d, want 400, 414 or 431", name, got)
		}
	}

	var members strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&members, `"m%d": %d, `, i, i)
	}

	a.Put("/containers/"+c, "{"+members.String()+`"name": ""}`).Want(422).Field("name")
	a.Put("/containers/"+c, "{"+members.String()+members.String()+`"name": ""}`).Want(400)
	a.Put("/containers/"+c, `{"description": `+strings.Repeat("[", 400_000)+strings.Repeat("]", 400_000)+"}").Want(400).
		Code("malformed_json")

	a.Put("/containers/"+c, `{"description": [`+strings.Repeat("0,", 400_000)+"0]}").Want(422).Field("description")
	a.Put("/containers/"+c, `{"description": "`+strings.Repeat("a", 1<<20-100)+`"}`).Want(422).Field("description")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}

	a.Put("/containers/"+c, `{"description": "as ever"}`).Want(200)
}
