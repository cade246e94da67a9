package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/config"
	"socle/internal/server"
	"socle/internal/tenant"
)

// process is a started server.
type process struct {
	*exec.Cmd
	url string
}

// start starts a server, and waits until it prints its address as the last word of a line.
func start(cmd *exec.Cmd) (process, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return process{}, err
	}

	cmd.Stderr = os.Stderr

	if err := cmd.Start(); err != nil {
		return process{}, err
	}

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return process{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}

	go func() { _, _ = io.Copy(io.Discard, out) }()

	fields := strings.Fields(line)
	return process{cmd, fields[len(fields)-1]}, nil
}

// stop stops the server.
func (p process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	_ = p.Wait()
}

// socle is a running Socle with one user, one project with tables and rows, and one publishable
// key.
type socle struct {
	process
	postmaster string // process ID of PostgreSQL
	id         uuid.UUID
	key        string
	project    *tenant.Project
}

// rows is the URL of the project's rows.
func (s socle) rows() string { return s.url + "/projects/" + s.id.String() + "/rest/v1" }

// startSocle starts Socle and sets it up.
func startSocle(ctx context.Context, dir string) (s socle, err error) {
	if *program == "" {
		*program = filepath.Join(dir, "socle")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", *program,
			"./cmd/socle").CombinedOutput(); err != nil {
			return s, fmt.Errorf("build socle: %w\n%s", err, out)
		}
	}

	settings := []string{
		"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off",
		"SOCLE_LOG_LEVEL=warn",
	}

	cmd := exec.Command(*program, "serve")
	cmd.Env = append(os.Environ(), settings...)
	if s.process, err = start(cmd); err != nil {
		return s, err
	}

	if s.postmaster, err = findPostmaster(dir); err == nil {
		err = s.setUp(ctx, settings)
	}

	if err != nil {
		s.stop()
	}

	return s, err
}

// setUp creates the user, the project and the key.
func (s *socle) setUp(ctx context.Context, settings []string) error {
	user, err := s.post("/users", "",
		`{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}

	made, err := s.post("/projects", user.Metadata.Token, `{"name": "bench"}`)
	if err != nil {
		return err
	}

	s.id = made.Content.UUID
	key, err := s.post("/projects/"+s.id.String()+"/keys", user.Metadata.Token,
		`{"name": "bench", "kind": "publishable"}`)
	if err != nil {
		return err
	}

	s.key = key.Metadata.Key

	c, err := config.Load(settings, nil)
	if err != nil {
		return err
	}

	log := slog.New(slog.DiscardHandler)
	database, secret, err := server.Attach(ctx, c, log)
	if err != nil {
		return err
	}

	registry, err := database.Registry(ctx, secret, log)
	if err != nil {
		return err
	}

	s.project = registry.Open(s.id)
	_, err = s.project.Owner().Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol)
	return err
}

type reply struct {
	Content  struct{ UUID uuid.UUID }
	Metadata struct{ Token, Key string }
}

func (s *socle) post(path, token, body string) (r reply, err error) {
	q, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}

	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()

	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(res.Body)
		return r, fmt.Errorf("%s: %s", path, text)
	}

	return r, json.NewDecoder(res.Body).Decode(&r)
}
