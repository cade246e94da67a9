package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/api/apitest"
)

// countedBody is a body that counts the bytes read.
type countedBody struct {
	*bytes.Reader
	read int
}

func (c *countedBody) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += n

	return n, err
}

func (c *countedBody) Close() error { return nil }

// pathParam matches a path parameter of the OpenAPI document.
var pathParam = regexp.MustCompile(`\{[^}]*\}`)

type bodyOperation struct {
	id, method, path string
	limited          bool // the operation declares 429 and holds its body in memory
}

// bodyOperations returns the operations with a JSON body, with paths to missing entities.
func bodyOperations(t *testing.T) []bodyOperation {
	t.Helper()

	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}

	var all []bodyOperation
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if o.RequestBody.Content["application/json"] != nil {
				path := pathParam.ReplaceAllString(path, "00000000-0000-0000-0000-000000000001")
				streamed := len(o.RequestBody.Content) > 1 // imports, which take other formats too
				all = append(all, bodyOperation{
					o.OperationID, strings.ToUpper(method), path, o.Responses["429"] != nil && !streamed,
				})
			}
		}
	}

	return all
}

// TestAnonymousBodies checks that no operation reads more than 16 KiB, and one byte beyond, of a
// body of 1 MiB sent without credentials.
func TestAnonymousBodies(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	text := []byte(`{"a":[` + strings.Repeat("{},", 1<<20/3-10) + `{}]}`)
	for _, o := range bodyOperations(t) {
		for _, length := range []int64{int64(len(text)), -1} {
			r := httptest.NewRequestWithContext(t.Context(), o.method, o.path, nil)
			body := &countedBody{Reader: bytes.NewReader(text)}
			r.Body, r.ContentLength = body, length
			r.Header.Set("Content-Type", "application/json")

			answer := httptest.NewRecorder()
			a.Server.Handler().ServeHTTP(answer, r)

			if answer.Code/100 != 4 || body.read > 17<<10 {
				t.Errorf("%s: got %d after %d bytes of the body, want a refusal: %s", o.id, answer.Code,
					body.read, answer.Body)
			}
		}
	}
}

// gatedBody is a body whose second half waits for the gate.
type gatedBody struct {
	io.Reader
	started chan<- struct{}
	gate    <-chan struct{}
	once    sync.Once
}

func (g *gatedBody) Read(b []byte) (int, error) {
	g.once.Do(func() {
		g.started <- struct{}{}
		<-g.gate
	})
	return g.Reader.Read(b)
}

func (g *gatedBody) Close() error { return nil }

// openOperations are the operations with 429 that need no credentials. Their bodies are too small
// for the budget.
var openOperations = []string{
	"createUser", "login", "forgetPassword", "resetPassword", "confirmEmail", "refreshSession",
}

// TestBodyBudget checks that the large bodies of one user leave room for those of others,
// and that more of the same user get 429.
func TestBodyBudget(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	other := a.SignUp("other")
	other.Project = other.CreateProject("project")
	large := `{"name": "Survey", "description": "` + strings.Repeat("x", 1_000_000) + `"}`
	started, gate := make(chan struct{}, 100), make(chan struct{})

	var wg sync.WaitGroup

	// in the process: a hundred large bodies take long over the network
	sendTo := func(
		from *apitest.API, method, path string, body io.ReadCloser,
	) (*http.Request, *httptest.ResponseRecorder) {
		r := from.Request(method, path, nil, "Content-Type: application/json").WithContext(t.Context())
		r.RequestURI, r.Body, r.ContentLength = r.URL.RequestURI(), body, int64(len(large))
		answer := httptest.NewRecorder()
		a.Server.Handler().ServeHTTP(answer, r)

		return r, answer
	}
	send := func(from *apitest.API, body io.ReadCloser) *httptest.ResponseRecorder {
		_, answer := sendTo(from, "POST", "/forms", body)
		return answer
	}

	const maxPerUser = 16 // of one user at once: a quarter of the budget, see httpx.Budget
	for range maxPerUser {
		wg.Go(func() {
			if got := send(a, &gatedBody{
				Reader:  strings.NewReader(large),
				started: started,
				gate:    gate,
			}); got.Code != http.StatusUnprocessableEntity {
				t.Errorf("a body within the budget: got %d: %s", got.Code, got.Body)
			}
		})
	}

	for range maxPerUser {
		<-started
	}

	var refused sync.WaitGroup // at once: each waits for room
	for _, o := range bodyOperations(t) {
		if !o.limited || slices.Contains(openOperations, o.id) {
			continue
		}

		refused.Go(func() {
			r, answer := sendTo(a, o.method, o.path, io.NopCloser(strings.NewReader(large)))
			if got := a.ReadReply(r, answer.Result()).Want(429).Metadata("code"); got != "too_busy" {
				t.Errorf("%s: got %v, want too_busy", o.id, got)
			}
		})
	}

	refused.Wait()
	a.Post("/forms", `{"name": "Small"}`).Want(201)

	if got := send(other, io.NopCloser(strings.NewReader(large))); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("another user's body: got %d: %s", got.Code, got.Body)
	}

	close(gate)
	wg.Wait()

	if got := send(a, io.NopCloser(strings.NewReader(large))); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("a body after them: got %d: %s", got.Code, got.Body)
	}
}
