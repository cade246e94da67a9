package server_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/docs"
	"github.com/socle-dev/socle/internal/api/apitest"
)

// hostileTexts are texts that PostgreSQL can't hold, in the form of a URL.
var hostileTexts = []string{"%00", "x%ff", "%ED%A0%80"}

// hostileHeaders are the headers that any interface reads.
var hostileHeaders = []string{"Apikey", "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match",
	"X-Project", "Prefer", "Accept-Profile", "Content-Profile", "Range", "X-Upsert", "X-Metadata", "Cache-Control",
	"Upload-Metadata", "X-Amz-Meta-A", "X-Amz-Copy-Source", "Redirect_to", "X-Forwarded-For", "Accept", "Origin",
	"User-Agent"}

// projectPaths are paths of the interfaces of a project, whose {} is the place of a text.
var projectPaths = []string{
	"GET /rest/v1/{}", "GET /rest/v1/t?a=eq.{}", "GET /rest/v1/t?{}=eq.1", "GET /rest/v1/t?select={}",
	"POST /rest/v1/rpc/{}",
	"GET /auth/v1/{}", "GET /auth/v1/verify?token={}&type=signup", "GET /auth/v1/authorize?provider={}",
	"GET /auth/v1/callback?state={}", "GET /auth/v1/admin/users/{}", "GET /auth/v1/admin/users?filter={}",
	"GET /auth/v1/oauth/authorize?client_id={}", "GET /auth/v1/oauth/authorizations/{}",
	"POST /auth/v1/otp?redirect_to={}",
	"DELETE /auth/v1/user/oauth/grants?client_id={}", "GET /auth/v1/admin/oauth/clients/{}",
	"GET /storage/v1/object/b/{}", "GET /storage/v1/object/public/{}/x", "GET /storage/v1/object/sign/b/x?token={}",
	"POST /storage/v1/object/list/{}", "GET /storage/v1/bucket/{}", "POST /storage/v1/upload/resumable/{}",
	"GET /storage/v1/render/image/public/b/x?width={}", "GET /storage/v1/s3/{}", "GET /storage/v1/s3/b/{}",
	"GET /storage/v1/s3/b?prefix={}", "PUT /storage/v1/s3/b/x?X-Amz-Signature={}",
	"GET /oauth/consent?authorization_id={}",
}

// pagePaths are paths of pages and of the server itself.
var pagePaths = []string{"GET /f/LINK{}", "GET /f/{}", "GET /f/LINK{}/done", "GET /f/LINK{}/logo", "POST /f/LINK{}",
	"GET /forms/FORM/public?link={}", "GET /forms/FORM/public?link=SECRET{}", "POST /forms/FORM/responses?link={}",
	"GET /reset-password?token={}", "GET /accept-invitation?token={}", "GET /confirm-email?token={}", "GET /assets/{}",
	"GET /docs/{}", "GET /console/{}", "GET /console/assets/{}", "POST /console/session/refresh?x={}", "GET /{}",
	"GET /?x={}", "GET /readyz?x={}", "GET /.well-known/{}"}

// TestHostileText: no text in a path, a query or a header makes a request fail with 5xx.
func TestHostileText(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	secret := a.Post("/projects/"+a.Project+"/keys", `{"name":"server","kind":"secret"}`).Want(201).
		Metadata("key").(string)
	id := a.Create("/forms", `{"name":"Survey"}`)
	a.Put("/forms/"+id, `{"state":"open"}`).Want(200)
	linked := a.Post("/forms/"+id+"/link", "").Want(201)
	page := strings.TrimPrefix(linked.Get("pagePath").(string), "/f/")

	var requests []string
	for _, path := range projectPaths {
		method, rest, _ := strings.Cut(path, " ")
		requests = append(requests, method+" /projects/"+a.Project+rest)
	}
	requests = append(requests, operationPaths(t, a.Project)...)
	for _, path := range pagePaths {
		names := strings.NewReplacer("FORM", id, "LINK", page, "SECRET", linked.Get("link").(string))
		requests = append(requests, names.Replace(path))
	}

	address := strings.TrimPrefix(a.URL, "http://")
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		for _, text := range hostileTexts {
			target := strings.ReplaceAll(path, "{}", text)
			headers := "apikey: " + secret + "\r\nAuthorization: Bearer " + a.Token
			if strings.Contains(path, "link") || strings.HasPrefix(path, "/f/") { // by anyone
				headers = "Accept: */*"
			}
			if status := rawStatus(t, address, method, target, headers); status >= 500 {
				t.Errorf("%s %s: got status %d", method, target, status)
			}
		}
	}

	a.Post("/containers", `{"name":"files"}`).Want(201)
	for _, cache := range []string{"0\r\nX-Evil: 1", strings.Repeat("1", 30_000), "0\x00"} {
		metadata := "bucketName " + encoded("files") + ",objectName " + encoded("x") + ",cacheControl " + encoded(cache)
		if status := rawStatus(t, address, "POST", "/projects/"+a.Project+"/storage/v1/upload/resumable",
			"apikey: "+secret+"\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 1\r\nUpload-Metadata: "+metadata); status != 400 {
			t.Errorf("an upload with cacheControl %.20q: got status %d, want 400", cache, status)
		}
	}

	for _, path := range []string{"/me", "/projects/" + a.Project + "/rest/v1/t",
		"/projects/" + a.Project + "/auth/v1/user",
		"/projects/" + a.Project + "/storage/v1/object/b/x", "/projects/" + a.Project + "/storage/v1/s3/b/x", "/f/x",
		"/containers"} {
		for _, name := range hostileHeaders {
			headers := name + ": a\xff"
			if name != "Authorization" && name != "Apikey" {
				headers += "\r\napikey: " + secret + "\r\nAuthorization: Bearer " + a.Token
			}
			if status := rawStatus(t, address, "POST", path, headers); status >= 500 {
				t.Errorf("%s, %s: got status %d", path, name, status)
			}
		}
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// operationPaths returns a path of each operation for each of its parameters.
func operationPaths(t *testing.T, project string) []string {
	t.Helper()

	text, err := docs.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}

	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}

	var all []string
	for path, methods := range document.Paths {
		for method, operation := range methods {
			plain := strings.NewReplacer("{projectUUID}", project).Replace(path)
			for _, p := range operation.Parameters {
				target := plain
				switch {
				case p.In == "path" && p.Name == "projectUUID":
					target = path
				case p.In == "query":
					target += "?" + p.Name + "={}"
				}

				for _, q := range operation.Parameters {
					if q.In == "path" && !strings.Contains(q.Name, "UUID") || q.Name == p.Name {
						target = strings.ReplaceAll(target, "{"+q.Name+"}", "{}")
					}
					target = strings.ReplaceAll(target, "{"+q.Name+"}", uuid.NewString())
				}
				if strings.Contains(target, "{}") {
					all = append(all, strings.ToUpper(method)+" "+target)
				}
			}
		}
	}

	slices.Sort(all)
	return slices.Compact(all)
}

// rawStatus sends a request as it is and returns its status.
func rawStatus(t *testing.T, address, method, target, headers string) int {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_, err = conn.Write([]byte(method + " " + target + " HTTP/1.1\r\nHost: " + address + "\r\n" + headers +
		"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}

	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	res.Body.Close()

	return res.StatusCode
}
