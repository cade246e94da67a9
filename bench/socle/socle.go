// Package socle runs a server for a benchmark: in this process, in a temporary folder, with one
// user and one project.
package socle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/server"
)

// Socle is a running server with a user.
type Socle struct {
	*server.Server
	Config  config.Config
	Dir     string    // for files of the benchmark; has the server's data, too
	Token   string    // the user's
	Project uuid.UUID // the user's
}

// Run calls f with a server, and stops it afterwards. parent is the folder of its temporary folder;
// "" means the default. settings extend the settings that the server needs.
func Run(
	ctx context.Context, parent string, settings []string, log *slog.Logger, f func(context.Context, *Socle) error,
) error {
	dir, err := TempDir(parent, "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	c, err := config.Load(
		append(Settings(dir), settings...), nil,
	)
	if err != nil {
		return err
	}

	s, err := server.Start(ctx, c, log)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()

	var memory sync.WaitGroup
	memory.Go(func() { server.ReleaseMemory(ctx) })

	defer func() { stop(); <-stopped; memory.Wait() }()

	b := &Socle{Server: s, Config: c, Dir: dir}
	if err := b.signUp(); err != nil {
		return err
	}

	return f(ctx, b)
}

// Settings returns those of a server with its data in a folder: a free port, no rate limits.
func Settings(dir string) []string {
	return []string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off",
		"SOCLE_DRAIN=0s"}
}

func (s *Socle) signUp() error {
	user, err := Send[struct{}](s, "POST", "/users",
		strings.NewReader(`{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`))
	if err != nil {
		return err
	}

	s.Token = user.Metadata.Token
	project, err := Send[struct{ UUID uuid.UUID }](s, "POST", "/projects", strings.NewReader(`{"name": "bench"}`))
	s.Project = project.Content.UUID

	return err
}

// Request returns a request of the user, in the project.
func (s *Socle) Request(method, path string, body io.Reader) (*http.Request, error) {
	q, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		return nil, err
	}

	if s.Token != "" {
		q.Header.Set("Authorization", "Bearer "+s.Token)
	}
	if s.Project != uuid.Nil {
		q.Header.Set("X-Project", s.Project.String())
	}

	q.Header.Set("Content-Type", "application/json")
	return q, nil
}

// Do sends a request, as JSON unless a type is given, and returns the response body. It fails
// without a status of success.
func (s *Socle) Do(method, path string, body io.Reader, contentType ...string) ([]byte, error) {
	q, err := s.Request(method, path, body)
	if err != nil {
		return nil, err
	}

	for _, t := range contentType {
		q.Header.Set("Content-Type", t)
	}

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, path, text)
	}

	return text, err
}

// Reply is a response with a content.
type Reply[C any] struct {
	Content  C
	Metadata struct{ Token, Key, ProvenAt string }
}

// Send is [Socle.Do] with a parsed response.
func Send[C any](s *Socle, method, path string, body io.Reader, contentType ...string) (r Reply[C], err error) {
	text, err := s.Do(method, path, body, contentType...)
	if err != nil {
		return r, err
	}

	return r, json.Unmarshal(text, &r)
}
