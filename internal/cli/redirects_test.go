package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/standalone"
)

// rawClient sends requests byte for byte; a client library would normalize them.
type rawClient struct {
	*testing.T
	address string
	conn    net.Conn
	answers *bufio.Reader
	sent    int
}

// answer sends a request and returns the response, whose body is read.
func (c *rawClient) answer(method, target string, headers ...string) *http.Response {
	c.Helper()

	c.sent++
	text := strings.Join(
		append([]string{method + " " + target + " HTTP/1.1", "Host: socle.example", "Content-Length: 0"}, headers...),
		"\r\n",
	) + "\r\n\r\n"

	for again := range 2 { // the server may have closed the connection
		if c.conn == nil {
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				c.Fatal(err)
			}

			c.Cleanup(func() { conn.Close() })
			c.conn, c.answers = conn, bufio.NewReader(conn)
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
		}

		_, err := io.WriteString(c.conn, text)
		var res *http.Response
		if err == nil {
			res, err = http.ReadResponse(c.answers, &http.Request{Method: method})
		}
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}

		if err != nil || res.Close {
			_ = c.conn.Close()
			c.conn = nil
		}
		if err == nil {
			return res
		}

		if again == 1 {
			c.Fatalf("%s %s: %v", method, target, err)
		}
	}

	return nil
}

// redirectTargets are targets that a careless server redirects to another host or path.
var redirectTargets = []string{"//", "///", "/.", "/./", "/../", "/..//", "//evil.example", "//evil.example/..",
	"//evil.example/%2e%2e", "///evil.example/x", "/%2f%2fevil.example", "/%2F%2Fevil.example/..", `/\evil.example`,
	`//\evil.example`, "/%5cevil.example", "/%5c%5cevil.example/..", "/..//evil.example", "/%2e%2e//evil.example",
	"/.%2e/x", "/;//evil.example", "/%09/evil.example", "/%00//evil.example", "//evil.example%2f..", "/@evil.example",
	"/evil.example:80", "http://evil.example//x", "http://evil.example", "http://evil.example/..", "*",
	"/?redirect_to=https://evil.example", "//?next=//evil.example"}

// pathVariants are alternative spellings of a path, and parameters that ask for a redirect.
var pathVariants = []string{
	"%s", "%s/", "/%s", "%s//", "%s/.", "%s/x/..", "%s/%%2e%%2e", `%s\`, "%s%%2f",
	"%s?redirect_to=//evil.example&next=//evil.example&url=//evil.example&return_to=//evil.example",
}

var placeholder = regexp.MustCompile(`\{[^}]+\}`)

// TestNothingRedirects requests paths in non-canonical spellings from every listener. No response
// redirects, except the Location of a created upload.
func TestNothingRedirects(t *testing.T) {
	t.Parallel()

	// An address that no other test uses.
	metrics := fmt.Sprintf("127.%d.%d.%d:9091", 1+rand.IntN(200), rand.IntN(250), 1+rand.IntN(250))
	a := apitest.New(t, func(c *config.Config) { c.MetricsAddr = metrics })
	a.CreateTable("orders")

	container := a.Create("/containers", `{"name": "pictures", "is_public": true}`)
	a.Send("PUT", "/files/"+a.Project+"/"+container+"/a.txt", "text", "Content-Type: text/plain").Want(200)

	paths := []string{"/docs", "/healthz", "/readyz", "/openapi.json", "/.well-known/jwks.json",
		"/projects/" + a.Project + "/rest/v1", "/projects/" + a.Project + "/rest/v1/orders",
		"/projects/" + a.Project + "/rest/v1/rpc/f", "/files/" + a.Project + "/" + container,
		"/files/" + a.Project + "/" + container + "/a.txt", "/files/" + a.Project + "/" + container + "/a.txt/",
		"/containers/" + container + "/tus"}

	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(a.Get("/openapi.json").Want(200).Body, &document); err != nil {
		t.Fatal(err)
	}

	var described []string
	for path := range document.Paths {
		described = append(described, placeholder.ReplaceAllString(path, apitest.MissingUUID))
	}

	c, err := standalone.Load("", []string{
		"PGRST_DB_URI=" + pgtest.URL(t), "PGRST_DB_ANON_ROLE=postgres", "PGRST_SERVER_HOST=127.0.0.1",
		"PGRST_SERVER_PORT=0", "PGRST_ADMIN_SERVER_HOST=127.0.0.1", "PGRST_ADMIN_SERVER_PORT=0",
	})
	if err != nil {
		t.Fatal(err)
	}

	s, err := standalone.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	t.Cleanup(func() {
		stop()
		<-ended
	})

	sent := 0
	for name, on := range map[string]struct {
		address       string
		paths, shapes []string
		methods       []string
		headers       []string
	}{
		"what is there": {a.URL, paths, pathVariants, []string{"GET", "POST", "OPTIONS", "CONNECT"},
			[]string{"Authorization: Bearer " + a.Token, "X-Project: " + a.Project, "Tus-Resumable: 1.0.0",
				"Upload-Length: 3"}},
		"operations": {a.URL, described, []string{"%s/", "/%s"}, []string{"GET"}, nil},
		"metrics":    {metrics, []string{"/metrics"}, pathVariants, []string{"GET", "POST"}, nil},
		"rows": {s.URL, []string{"/", "/pg_class", "/rpc/f"}, pathVariants,
			[]string{"GET", "POST", "CONNECT"}, nil},
		"watching": {s.AdminURL, []string{"/live", "/ready", "/config", "/metrics", "/schema_cache"}, pathVariants,
			[]string{"GET", "POST"}, nil},
	} {
		targets := redirectTargets
		for _, path := range on.paths {
			for _, shape := range on.shapes {
				targets = append(targets[:len(targets):len(targets)], fmt.Sprintf(shape, path))
			}
		}

		c := &rawClient{
			T: t, address: strings.Replace(strings.TrimPrefix(on.address, "http://"), "localhost", "127.0.0.1", 1),
		}

		for _, target := range targets {
			for _, method := range on.methods {
				res := c.answer(method, target, on.headers...)
				to := res.Header.Values("Location")
				if made := res.StatusCode == http.StatusCreated && len(to) == 1 &&
					strings.HasPrefix(to[0], "/containers/"); !made && (len(to) > 0 || res.StatusCode/100 == 3) {
					t.Errorf("%s: %s %s: got %d, Location %q", name, method, target, res.StatusCode, to)
				}
			}
		}

		sent += c.sent
	}

	t.Log(sent, "requests")
}
