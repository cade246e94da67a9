package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

// install is two servers behind the balancer, with a project: one reaches PostgreSQL through
// HAProxy, one has the addresses of all nodes.
type install struct {
	dir, program string
	secret       string // SOCLE_SECRET_KEY
	url          string // the balancer's
	databases    [2]string
	ports        [2]int
	servers      [2]*socle.Process

	client    *http.Client
	token     string
	project   string
	secretKey string
	form      string
	field     string
	container string

	ledAt    time.Time      // when the last event had another node lead
	sessions <-chan settled // on it
}

func startInstall(ctx context.Context, c *cluster, dir string) (*install, error) {
	program, err := socle.Build(ctx, dir)
	if err != nil {
		return nil, err
	}

	root := filepath.Join(c.dir, "ca.crt")
	login := "postgres://postgres:" + superuserPassword + "@"
	i := &install{
		dir: dir, program: program, secret: newSecret(), ports: c.servers,
		url: fmt.Sprintf("http://127.0.0.1:%d", c.balancer),
		databases: [2]string{
			fmt.Sprintf("%s127.0.0.1:%d/socle?sslmode=verify-ca&sslrootcert=%s", login, c.primary, root),
			login + c.hosts() + "/socle?target_session_attrs=read-write&sslmode=verify-full&sslrootcert=" + root,
		},
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
	}

	create := exec.CommandContext(ctx, filepath.Join(c.binaries, "psql"),
		fmt.Sprintf("%s127.0.0.1:%d/postgres", login, c.primary), "-c", "create database socle")
	if err := await(ctx, "HAProxy leads to a primary", func() bool {
		return exec.Command(create.Path, create.Args[1:]...).Run() == nil
	}); err != nil {
		return nil, err
	}

	for n := range i.servers {
		if i.servers[n], err = i.serve(ctx, n); err != nil {
			return nil, err
		}
	}
	if err := await(ctx, "the balancer finds the servers", func() bool {
		res, err := i.client.Get(i.url + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	}); err != nil {
		return nil, err
	}

	return i, i.setUp(ctx)
}

func newSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails

	return base64.StdEncoding.EncodeToString(secret)
}

// serve starts server n.
func (i *install) serve(_ context.Context, n int) (*socle.Process, error) {
	name := filepath.Join(i.dir, fmt.Sprintf("socle%d.log", n+1))
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	cmd := exec.Command(i.program, "serve")
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOCLE_ADDR=127.0.0.1:%d", i.ports[n]), "SOCLE_RATE_LIMIT=off",
		"SOCLE_DATA_DIR="+filepath.Join(i.dir, fmt.Sprintf("data%d", n+1)), "SOCLE_SECRET_KEY="+i.secret,
		"SOCLE_STORAGE_URL=file://"+filepath.Join(i.dir, "storage"), "SOCLE_DATABASE_URL="+i.databases[n],
		"SOCLE_PUBLIC_URL="+i.url)

	return socle.StartSocle(cmd)
}

func (i *install) stop() {
	for _, s := range i.servers {
		if s != nil {
			s.Kill()
			<-s.Ended
		}
	}
}

// reply is an answer of the platform API.
type reply struct {
	Content  map[string]any
	Metadata map[string]any
}

// setUp makes a user and all that the writers need.
func (i *install) setUp(ctx context.Context) error {
	var r reply
	for _, step := range []struct {
		method, path, body string
		keep               func()
	}{
		{"POST", "/users", `{"username": "ada", "email": "ada@example.com", "password": "correct horse battery"}`,
			func() { i.token, _ = r.Metadata["token"].(string) }},
		{"POST", "/projects", `{"name": "bench"}`, func() { i.project, _ = r.Content["uuid"].(string) }},
		{"POST", "/sql", `{"query": "create table writes (id text primary key)", "read_only": false}`, nil},
		{"POST", "/forms", `{"name": "Feedback"}`, func() { i.form, _ = r.Content["uuid"].(string) }},
		{"POST", "/forms/{form}/fields", `{"label": "id", "type": "text"}`,
			func() { i.field, _ = r.Content["uuid"].(string) }},
		{"POST", "/containers", `{"name": "uploads"}`, func() { i.container, _ = r.Content["uuid"].(string) }},
		{"POST", "/projects/{project}/keys", `{"name": "bench", "kind": "secret"}`,
			func() { i.secretKey, _ = r.Metadata["key"].(string) }},
		{"PUT", "/forms/{form}", `{"state": "open"}`, nil},
	} {
		r = reply{}
		if err := i.call(ctx, step.method, i.fill(step.path), step.body, &r); err != nil {
			return err
		}
		if step.keep != nil {
			step.keep()
		}
	}

	return nil
}

// call sends a request as the user, and reads the answer into r.
func (i *install) call(ctx context.Context, method, path, body string, r *reply) error {
	text, status, _, err := i.send(ctx, method, path, []byte(body), nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, r); status >= 300 || err != nil {
		return fmt.Errorf("%s %s: %d %s", method, path, status, text)
	}

	return nil
}

// fill puts identifiers into a path.
func (i *install) fill(path string) string {
	for name, value := range map[string]string{"{form}": i.form, "{project}": i.project, "{container}": i.container} {
		path = string(bytes.ReplaceAll([]byte(path), []byte(name), []byte(value)))
	}

	return path
}

// send sends a request as the user, and returns the body and the status.
func (i *install) send(
	ctx context.Context, method, path string, body []byte, header map[string]string,
) ([]byte, int, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, i.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, nil, err
	}

	r.Header.Set("Content-Type", "application/json")
	if i.token != "" {
		r.Header.Set("Authorization", "Bearer "+i.token)
	}
	if i.project != "" {
		r.Header.Set("X-Project", i.project)
	}
	for name, value := range header {
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}

	res, err := i.client.Do(r)
	if err != nil {
		return nil, 0, nil, err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	return text, res.StatusCode, res.Header, err
}
