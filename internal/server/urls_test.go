package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/object/objecttest"
)

// TestURLsByClient opens each URL that supabase-js makes of the Storage API's answers.
func TestURLsByClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	names, err := json.Marshal(objecttest.HostileNames)
	must(t, 0, err)
	runNode(t, clients, append(os.Environ(), "SOCLE_PROJECT="+a.URL+"/projects/"+a.Project,
		"SOCLE_SECRET="+s.key("server", "secret"), "SOCLE_NAMES="+string(names)), "urls.mjs")
}

// TestURLsOfS3 opens presigned URLs and decodes lists.
func TestURLsOfS3(t *testing.T) {
	t.Parallel()

	p := newS3Project(t)
	p.Create("/containers", `{"name": "files"}`)
	presigner := s3.NewPresignClient(p.client, s3.WithPresignExpires(time.Minute))

	want := map[string]bool{}
	for _, name := range objecttest.HostileNames {
		want[name] = true
		p.put(name, name)

		signed, err := presigner.PresignGetObject(t.Context(),
			&s3.GetObjectInput{Bucket: aws.String("files"), Key: &name})
		if got := open(t, must(t, signed, err).URL); got != name {
			t.Errorf("%q: got %s of %s", name, got, signed.URL)
		}
	}

	list, err := p.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("files"),
		EncodingType: types.EncodingTypeUrl})
	for _, o := range must(t, list, err).Contents {
		name, err := url.PathUnescape(*o.Key)
		if must(t, name, err); !want[name] {
			t.Errorf("got the key %q", *o.Key)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// TestURLsOfFiles opens each URL that the platform API prints.
func TestURLsOfFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	files := a.Create("/containers", `{"name": "files", "is_public": true}`)
	root := a.Get("/containers/" + files).Want(200).Get("url").(string)

	for _, name := range objecttest.HostileNames {
		quoted, err := json.Marshal(name)
		must(t, 0, err)

		upload := a.Post("/containers/"+files+"/signed-uploads", `{"full_file_name": `+string(quoted)+`}`).Want(201).
			Get("url").(string)
		r, err := http.NewRequestWithContext(t.Context(), "PUT", upload, strings.NewReader(name))
		must(t, r, err)
		resp, err := http.DefaultClient.Do(r)
		must(t, resp, err)
		var file struct {
			Content struct{ UUID, FullFileName string }
		}
		err = json.NewDecoder(resp.Body).Decode(&file)
		resp.Body.Close()
		if err != nil || file.Content.FullFileName != name {
			t.Errorf("%q: got %s, %+v, %v for %s", name, resp.Status, file, err, upload)
			continue
		}

		signed := a.Post("/containers/"+files+"/files/"+file.Content.UUID+"/signed-url", `{}`).Want(201).
			Get("url").(string)
		for _, address := range []string{signed, root + (&url.URL{Path: "/" + name}).String()} {
			if got := open(t, address); got != name {
				t.Errorf("%q: got %s of %s", name, got, address)
			}
		}
	}
}

// open returns the body of a URL, or its status if it does not open.
func open(t *testing.T, address string) string {
	t.Helper()

	resp, err := http.Get(address)
	must(t, resp, err)
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if must(t, text, err); resp.StatusCode != http.StatusOK {
		return resp.Status + " " + string(text)
	}

	return string(text)
}

// TestReservedBucket checks that a bucket whose name is a word of a path, which a former version
// has created, is reached by the paths that the documentation names.
func TestReservedBucket(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	a.Create("/containers", `{"name": "older"}`)
	for _, id := range []string{"public", "sign"} {
		_, err := a.ConnectProject().Exec(t.Context(), `update storage.containers set id = $1, name = $1`, id)
		must(t, 0, err)

		f := files{t, a.URL + "/projects/" + a.Project + "/storage/v1", s.key("server of "+id, "secret")}
		f.wantSecret(400, "Bucket name invalid", "POST", "/bucket", `{"name": "`+id+`"}`)
		if id == "public" { // sign is a word of uploads, too
			f.wantSecret(200, "public/a.txt", "POST", "/object/public/a.txt", "one", "Content-Type: text/plain")
		}
		f.wantSecret(200, "one", "GET", "/object/authenticated/"+id+"/a.txt", "")
		f.wantSecret(200, `"name":"a.txt"`, "GET", "/object/info/authenticated/"+id+"/a.txt", "")
		f.wantSecret(200, `"name":"a.txt"`, "POST", "/object/list/"+id, `{"prefix": ""}`)

		sign := "/object/sign/" + id + "/a.txt"
		_, body := f.wantSecret(200, sign, "POST", sign, `{"expiresIn": 60}`)
		var signed struct{ SignedURL string }
		must(t, 0, json.Unmarshal([]byte(body), &signed))
		if got := open(t, f.root+signed.SignedURL); got != "one" {
			t.Errorf("%s: got %s of %s", id, got, signed.SignedURL)
		}
	}
}
