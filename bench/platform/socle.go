package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
)

// bench is a running Socle with one user and one project. Its exported fields are the parameters of
// the bare server.
type bench struct {
	*socle.Instance `json:"-"`
	token           string

	Platform, Database socle.Database // databases of the platform and of the project
	Folder             string         // for files of the bare server

	User, Session, Project string
	Containers             []string
	Uploads, Listed        string // containers: for uploads, and with files
	File                   string // file of 1 MiB
	Form                   string
}

// tables are those of the bare server, with the indexes of Socle's and without its triggers.
const tables = `
	create schema bench;
	create table bench.files (like storage.files including all);
	create table bench.responses (like forms.responses including all);`

// setUp creates all that the operations need.
func (b *bench) setUp(ctx context.Context) error {
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

	return b.connect(ctx)
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
func (b *bench) connect(ctx context.Context) error {
	platform, projects, err := b.OpenDatabase(ctx)
	if err != nil {
		return err
	}

	project := projects.Open(uuid.MustParse(b.Project)).Trusted()
	b.Platform, b.Database = socle.DatabaseOf(platform), socle.DatabaseOf(project)

	if _, err := project.Exec(ctx, tables, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}

	if err := os.Mkdir(b.Folder, 0o700); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(b.Folder, "file"), randomBytes(large), 0o600)
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
