package server_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRenderImage scales pictures of applications: public ones, and those that policies show.
func TestRenderImage(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	s.Post("/containers", `{"name":"open","is_public":true}`).Want(201)
	s.Post("/containers", `{"name":"closed"}`).Want(201)
	secret, publishable := s.key("server", "secret"), s.key("browser", "publishable")

	source := image.NewRGBA(image.Rect(0, 0, 400, 200))
	for x := range 400 {
		source.Set(x, x/2, color.RGBA{uint8(x), 0, 0, 255})
	}
	var asPNG, asJPEG bytes.Buffer
	if err := png.Encode(&asPNG, source); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, source, nil); err != nil {
		t.Fatal(err)
	}

	send := func(method, path, key, body string, header ...string) (*http.Response, []byte) {
		t.Helper()

		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/projects/"+s.Project+"/storage/v1"+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Apikey", key)
		}
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}

		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()

		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}

		return resp, text
	}

	for _, bucket := range []string{"open", "closed"} {
		send("POST", "/object/"+bucket+"/a/b.png", secret, asPNG.String(), "Content-Type: image/png")
		send("POST", "/object/"+bucket+"/c.jpg", secret, asJPEG.String(), "Content-Type: image/jpeg")
		send("POST", "/object/"+bucket+"/d.txt", secret, "text", "Content-Type: text/plain")
	}

	for _, tt := range []struct {
		path, key     string
		width, height int
		format        string
	}{
		{"public/open/a/b.png?width=100", "", 100, 50, "png"},
		{"public/open/a/b.png?width=100&height=100", "", 100, 100, "png"},
		{"public/open/a/b.png?width=100&height=100&resize=contain", "", 100, 50, "png"},
		{"public/open/a/b.png?width=100&height=20&resize=fill&format=origin", "", 100, 20, "png"},
		{"public/open/c.jpg?height=50&quality=20", "", 100, 50, "jpeg"},
		{"public/open/c.jpg", "", 400, 200, "jpeg"},
		{"authenticated/closed/c.jpg?width=40", secret, 40, 20, "jpeg"},
	} {
		resp, body := send("GET", "/render/image/"+tt.path, tt.key, "")
		got, format, err := image.DecodeConfig(bytes.NewReader(body))
		if err != nil || got.Width != tt.width || got.Height != tt.height || format != tt.format ||
			resp.Header.Get("Content-Type") != "image/"+tt.format {
			t.Errorf("%s: got %d %s %dx%d, %v", tt.path, resp.StatusCode, format, got.Width, got.Height, err)
		}

		again, _ := send("GET", "/render/image/"+tt.path, tt.key, "", "If-None-Match: "+resp.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: got %d, want 304", tt.path, again.StatusCode)
		}
	}

	for _, tt := range []struct{ path, key, want string }{
		{"public/closed/c.jpg?width=40", "", "NoSuchBucket"},
		{"public/none/c.jpg?width=40", "", "NoSuchBucket"},
		{"public/open/none?width=40", "", "NoSuchKey"},
		{"authenticated/closed/c.jpg?width=40", publishable, "NoSuchKey"},
		{"authenticated/closed/c.jpg?width=40", "", "AccessDenied"},
		{"sign/closed/c.jpg?token=a.b", "", "InvalidJWT"},
		{"public/open/d.txt?width=40", "", "InvalidRequest"},
		{"public/open/c.jpg?width=5000", "", "InvalidRequest"},
		{"public/open/c.jpg?width=x", "", "InvalidRequest"},
		{"public/open/c.jpg?quality=10", "", "InvalidRequest"},
		{"public/open/c.jpg?resize=crop", "", "InvalidRequest"},
		{"public/open/c.jpg?format=avif", "", "InvalidRequest"},
	} {
		resp, body := send("GET", "/render/image/"+tt.path, tt.key, "")
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), `"code":"`+tt.want+`"`) {
			t.Errorf("%s: got %d %s, want %s", tt.path, resp.StatusCode, body, tt.want)
		}
	}

	// A signed URL has the variant that it was signed for, whatever its query.
	_, body := send("POST", "/object/sign/closed/c.jpg", secret, `{"expiresIn": 60, "transform": {"width": 40}}`)
	var signed struct{ SignedURL string }
	if err := json.Unmarshal(body, &signed); err != nil {
		t.Fatal(err)
	}
	_, body = send("GET", signed.SignedURL+"&width=80", "", "")
	if got, _, err := image.DecodeConfig(bytes.NewReader(body)); err != nil || got.Width != 40 {
		t.Errorf("%s: got a width of %d, %v, want 40", signed.SignedURL, got.Width, err)
	}
	if resp, _ := send("GET", strings.Replace(signed.SignedURL, "c.jpg", "d.txt", 1), "", ""); resp.StatusCode != 400 {
		t.Errorf("got %d for another object, want 400", resp.StatusCode)
	}
	if resp, _ := send("POST", "/object/sign/closed/c.jpg", secret,
		`{"expiresIn": 60, "transform": {"width": 5000}}`); resp.StatusCode != 400 {
		t.Errorf("got %d for an invalid variant, want 400", resp.StatusCode)
	}

	// A policy shows it to the public.
	owner := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner()
	if _, err := owner.Exec(t.Context(), `create policy read on storage.objects for select to anon
		using (bucket_id = 'closed')`); err != nil {
		t.Fatal(err)
	}
	if resp, _ := send("GET", "/render/image/authenticated/closed/c.jpg?width=40", publishable,
		""); resp.StatusCode != 200 {
		t.Errorf("under a policy: got %d, want 200", resp.StatusCode)
	}
}
