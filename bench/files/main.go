// Command files measures what is done with files: the list of a container of a million of them, wherever the page is and
// whatever it is sorted by; uploads and downloads beside nginx, which serves and receives the same bytes on the same disk, by the
// clock and by the time of a processor that they cost; backup and restore beside bare pg_dump and pg_restore.
//
//	go run ./bench/files [-what lists,bytes,backups] [-files 1000000] [-rounds 50] [-nginx nginx] [-sizes 1,100,1024] [-gigabytes 1]
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
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"socle/internal/config"
	"socle/internal/server"
)

var (
	what      = flag.String("what", "lists,bytes,backups", "what is measured")
	files     = flag.Int("files", 1_000_000, "files in the container that is listed")
	rounds    = flag.Int("rounds", 50, "requests for each page, of which the median and the 95th percentile are printed")
	repeats   = flag.Int("repeats", 5, "rounds of transfers and backups, of which the median and the best are printed")
	sizes     = flag.String("sizes", "1,100,1024", "MiB of the files that are transferred")
	only      = flag.String("only", "", "the transfers that are measured, by what their name begins with; empty: all")
	nginx     = flag.String("nginx", "nginx", "nginx's program")
	gigabytes = flag.Float64("gigabytes", 1, "size of the database that is backed up")
	postgres  = flag.String("postgres-bin", "", "folder of PostgreSQL's programs; empty: the usual places")
	dir       = flag.String("dir", "", "folder on the disk that is measured; empty: the usual one for temporary files")
)

func main() {
	flag.Parse()
	if *what == "carry" { // see carrier
		if err := carryAll(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// bench is a running server with one user, one project and one container.
type bench struct {
	client
	server    *server.Server
	config    config.Config
	dir       string
	id        uuid.UUID // the project's
	container string
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp(*dir, "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		return err
	}
	c, err := config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off", "SOCLE_POSTGRES_BIN=" + *postgres}, nil)
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	defer func() { stop(); <-stopped }()

	b := bench{client: client{url: s.URL}, server: s, config: c, dir: dir}
	if err := b.furnish(); err != nil {
		return err
	}
	for _, of := range []struct {
		name    string
		measure func(context.Context) error
	}{{"lists", b.lists}, {"bytes", b.transfers}, {"backups", b.backups}} {
		if !slices.Contains(strings.Split(*what, ","), of.name) {
			continue
		}
		if err := of.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
	}
	return nil
}

// furnish makes a user, a project and a container.
func (b *bench) furnish() error {
	made, err := b.send("POST", "/users", `{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}
	b.token = made.Metadata.Token
	if made, err = b.send("POST", "/projects", `{"name": "bench"}`); err != nil {
		return err
	}
	b.project = made.Content.UUID
	if b.id, err = uuid.Parse(b.project); err != nil {
		return err
	}
	made, err = b.send("POST", "/containers", `{"name": "bench", "is_public": true, "max_file_size": 5368709120}`)
	b.container = made.Content.UUID
	return err
}

// client is a user.
type client struct{ url, token, project string }

type reply struct {
	Content  struct{ UUID, Status, Error string }
	Metadata struct{ Token, ProvenAt string }
}

func (c client) request(method, path string, body io.Reader) (*http.Request, error) {
	q, err := http.NewRequest(method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+c.token)
	if c.project != "" {
		q.Header.Set("X-Project", c.project)
	}
	return q, nil
}

func (c client) send(method, path, body string) (r reply, err error) {
	q, err := c.request(method, path, bytes.NewBufferString(body))
	if err != nil {
		return r, err
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 202 {
		return r, fmt.Errorf("%s %s: %s %v", method, path, text, err)
	}
	if bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(`"content":{`)) {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// median returns the middle of what was measured, and the best.
func median(all []time.Duration) (middle, best time.Duration) {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2], sorted[0]
}
