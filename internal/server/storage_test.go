package server_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// storagePolicies give each end user a folder of the bucket avatars.
const storagePolicies = `
	create policy read on storage.objects for select to authenticated using (owner_id = (select auth.uid()::text));
	create policy write on storage.objects for insert to authenticated
		with check (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
	create policy change on storage.objects for update to authenticated using (owner_id = (select auth.uid()::text));
	create policy remove on storage.objects for delete to authenticated using (owner_id = (select auth.uid()::text))`

// TestStorageByClient has two end users use their files by supabase-js.
func TestStorageByClient(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	s := titlesProject{API: a, t: t}
	a.Post("/containers", `{"name":"avatars"}`).Want(201)
	owner := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner()
	if _, err := owner.Exec(t.Context(), storagePolicies); err != nil {
		t.Fatal(err)
	}

	root := a.URL + "/projects/" + a.Project
	node := exec.CommandContext(t.Context(), "node", "storage.mjs")
	node.Dir, node.Env = clients, append(os.Environ(), "SOCLE_PROJECT="+root,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"), "SOCLE_SECRET="+s.key("server", "secret"))
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}

	for _, c := range []struct{ method, path, want string }{
		{"GET", "/storage/v1/object/avatars/logo.txt", "Invalid Compact JWS"},
		{"GET", "/storage/v1/nothing", "Route GET:/nothing not found"},
		{"GET", "/storage/v1/object/public/none/x", "Bucket not found"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, root+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}

		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s: got %d %s, want 400 %s", c.method, c.path, resp.StatusCode, body, c.want)
		}
	}
}
