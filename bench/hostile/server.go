package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

// server is Socle in a separate process.
type server struct {
	process *socle.Process
	url     string
	data    string
	client  *http.Client

	postgresAddr string    // for PostgreSQL clients
	shared       []account // projects of the attacker, see [environment.projects]
}

// start builds Socle, and starts it with a private PostgreSQL in a folder.
func start(ctx context.Context, dir string) (*server, error) {
	if *program == "" {
		built, err := socle.Build(ctx, dir)
		if err != nil {
			return nil, err
		}

		*program = built
	}

	logs, err := os.Create(filepath.Join(dir, "socle.log"))
	if err != nil {
		return nil, err
	}
	defer logs.Close()

	s := &server{data: filepath.Join(dir, "data"),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
	certificate, key, err := writeCertificate(dir)
	if err != nil {
		return nil, err
	}
	if s.postgresAddr, err = freeAddress(); err != nil {
		return nil, err
	}

	cmd := exec.Command(*program, "serve")
	cmd.Env = append(os.Environ(), "SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR="+s.data, "SOCLE_LOG_LEVEL=warn",
		"SOCLE_POSTGRES_BIN="+*postgres, "SOCLE_POSTGRES_ADDR="+s.postgresAddr, "SOCLE_POSTGRES_TLS_CERT="+certificate,
		"SOCLE_POSTGRES_TLS_KEY="+key, "SOCLE_OUTBOUND_NETWORKS=127.0.0.0/8")
	cmd.Stderr = logs

	if s.process, err = socle.StartSocle(cmd); err != nil {
		text, _ := os.ReadFile(logs.Name())
		return nil, fmt.Errorf("%w\n%s", err, text)
	}

	s.url = s.process.URL
	return s, nil
}

// stop stops the server and its PostgreSQL, and kills the server after a minute.
func (s *server) stop() {
	kill := time.AfterFunc(time.Minute, s.process.Kill)
	defer kill.Stop()

	s.process.Stop()
}

func (s *server) alive() bool {
	select {
	case <-s.process.Ended:
		return false
	default:
		return true
	}
}

// account is a user with a project, a table and a publishable key of it.
type account struct{ name, email, token, project, key string }

const password = "correct horse battery"

// newAccount creates an account with a table of 200 rows, readable by anonymous callers.
func (s *server) newAccount(name string) (a account, err error) {
	a = account{name: name, email: name + "@example.com"}
	user, err := s.json("POST", "/users", a,
		fmt.Sprintf(`{"username": %q, "email": %q, "password": %q}`, name, a.email, password))
	if err != nil {
		return a, err
	}

	a.token = user.text("metadata", "token")
	project, err := s.json("POST", "/projects", a, `{"name": "hostile"}`)
	if err != nil {
		return a, err
	}

	a.project = project.text("content", "uuid")
	key, err := s.json("POST", "/projects/"+a.project+"/keys", a, `{"name": "hostile", "kind": "publishable"}`)
	if err != nil {
		return a, err
	}

	a.key = key.text("metadata", "key")
	_, err = s.json("POST", "/sql", a,
		`{"read_only": false, "query": "create table items (id serial primary key, name text); insert into items (name) select 'x' from generate_series(1, 200); alter table items disable row level security; grant all on items to anon; grant usage on sequence items_id_seq to anon"}`)
	return a, err
}

// answer is a JSON response.
type answer map[string]any

// text returns a nested member.
func (a answer) text(path ...string) string {
	var at any = map[string]any(a)
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}

	s, _ := at.(string)
	return s
}

// json sends JSON as an account, and returns the response. It fails without a status of success.
func (s *server) json(method, path string, a account, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	status, text, err := s.send(ctx, method, path, a, []byte(body), "application/json")
	if err != nil {
		return nil, err
	}

	if status >= 300 {
		return nil, fmt.Errorf("%s %s: %d %.300s", method, path, status, text)
	}

	var got answer
	return got, json.Unmarshal(text, &got)
}

// send sends a request as an account, with its key for the rows API, and returns the first megabyte
// of the response.
func (s *server) send(
	ctx context.Context, method, path string, a account, body []byte, contentType string,
) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}

	r.Header.Set("Content-Type", contentType)

	switch {
	case strings.Contains(path, "/rest/v1"), strings.Contains(path, "/auth/v1"):
		r.Header.Set("apikey", a.key)
	case a.token != "":
		r.Header.Set("Authorization", "Bearer "+a.token)
	}

	if a.project != "" {
		r.Header.Set("X-Project", a.project)
	}

	res, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	_, _ = io.Copy(io.Discard, res.Body)

	return res.StatusCode, text, err
}

// summarize summarizes a response.
func summarize(status int, text []byte, err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "nothing in time"
	case err != nil:
		var e *net.OpError
		if errors.As(err, &e) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "cut off"
		}

		return "failed"
	}

	var got answer
	_ = json.Unmarshal(text, &got)
	code := got.text("metadata", "code")
	if code == "" {
		code = got.text("code")
	}

	return strings.TrimSpace(strconv.Itoa(status) + " " + code)
}
