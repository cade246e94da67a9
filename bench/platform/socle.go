package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/server"
)

// bench is a running Socle with one user and one project. Its exported fields are the parameters of
// the bare server.
type bench struct {
	*socle.Process `json:"-"`
	postmaster     string // process ID of PostgreSQL
	token          string

	Platform, Database database // of the platform, and of the project
	Folder             string   // for files of the bare server

	User, Session, Project string
	Containers             []string
	Uploads, Listed        string // containers: for uploads, and with files
	File                   string // of 1 MiB
	Form                   string
	Bare                   bool
}

// database has the connection parameters of a pool.
type database struct {
	Host           string
	Port           uint16
	Name           string
	User, Password string
	Connections    int32
}

func databaseOf(pool *pgxpool.Pool) database {
	c := pool.Config().ConnConfig
	return database{c.Host, c.Port, c.Database, c.User, c.Password, pool.Config().MaxConns}
}

// tables are those of the bare server, with the indexes of Socle's and without its triggers. Its
// audit entries have their own: Socle would chain them while it is measured.
const tables = `
	create schema bench;
	create table bench.files (like storage.files including all);
	create table bench.audit (like socle.audit_pending including all);
	create table bench.responses (like forms.responses including all);`

// startSocle starts Socle and sets it up.
func startSocle(ctx context.Context, dir string) (*bench, error) {
	settings := append(socle.Settings(dir), "SOCLE_LOG_LEVEL=warn")
	process, err := socle.Serve(ctx, *program, dir, settings)
	if err != nil {
		return nil, err
	}

	b := &bench{Process: process, Folder: filepath.Join(dir, "limit"), Bare: *bare}
	if err := b.setUp(ctx, dir, settings); err != nil {
		b.Stop()
		return nil, err
	}

	return b, nil
}

// setUp creates all that the operations need.
func (b *bench) setUp(ctx context.Context, dir string, settings []string) (err error) {
	if b.postmaster, err = socle.FindPostmaster(dir); err != nil {
		return err
	}

	user, err := b.send("POST", "/users", fmt.Sprintf(`{"username":"bench","email":%q,"password":%q}`, email, password))
	if err != nil {
		return err
	}

	b.token, b.User = user.Metadata.Token, user.Content.UUID.String()
	if b.Session, err = sessionOf(b.token); err != nil {
		return err
	}

	for range 10 {
		project, err := b.send("POST", "/projects", fmt.Sprintf(`{"name":"bench %s"}`, uuid.NewString()))
		if err != nil {
			return err
		}

		b.Project = project.Content.UUID.String()
	}

	if err := b.fillProject(); err != nil {
		return err
	}

	return b.connect(ctx, settings)
}

// fillProject creates containers, files, tables and a form.
func (b *bench) fillProject() error {
	for i := range containers + 2 {
		c, err := b.send("POST", "/containers", fmt.Sprintf(`{"name":"container-%d"}`, i))
		if err != nil {
			return err
		}

		b.Containers = append(b.Containers, c.Content.UUID.String())
	}

	b.Uploads, b.Listed = b.Containers[containers], b.Containers[containers+1]

	for i := range listed {
		contentType, body := form(fmt.Sprintf("file %d", i), randomBytes(large))
		file, err := b.sendAs(contentType, "POST", "/containers/"+b.Listed+"/files", string(body))
		if err != nil {
			return err
		}

		b.File = file.Content.UUID.String()

		if _, err := b.send("POST", "/tables", fmt.Sprintf(
			`{"name":"table_%d","columns":[{"name":"id","type":"serial","primary":true},{"name":"title","type":"text"}]}`,
			i)); err != nil {
			return err
		}
	}

	f, err := b.send("POST", "/forms", `{"name":"bench"}`)
	if err != nil {
		return err
	}

	b.Form = f.Content.UUID.String()
	for _, field := range []string{
		`{"label":"Name","name":"name","type":"text","is_required":true,"max_length":100}`,
		`{"label":"Score","name":"score","type":"number","min_value":0,"max_value":10}`,
		`{"label":"Text","name":"text","type":"textarea"}`,
	} {
		if _, err := b.send("POST", "/forms/"+b.Form+"/fields", field); err != nil {
			return err
		}
	}

	_, err = b.send("PUT", "/forms/"+b.Form, `{"state":"open"}`)
	return err
}

// connect finds the databases and the folder of the bare server.
func (b *bench) connect(ctx context.Context, settings []string) error {
	c, err := config.Load(settings, nil)
	if err != nil {
		return err
	}

	log := slog.New(slog.DiscardHandler)
	platform, secret, err := server.OpenDatabase(ctx, c, log)
	if err != nil {
		return err
	}

	registry, err := platform.Registry(ctx, secret, log)
	if err != nil {
		return err
	}

	project := registry.Open(uuid.MustParse(b.Project)).Trusted()
	b.Platform, b.Database = databaseOf(platform.Pool), databaseOf(project)

	if _, err := project.Exec(ctx, tables, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}

	if err := os.Mkdir(b.Folder, 0o700); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(b.Folder, "file"), randomBytes(large), 0o600)
}

// startLimit starts the bare server.
func (b *bench) startLimit() (*socle.Process, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}

	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(self, "-limit")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr

	return socle.StartProcess(cmd)
}

type reply struct {
	Content  struct{ UUID uuid.UUID }
	Metadata struct{ Token string }
}

func (b *bench) send(method, path, body string) (reply, error) {
	return b.sendAs("application/json", method, path, body)
}

func (b *bench) sendAs(contentType, method, path, body string) (r reply, err error) {
	q, err := http.NewRequest(method, b.URL+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}

	q.Header.Set("Content-Type", contentType)
	if b.token != "" {
		q.Header.Set("Authorization", "Bearer "+b.token)
	}
	if b.Project != "" {
		q.Header.Set("X-Project", b.Project)
	}

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		return r, err
	}

	if res.StatusCode >= 300 {
		return r, fmt.Errorf("%s %s: %s", method, path, text)
	}

	_ = json.Unmarshal(text, &r) // some contents have no UUID
	return r, nil
}

// sessionOf returns the session of an access token.
func sessionOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("access token with %d parts", len(parts))
	}

	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}

	var claims struct {
		Session string `json:"sid"`
	}
	return claims.Session, json.Unmarshal(text, &claims)
}
