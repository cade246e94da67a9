package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/socle-dev/socle/bench/socle"
)

const directusVersion = "12.4.0"

// installDirectus installs Directus from the npm registry, once per version, and returns its
// folder.
func installDirectus(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}

	folder := filepath.Join(cache, "socle-bench", "directus-"+directusVersion)
	if _, err := os.Stat(filepath.Join(folder, "installed")); err == nil {
		return folder, nil
	}

	fmt.Fprintln(os.Stderr, "peers: installing Directus, 900 MB; npm compiles a part of it for some minutes")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}

	cmd := exec.CommandContext(ctx, "sh", "-c",
		"npm init -y && npm install --no-audit --no-fund directus@"+directusVersion+" && touch installed")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install Directus: %w\n%s", err, out)
	}

	return folder, nil
}

// startDirectus starts Directus with a user, a collection of items and a file.
func startDirectus(ctx context.Context, dir string, db database) (*peer, error) {
	folder, err := installDirectus(ctx)
	if err != nil {
		return nil, err
	}

	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, err := url.Parse("http://" + address)
	if err != nil {
		return nil, err
	}

	node, err := exec.Command("node", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("run Node.js: %w", err)
	}

	cli := filepath.Join(folder, "node_modules/directus/cli.js")
	environment := append(os.Environ(), "NODE_ENV=production", "LOG_LEVEL=error", "TELEMETRY=false",
		"HOST=127.0.0.1", "PORT="+host.Port(), "PUBLIC_URL="+host.String(), "SECRET="+password, "KEY=bench",
		"ADMIN_EMAIL=admin@example.com", "ADMIN_PASSWORD="+password, "MAX_PAYLOAD_SIZE=10mb",
		"DB_CLIENT=pg", "DB_HOST="+db.host, "DB_PORT="+fmt.Sprint(db.port), "DB_DATABASE="+db.name,
		"DB_USER="+db.name, "DB_PASSWORD="+db.password,
		"STORAGE_LOCATIONS=local", "STORAGE_LOCAL_ROOT="+filepath.Join(dir, "directus"))

	bootstrap := exec.CommandContext(ctx, "node", cli, "bootstrap")
	bootstrap.Dir, bootstrap.Env = folder, environment
	if out, err := bootstrap.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bootstrap Directus: %w\n%s", err, out)
	}

	// Directus itself prints nothing at this level of logging.
	start := exec.Command("sh", "-c", `echo "$0"; exec "$@"`, host.String(), "node", cli, "start")
	start.Dir, start.Env, start.Stderr = folder, environment, os.Stderr
	process, err := socle.StartProcess(start)
	if err != nil {
		return nil, err
	}

	d := &directus{api: api{url: host.String()}}
	if err := d.setUp(ctx); err != nil {
		process.Stop()
		return nil, err
	}

	title := fmt.Sprintf("Directus %s, one process of Node.js %s, Socle's PostgreSQL, files in a folder",
		directusVersion, bytes.TrimSpace(node))
	return &peer{process, title, d.request}, nil
}

type directus struct {
	api
	file string // ID of a file of 1 MiB
}

func (d *directus) setUp(ctx context.Context) error {
	if err := d.waitUntilReady(ctx, "/server/ping"); err != nil {
		return err
	}

	admin, err := d.signIn(ctx, "admin@example.com")
	if err != nil {
		return err
	}

	column := func(name, kind string, schema map[string]any) map[string]any {
		return map[string]any{"field": name, "type": kind, "schema": schema}
	}
	if err := admin.call(ctx, "POST", "/collections", map[string]any{
		"collection": "items", "schema": map[string]any{}, "meta": map[string]any{}, "fields": []any{
			column("id", "integer", map[string]any{"is_primary_key": true, "has_auto_increment": true}),
			column("name", "string", map[string]any{}), column("price", "integer", map[string]any{"is_indexed": true}),
		}}, nil); err != nil {
		return err
	}

	if err := admin.createUser(ctx); err != nil {
		return err
	}
	if err := admin.insertItems(ctx); err != nil {
		return err
	}

	if d.api, err = d.signIn(ctx, email); err != nil {
		return err
	}

	r, err := d.upload(large)
	if err != nil {
		return err
	}

	var created struct{ Data struct{ ID string } }
	err = send(r.WithContext(ctx), &created)
	d.file = created.Data.ID

	return err
}

// signIn returns the API with the token of a user.
func (d *directus) signIn(ctx context.Context, address string) (api, error) {
	var session struct {
		Data struct {
			AccessToken string `json:"access_token"`
		}
	}
	err := d.call(ctx, "POST", "/auth/login", map[string]string{"email": address, "password": password}, &session)
	return d.with("Authorization", "Bearer "+session.Data.AccessToken), err
}

// createUser creates a user that may read and create items and files.
func (a api) createUser(ctx context.Context) error {
	var made struct{ Data struct{ ID string } }
	if err := a.call(ctx, "POST", "/policies", map[string]any{"name": "members"}, &made); err != nil {
		return err
	}

	policy := made.Data.ID
	var permissions []map[string]any
	for _, collection := range []string{"items", "directus_files"} {
		for _, action := range []string{"read", "create"} {
			permissions = append(permissions, map[string]any{"policy": policy, "collection": collection,
				"action": action, "permissions": map[string]any{}, "fields": []string{"*"}})
		}
	}
	if err := a.call(ctx, "POST", "/permissions", permissions, nil); err != nil {
		return err
	}

	return a.call(ctx, "POST", "/users", map[string]any{"email": email, "password": password, "status": "active",
		"policies": map[string]any{"create": []any{map[string]any{"policy": map[string]any{"id": policy}}}}}, nil)
}

func (a api) insertItems(ctx context.Context) error {
	const batch = 1000
	for first := 1; first <= rows; first += batch {
		var items []map[string]any
		for n := first; n < first+batch; n++ {
			items = append(items, map[string]any{"name": nameOf(n), "price": n})
		}
		if err := a.call(ctx, "POST", "/items/items", items, nil); err != nil {
			return err
		}
	}

	return nil
}

func (d *directus) upload(content []byte) (*http.Request, error) {
	body, contentType, err := form("file", content)
	if err != nil {
		return nil, err
	}

	return d.api.request("POST", "/files", body, contentType)
}

func (d *directus) request(operation string, n int) (*http.Request, error) {
	switch operation {
	case "one row by key":
		return d.api.request("GET", fmt.Sprint("/items/items/", 1+n*7%rows), nil, "")
	case "20 rows, filtered and ordered":
		return d.api.request("GET", fmt.Sprint("/items/items?limit=20&sort=price&filter[price][_gte]=", priceFrom(n)),
			nil, "")
	case "insert a row":
		return d.api.request("POST", "/items/items", []byte(`{"name": "new", "price": 1}`), "application/json")
	case "upload of 10 KiB":
		return d.upload(small)
	case "upload of 1 MiB":
		return d.upload(large)
	case "download of 1 MiB":
		return d.api.request("GET", "/assets/"+d.file, nil, "")
	case "log-in by password":
		return d.api.request("POST", "/auth/login",
			fmt.Appendf(nil, `{"email": %q, "password": %q}`, email, password), "application/json")
	}

	return nil, errOperation(operation)
}
