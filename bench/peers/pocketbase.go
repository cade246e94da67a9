package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/socle-dev/socle/bench/socle"
)

const pocketBaseVersion = "v0.39.9" // the newest that Go 1.26 compiles

// buildPocketBase compiles PocketBase, once per version.
func buildPocketBase(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}

	folder := filepath.Join(cache, "socle-bench", "pocketbase-"+pocketBaseVersion)
	file := filepath.Join(folder, "base")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}

	fmt.Fprintln(os.Stderr, "peers: building PocketBase")
	program := "github.com/pocketbase/pocketbase/examples/base@" + pocketBaseVersion
	cmd := exec.CommandContext(ctx, "go", "install", program)
	cmd.Env = append(os.Environ(), "GOBIN="+folder, "CGO_ENABLED=0", "GOFLAGS=-ldflags=-s")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build PocketBase: %w\n%s", err, out)
	}

	return file, nil
}

// startPocketBase starts PocketBase with a user, a collection of items and one with a file.
func startPocketBase(ctx context.Context, dir string) (*peer, error) {
	file, err := buildPocketBase(ctx)
	if err != nil {
		return nil, err
	}

	data := "--dir=" + filepath.Join(dir, "pocketbase")
	if out, err := exec.CommandContext(ctx, file, "superuser", "upsert", "admin@example.com", password, data).
		CombinedOutput(); err != nil {
		return nil, fmt.Errorf("create the superuser of PocketBase: %w\n%s", err, out)
	}

	address, err := freeAddress()
	if err != nil {
		return nil, err
	}

	process, err := socle.StartProcess(exec.Command(file, "serve", "--http="+address, data))
	if err != nil {
		return nil, err
	}

	p := &pocketBase{api: api{url: "http://" + address}}
	if err := p.setUp(ctx); err != nil {
		process.Stop()
		return nil, err
	}

	return &peer{process, "PocketBase " + pocketBaseVersion + ", SQLite, files in a folder", p.request}, nil
}

type pocketBase struct {
	api
	ids  []string // IDs of items
	file string   // path of an object of 1 MiB
}

// member is the rule that lets any signed-in user do something.
const member = `@request.auth.id != ""`

func (p *pocketBase) setUp(ctx context.Context) error {
	if err := p.waitUntilReady(ctx, "/api/health"); err != nil {
		return err
	}

	admin, err := p.signIn(ctx, "_superusers", "admin@example.com")
	if err != nil {
		return err
	}

	for _, collection := range []map[string]any{
		{"name": "items", "type": "base", "listRule": member, "viewRule": member, "createRule": member,
			"fields":  []map[string]any{{"name": "name", "type": "text"}, {"name": "price", "type": "number"}},
			"indexes": []string{"create index items_price on items (price)"}},
		{"name": "files", "type": "base", "listRule": member, "viewRule": member, "createRule": member,
			"fields": []map[string]any{{"name": "content", "type": "file", "maxSize": 5 << 20}}},
	} {
		if err := admin.call(ctx, "POST", "/api/collections", collection, nil); err != nil {
			return err
		}
	}

	if err := admin.call(ctx, "PATCH", "/api/settings", map[string]any{
		"batch": map[string]any{"enabled": true, "maxRequests": 1000, "timeout": 60},
		"logs":  map[string]any{"maxDays": 0},
	}, nil); err != nil {
		return err
	}

	if err := admin.call(ctx, "POST", "/api/collections/users/records", map[string]any{
		"email": email, "password": password, "passwordConfirm": password, "verified": true}, nil); err != nil {
		return err
	}

	if p.api, err = p.signIn(ctx, "users", email); err != nil {
		return err
	}
	if err := p.insertItems(ctx); err != nil {
		return err
	}

	return p.storeFile(ctx)
}

// signIn returns the API with the token of a user.
func (p *pocketBase) signIn(ctx context.Context, collection, identity string) (api, error) {
	var session struct{ Token string }
	err := p.call(ctx, "POST", "/api/collections/"+collection+"/auth-with-password",
		map[string]string{"identity": identity, "password": password}, &session)
	return p.with("Authorization", session.Token), err
}

func (p *pocketBase) insertItems(ctx context.Context) error {
	const batch = 1000
	for first := 1; first <= rows; first += batch {
		var requests []map[string]any
		for n := first; n < first+batch; n++ {
			requests = append(requests, map[string]any{"method": "POST", "url": "/api/collections/items/records",
				"body": map[string]any{"name": nameOf(n), "price": n}})
		}

		var created []struct{ Body struct{ ID string } }
		if err := p.call(ctx, "POST", "/api/batch", map[string]any{"requests": requests}, &created); err != nil {
			return err
		}
		for _, c := range created {
			p.ids = append(p.ids, c.Body.ID)
		}
	}

	return nil
}

func (p *pocketBase) storeFile(ctx context.Context) error {
	r, err := p.upload(large)
	if err != nil {
		return err
	}

	var created struct{ ID, Content string }
	if err := send(r.WithContext(ctx), &created); err != nil {
		return err
	}
	p.file = "/api/files/files/" + created.ID + "/" + created.Content

	return nil
}

func (p *pocketBase) upload(content []byte) (*http.Request, error) {
	body, contentType, err := form("content", content)
	if err != nil {
		return nil, err
	}

	return p.api.request("POST", "/api/collections/files/records", body, contentType)
}

func (p *pocketBase) request(operation string, n int) (*http.Request, error) {
	const items = "/api/collections/items/records"
	switch operation {
	case "one row by key":
		return p.api.request("GET", items+"/"+p.ids[n*7%rows], nil, "")
	case "20 rows, filtered and ordered":
		return p.api.request("GET", items+"?skipTotal=1&perPage=20&sort=price&filter="+
			url.QueryEscape(fmt.Sprint("price>=", priceFrom(n))), nil, "")
	case "insert a row":
		return p.api.request("POST", items, []byte(`{"name": "new", "price": 1}`), "application/json")
	case "upload of 10 KiB":
		return p.upload(small)
	case "upload of 1 MiB":
		return p.upload(large)
	case "download of 1 MiB":
		return p.api.request("GET", p.file, nil, "")
	case "log-in by password":
		return p.api.request("POST", "/api/collections/users/auth-with-password",
			fmt.Appendf(nil, `{"identity": %q, "password": %q}`, email, password), "application/json")
	}

	return nil, errOperation(operation)
}
