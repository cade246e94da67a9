package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/socle-dev/socle/client"
)

// respond starts a server that answers every request with a status and a body.
func respond(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
}

func Example() {
	server := respond(http.StatusCreated, `{
		"content": {"uuid": "01912b8c-0000-7000-8000-000000000001", "name": "library"},
		"errors": [], "metadata": {}, "success": true}`)
	defer server.Close()

	c := &client.Client{URL: server.URL, Token: "socle_pat_example"}

	reply, err := c.Do(context.Background(), client.Request{
		Method: "POST",
		Path:   "/projects",
		Body:   map[string]any{"name": "library"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	var project struct{ UUID, Name string }
	if err := reply.Into(&project); err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(reply.Status, project.Name, project.UUID)
	// Output: 201 library 01912b8c-0000-7000-8000-000000000001
}

func ExampleClient_Login() {
	server := respond(http.StatusOK, `{
		"content": {"username": "ada"}, "errors": [], "success": true,
		"metadata": {"token": "header.payload.signature", "expiresAt": "2030-01-01T01:00:00Z",
			"refreshToken": "socle_refresh_example", "refreshExpiresAt": "2030-01-31T00:00:00Z"}}`)
	defer server.Close()

	c := &client.Client{URL: server.URL}

	session, err := c.Login(context.Background(), "ada@example.com", "correct horse battery", "")
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println("expires", session.ExpiresAt.Format("2006-01-02 15:04"))
	fmt.Println("client uses the token:", c.Token == session.Token)
	// Output:
	// expires 2030-01-01 01:00
	// client uses the token: true
}

func ExampleClient_Do_error() {
	server := respond(http.StatusNotFound, `{
		"content": "null", "errors": ["There is no such project."], "success": false,
		"metadata": {"code": "not_found", "detail": "There is no such project.", "fields": [],
			"requestId": "01912b8c-0000-7000-8000-000000000002"}}`)
	defer server.Close()

	c := &client.Client{URL: server.URL, Token: "socle_pat_example"}

	_, err := c.Do(context.Background(), client.Request{
		Method: "GET",
		Path:   "/projects/" + url.PathEscape("01912b8c-0000-7000-8000-000000000003"),
	})
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Status, e.Code)
		fmt.Println(e)
	}
	// Output:
	// 404 not_found
	// There is no such project.
}

func ExampleClient_Open() {
	server := respond(http.StatusOK, "What was found.\n")
	defer server.Close()

	c := &client.Client{URL: server.URL, Token: "socle_pat_example"}

	res, err := c.Open(context.Background(), client.Request{
		Method: "GET",
		Path:   "/containers/01912b8c-0000-7000-8000-000000000004/files/01912b8c-0000-7000-8000-000000000005/download",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Print(string(text))
	// Output: What was found.
}
