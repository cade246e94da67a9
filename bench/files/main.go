// Command files measures the list of a container of a million files: the time of a page over HTTP, wherever it is.
//
//	go run ./bench/files [-files 1000000] [-rounds 50]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"socle/internal/config"
	"socle/internal/server"
)

var (
	files  = flag.Int("files", 1_000_000, "files in the container")
	rounds = flag.Int("rounds", 50, "requests for each page, of which the median and the 95th percentile are printed")
)

const batch = 50_000 // rows of one statement

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off"}, nil)
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	defer func() { stop(); <-stopped }()

	user := client{url: s.URL}
	made, err := user.send("POST", "/users", `{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}
	user.token = made.Metadata.Token
	if made, err = user.send("POST", "/projects", `{"name": "bench"}`); err != nil {
		return err
	}
	project, err := uuid.Parse(made.Content.UUID)
	if err != nil {
		return err
	}
	user.project = project.String()
	if made, err = user.send("POST", "/containers", `{"name": "bench"}`); err != nil {
		return err
	}
	container := made.Content.UUID
	began := time.Now()
	pool := s.Projects().Open(project).Trusted()
	for first := 1; first <= *files; first += batch {
		if _, err := pool.Exec(ctx, `
			insert into storage.files (uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_at, created_by, updated_by)
			select gen_random_uuid(), $1, 'folder ' || n % 100 || '/file ' || n, 'text/plain', n, decode(repeat('00', 32), 'hex'), gen_random_uuid(),
			       now() - make_interval(secs => $4::int - n), $1, $1
			from generate_series($2::int, $3::int) n`, container, first, min(first+batch-1, *files), *files); err != nil {
			return err
		}
	}
	if _, err := pool.Exec(ctx, `vacuum analyze storage.files`); err != nil {
		return err
	}
	fmt.Printf("%d files in %s\n%-40s %10s %10s\n", *files, time.Since(began).Round(time.Second), "page", "median", "p95")
	last := *files / 100
	for _, page := range []string{"?limit=100", "?limit=100&page=21", fmt.Sprintf("?limit=100&page=%d", last/2), fmt.Sprintf("?limit=100&page=%d", last),
		"?limit=20&page=10000", "?limit=20&page=10000&order=desc"} {
		var times []time.Duration
		for range *rounds {
			at := time.Now()
			if _, err := user.send("GET", "/containers/"+container+"/files"+page, ""); err != nil {
				return err
			}
			times = append(times, time.Since(at))
		}
		slices.Sort(times)
		fmt.Printf("%-40s %10s %10s\n", page, times[len(times)/2].Round(10*time.Microsecond), times[len(times)*95/100].Round(10*time.Microsecond))
	}
	return nil
}

// client is a user.
type client struct{ url, token, project string }

type reply struct {
	Content  struct{ UUID string }
	Metadata struct{ Token string }
}

func (c client) send(method, path, body string) (r reply, err error) {
	q, err := http.NewRequest(method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		return r, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+c.token)
	if c.project != "" {
		q.Header.Set("X-Project", c.project)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 201 {
		return r, fmt.Errorf("%s %s: %s %v", method, path, text, err)
	}
	if method == "POST" {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}
