package api_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup/archive"
)

const octetStream = "Content-Type: application/octet-stream"

func importArchive(a *apitest.API, archive []byte, headers ...string) *apitest.Reply {
	return a.Send("POST", "/backups/import", string(archive), append(headers, octetStream)...)
}

func downloadBackup(a *apitest.API, id, body string) []byte {
	return a.Post("/backups/"+id+"/download", body).Want(200).Body
}

// createBackup creates a backup and waits for its completion.
func createBackup(t *testing.T, a *apitest.API) string {
	t.Helper()

	id := a.Create("/backups", `{}`)
	waitForBackup(t, a, id).Content("status", "completed")

	return id
}

// TestMoveBackup moves a project to another install, which has another secret key.
func TestMoveBackup(t *testing.T) {
	t.Parallel()

	a, b := apitest.New(t), apitest.New(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	asOwner(t, a,
		`insert into public.orders values (1, 'first'); create policy mine on public.orders to current_user using (true);
		alter default privileges grant select on tables to anon; grant select on public.orders to anon`)

	container := a.Create("/containers", `{"name": "reports"}`)
	file := upload(a, container, "a.txt", "hello").Want(201).Get("uuid").(string)
	upload(a, container, "b.txt", "hello").Want(201)
	upload(a, container, "empty", "").Want(201)

	large := strings.Repeat("0123456789abcdef", 20_000)
	big := upload(a, container, "big", large).Want(201).Get("uuid").(string)
	form := a.Create("/forms", `{"name": "contact"}`)
	id := createBackup(t, a)

	b.WithProject("garbage").Get("/backups/recipient").Want(400)
	recipient := b.Get("/backups/recipient").Want(200).Get("recipient").(string)
	for name, moved := range map[string]*apitest.Reply{
		"for the install": importArchive(b, downloadBackup(a, id, `{"recipient": "`+recipient+`"}`)),
		"with a passphrase": importArchive(b, downloadBackup(a, id, `{"passphrase": "the owls are not"}`),
			"X-Passphrase: the owls are not"),
		"as it is": importArchive(b, downloadBackup(a, id, `{"encryption": "none"}`)),
	} {
		if moved.Status != 201 {
			t.Fatalf("%s: %d %s", name, moved.Status, moved.Body)
		}
		moved.Content("status", "completed").Content("projectUuid", b.Project).Content("error", "")
	}

	b.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(404)

	got := values(b.Get("/backups?order=desc").Want(200), "uuid")
	if len(got) != 3 {
		t.Fatalf("got backups %v, want 3", got)
	}

	b.Get("/backups/" + got[0]).Want(200)

	if origin := b.Get("/backups/" + got[0]).Want(200).Metadata("origin"); origin != "imported" {
		t.Errorf("got origin %v, want imported", origin)
	}

	until(t, "the proofs of the imported backups have ended", func() bool {
		return apitest.Value[int](b,
			`select count(*) from platform.backups where proven_at is not null and tried_at is not null and proof_error = ''`) == 3
	})

	b.Post("/projects/"+b.Project+"/pause", "").Want(200) // ends a running proof
	importArchive(b, []byte("x")).Want(409).Code("project_paused")
	b.Post("/projects/"+b.Project+"/resume", "").Want(200)

	r := b.Post("/backups/"+got[0]+"/restore", `{"target": "in_place"}`).Want(201)
	waitForRestore(t, b, r.Get("uuid").(string), "completed")
	n := b.Post("/backups/"+got[1]+"/restore", `{"target": "new", "name": "moved"}`).Want(201)
	waitForRestore(t, b, n.Get("uuid").(string), "completed")

	for _, p := range []*apitest.API{b, b.WithProject(n.Get("projectUuid").(string))} {
		if note := query[string](t, p, `select note from public.orders`); note != "first" {
			t.Errorf("the row has %q", note)
		}
		if text := p.Get("/containers/" + container + "/files/" + file + "/download").
			Want(200).Body; string(text) != "hello" {
			t.Errorf("got content %q", text)
		}
		if text := p.Get("/containers/" + container + "/files/" + big + "/download").
			Want(200).Body; string(text) != large {
			t.Errorf("got %d bytes of the large file", len(text))
		}

		owner := p.DatabaseName() + "_owner"
		if roles := query[string](t, p, `select roles::text from pg_policies where policyname = 'mine'`); roles != "{"+
			owner+"}" {
			t.Errorf("got policy for %s, want the owner", roles)
		}

		if n := query[int](t, p, `select count(*) from pg_default_acl where defaclacl::text like '%anon=r/%'`); n != 1 {
			t.Errorf("got %d default privileges for anon", n)
		}

		p.CreateTable("after")
		upload(p, container, "c.txt", "more").Want(201)

		if files := query[int](t, p, `select files from storage.usage`); files != 5 {
			t.Errorf("got usage %d files, want 5", files)
		}
	}

	b.Get("/forms/" + form).Want(200)
	forms := b.WithProject(n.Get("projectUuid").(string)).Get("/forms").Want(200)
	if got := values(forms, "uuid"); len(got) != 1 || got[0] == form {
		t.Errorf("got forms %v in the new project, want a UUID other than %s", got, form)
	}

	// An imported backup can be exported again.
	other := a.WithProject(a.CreateProject("other"))
	other.DisableProofs()
	repeated := importArchive(other, downloadBackup(b, got[0], `{"encryption": "none"}`)).Want(201)
	r = other.Post("/backups/"+repeated.Get("uuid").(string)+"/restore", `{"target": "in_place"}`).Want(201)
	waitForRestore(t, other, r.Get("uuid").(string), "completed")

	if got := values(other.Get("/forms").Want(200), "uuid"); len(got) != 1 || got[0] == form {
		t.Errorf("got forms %v in the other project, want others than %s of the first one", got, form)
	}

	a.Get("/forms/" + form).Want(200)

	for _, log := range []string{a.Log.String(), b.Log.String()} {
		if strings.Contains(log, "owls") {
			t.Error("the log contains the passphrase")
		}
	}
}

func TestDownloadBackup(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	id := createBackup(t, a)
	path := "/backups/" + id + "/download"
	for body, field := range map[string]string{`{}`: "encryption", `{"encryption": "some"}`: "encryption",
		`{"passphrase": "too short"}`: "passphrase", `{"recipient": "age1"}`: "recipient",
		`{"recipient": "AGE-SECRET-KEY-1"}`: "recipient", `{"recipient": "", "encryption": "none"}`: "recipient",
		`{"passphrase": "long enough for it", "encryption": "none"}`: "encryption"} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `[]`).Want(400)
	a.Post("/backups/"+apitest.MissingUUID+"/download", `{"encryption": "none"}`).Want(404)
	a.Post("/backups/"+apitest.MissingUUID+"/download", `{}`).Want(404)
	a.Post("/backups/"+apitest.MissingUUID+"/download", `{"encryption": 1}`).Want(404)
	a.Post("/backups/"+oldBackup(t, a)+"/download", `{"encryption": "none"}`).Want(409).Code("backup_not_completed")
	a.Member(4).Post(path, `{"encryption": "none"}`).Want(403)
	a.Anonymous().Post(path, `{"encryption": "none"}`).Want(401)

	r := a.Post(path, `{"encryption": "none"}`).Want(200)
	if got := r.Header.Get("Content-Disposition"); !strings.HasPrefix(got,
		`attachment; filename="socle-`+a.Project+"-") || !strings.HasSuffix(got, `Z.tar"`) {
		t.Errorf("got file name %s", got)
	}

	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("got Cache-Control %s, want no-store", got)
	}
	if n := apitest.Value[int](a,
		`select count(*) from `+apitest.AuditLog+` where entry::jsonb ->> 'action' = 'downloadBackup'`); n != 1 {
		t.Errorf("got %d audit entries for the download", n)
	}

	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	plain, err := age.Decrypt(bytes.NewReader(downloadBackup(a, id, `{"recipient": "`+key.Recipient().String()+`"}`)),
		key)
	if err != nil {
		t.Fatal(err)
	}

	if text, err := io.ReadAll(plain); err != nil || !bytes.Equal(text, r.Body) {
		t.Errorf("the decrypted archive differs from the plain one: %v", err)
	}

	importArchive(a, downloadBackup(a, id, `{"recipient": "`+key.Recipient().String()+`"}`)).Want(422).Code("required").
		Field("X-Passphrase")

	// The download of a damaged backup fails.
	damageBackup(t, a, id+".dump")
	req := a.Request("POST", path, strings.NewReader(`{"encryption": "none"}`))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return // cut off before the first byte
	}
	defer res.Body.Close()

	if text, err := io.ReadAll(res.Body); err == nil && res.StatusCode == 200 {
		t.Errorf("got a complete download of a damaged backup, %d bytes", len(text))
	}
}

// archiveEntry is an entry of an archive.
type archiveEntry struct {
	tar.Header
	body []byte
}

func unpack(t *testing.T, archive []byte) (all []archiveEntry) {
	t.Helper()

	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}

		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}

		all = append(all, archiveEntry{*h, body})
	}
}

func pack(t *testing.T, all []archiveEntry) []byte {
	t.Helper()

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range all {
		if p.Typeflag == tar.TypeReg {
			p.Size = int64(len(p.body))
		}

		if err := w.WriteHeader(&p.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p.body); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// TestImportBackupRefuses imports invalid, incomplete and oversized archives. All are refused, and
// nothing is left.
func TestImportBackupRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")

	container := a.Create("/containers", `{"name": "reports"}`)
	upload(a, container, "a.txt", "hello").Want(201)
	upload(a, container, "b.txt", "more").Want(201)

	id := createBackup(t, a)
	whole := downloadBackup(a, id, `{"encryption": "none"}`)
	sealed := downloadBackup(a, id, `{"passphrase": "the owls are not"}`)
	pass := "X-Passphrase: the owls are not"
	into := a.WithProject(a.CreateProject("empty"))
	before := len(blobs(t, a))

	changed := func(change func(m map[string]any, all []archiveEntry) []archiveEntry) []byte {
		all := unpack(t, whole)
		var m map[string]any
		d := json.NewDecoder(bytes.NewReader(all[0].body))
		d.UseNumber()

		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}

		all = change(m, all)

		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}

		all[0].body = text
		return pack(t, all)
	}

	manifest := func(name string, value any) []byte {
		return changed(func(m map[string]any, all []archiveEntry) []archiveEntry { m[name] = value; return all })
	}

	dump := func(body []byte) []byte {
		return changed(func(m map[string]any, all []archiveEntry) []archiveEntry {
			sum := sha256.Sum256(body)
			all[1].body, m["dump"] = body, map[string]any{"size": len(body), "sha256": hex.EncodeToString(sum[:])}

			return all
		})
	}

	original := unpack(t, whole)
	flipped := bytes.Clone(original[1].body)
	flipped[len(flipped)/2] ^= 1
	at := func(b []byte, i int) []byte { b = bytes.Clone(b); b[i] ^= 1; return b }

	cases := map[string]struct {
		body    []byte
		headers []string
		code    string
	}{
		"nothing":             {nil, nil, "damaged_backup"},
		"text":                {[]byte("hello"), nil, "damaged_backup"},
		"a page of zeros":     {make([]byte, 10_240), nil, "damaged_backup"},
		"cut in the manifest": {whole[:700], nil, "damaged_backup"},
		"cut in the dump":     {whole[:len(whole)/2], nil, "damaged_backup"},
		"a file changed":      {at(whole, bytes.LastIndex(whole, []byte("hello"))), nil, "damaged_backup"},
		"the dump changed": {pack(t,
			append([]archiveEntry{original[0], {original[1].Header, flipped}}, original[2:]...)),
			nil, "damaged_backup"},
		"more behind it": {append(bytes.Clone(whole), make([]byte, 1<<17)...), nil, "damaged_backup"},
		"a file too many": {
			pack(t,
				append(unpack(t, whole),
					archiveEntry{tar.Header{Typeflag: tar.TypeReg, Name: "files/x", Mode: 0o600}, []byte("x")})), nil,
			"damaged_backup",
		},
		"a file too few": {pack(t, original[:len(original)-1]), nil, "damaged_backup"},
		"another order": {pack(t, []archiveEntry{original[0], original[2], original[1], original[3]}), nil,
			"damaged_backup"},
		"a way out": {changed(func(_ map[string]any, all []archiveEntry) []archiveEntry {
			all[2].Name = "../../" + all[2].Name
			return all
		}), nil, "damaged_backup"},
		"a link": {changed(func(_ map[string]any, all []archiveEntry) []archiveEntry {
			all[2] = archiveEntry{
				tar.Header{Typeflag: tar.TypeSymlink, Name: all[2].Name, Linkname: "/etc/passwd"}, nil,
			}
			return all
		}), nil, "damaged_backup"},
		"no passphrase":        {sealed, nil, "required"},
		"a wrong passphrase":   {sealed, []string{"X-Passphrase: the owls are"}, "wrong_passphrase"},
		"sealed, changed":      {at(sealed, len(sealed)-100), []string{pass}, "damaged_backup"},
		"sealed, head changed": {at(sealed, 190), []string{pass}, ""},
		"sealed, cut":          {sealed[:len(sealed)-20], []string{pass}, "damaged_backup"},
		"sealed, cut at a chunk": {sealed[:len(sealed)-(len(sealed)-200)%(64<<10+16)], []string{pass},
			"damaged_backup"},
		"sealed, only a head": {sealed[:150], []string{pass}, "damaged_backup"},
		"endless head": {
			append([]byte("age-encryption.org/v1\n"), bytes.Repeat([]byte("-> x\n\n"), 100_000)...), nil,
			"damaged_backup",
		},
		"a newer format":     {manifest("format", archive.Format+1), nil, "newer_version"},
		"another database":   {manifest("database", "postgres"), nil, "damaged_backup"},
		"a newer schema":     {manifest("schema", 1_000_000), nil, "newer_version"},
		"no schema":          {manifest("schema", 0), nil, "damaged_backup"},
		"a newer PostgreSQL": {manifest("postgresql", 990_000), nil, "newer_postgresql"},
		"files that are large": {
			manifest("files", []any{map[string]any{"size": 1 << 60, "sha256": strings.Repeat("0", 64)}}),
			nil, "too_large",
		},
		"many of them": {
			manifest("files",
				[]any{map[string]any{"size": 1<<63 - 1, "sha256": strings.Repeat("0", 64)},
					map[string]any{"size": 1<<63 - 1, "sha256": strings.Repeat("1", 64)}}), nil, "too_large",
		},
		"less than nothing": {
			manifest("files", []any{map[string]any{"size": -1, "sha256": strings.Repeat("0", 64)}}), nil,
			"damaged_backup",
		},
		"a sum that is a path": {manifest("files", []any{map[string]any{"size": 1, "sha256": "../../x"}}), nil,
			"damaged_backup"},
		"a list of numbers": {manifest("tables", []int{1}), nil, "damaged_backup"},
		"untrusted extension": {
			manifest("extensions", []any{map[string]any{"name": "file_fdw", "schema": "public"}}), nil,
			"extension_missing",
		},
		"unknown extension": {
			manifest("extensions", []any{map[string]any{"name": `x"; drop table y; --`, "schema": "public"}}), nil,
			"extension_missing",
		},
		"extension in ours": {manifest("extensions", []any{map[string]any{"name": "citext", "schema": "storage"}}),
			nil, "extension_missing"},
		"no dump":       {dump(nil), nil, "damaged_backup"},
		"SQL as a dump": {dump([]byte("\\! touch /tmp/socle-imported\n")), nil, "damaged_backup"},
		"half a dump":   {dump(original[1].body[:200]), nil, "damaged_backup"},
		"a dump of lengths": {
			dump(append(bytes.Clone(original[1].body[:11]), bytes.Repeat([]byte{0, 0xff, 0xff, 0xff, 0x0f}, 200)...)),
			nil, "damaged_backup",
		},
	}
	for name, c := range cases {
		r := importArchive(into, c.body, c.headers...)
		want := 422
		if c.code == "too_large" {
			want = 413
		}

		if r.Status != want || (c.code != "" && r.Metadata("code") != c.code) {
			t.Errorf("%s: got %d %s, want %d %s", name, r.Status, r.Body, want, c.code)
		}
	}

	into.Send("POST", "/backups/import", string(whole), "Content-Type: multipart/form-data; boundary=x").Want(400)
	importArchive(into, whole, "Content-Encoding: gzip").Want(400)
	importArchive(into, whole, "X-Passphrase: "+strings.Repeat("x", 201)).Want(400)
	importArchive(a.Member(4), whole).Want(403)
	importArchive(a.Anonymous(), whole).Want(401)

	body, feed := io.Pipe()
	broken := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(into.Request("POST", "/backups/import", body, octetStream))
		if err == nil {
			res.Body.Close()
		}

		broken <- err
	}()

	if _, err := feed.Write(whole[:len(whole)/2]); err != nil {
		t.Fatal(err)
	}

	running := func() int {
		return apitest.Value[int](a,
			`select count(*) from platform.backups where origin = 'imported' and status = 'running'`)
	}
	until(t, "an import is running", func() bool { return running() == 1 })
	feed.CloseWithError(errors.New("the client is disconnected"))

	if err := <-broken; err == nil {
		t.Error("a truncated body got a response")
	}

	until(t, "it is removed completely", func() bool { return running() == 0 })

	a.Exec(`insert into platform.settings (name, value, updated_by) values ('max_imported_backup', '5000', gen_random_uuid())`)
	importArchive(into, whole).Want(413).Field("file")
	a.Exec(`delete from platform.settings`)

	if got := values(into.Get("/backups").Want(200), "uuid"); len(got) != 0 {
		t.Errorf("got backups %v, want none", got)
	}
	if after := blobs(t, a); len(after) != before {
		t.Errorf("got %d blobs, want %d: %q", len(after), before, after)
	}

	importArchive(into, whole).Want(201)
}

// TestImportOneAtATime starts an import while another one waits for its body.
func TestImportOneAtATime(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	id := createBackup(t, a)
	whole := downloadBackup(a, id, `{"encryption": "none"}`)
	body, feed := io.Pipe()
	done := make(chan *apitest.Reply, 1)

	go func() { done <- a.Do(a.Request("POST", "/backups/import", body, octetStream)) }()

	if _, err := feed.Write(whole[:600]); err != nil {
		t.Fatal(err)
	}

	until(t, "the import is running", func() bool {
		return apitest.Value[int](a, `select count(*) from platform.backups where status = 'running'`) == 1
	})

	importArchive(a, whole).Want(409).Code("import_under_way")
	running := apitest.Value[string](a, `select uuid::text from platform.backups where status = 'running'`)
	a.Post("/backups/"+running+"/download", `{"encryption": "none"}`).Want(409)
	a.Post("/backups/"+running+"/verify", "").Want(409).Code("backup_not_completed")
	createBackup(t, a) // allowed during an import

	if _, err := feed.Write(whole[600:]); err != nil {
		t.Fatal(err)
	}

	feed.Close()
	(<-done).Want(201).Content("status", "completed")

	a.Post("/backups/"+apitest.MissingUUID+"/verify", "").Want(404)
	a.Post("/backups/garbage/verify", "").Want(400)
	a.Member(5).Post("/backups/"+id+"/verify", "").Want(403)
	until(t, "the backup is proven", func() bool { return a.Get("/backups/"+id).Want(200).Metadata("provenAt") != nil })

	tried := a.Get("/backups/" + id).Metadata("triedAt")
	a.Post("/backups/"+id+"/verify", "").Want(200).Content("uuid", id)
	until(t, "the backup is proven again", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != tried
	})
	damageBackup(t, a, id+".dump")

	until(t, "the proof has failed", func() bool {
		a.Post("/backups/"+id+"/verify", "").Want(200) // also while a proof is running
		return a.Get("/backups/"+id).Want(200).Metadata("proofError") != ""
	})
}

// damageBackup changes a byte of a stored backup file.
func damageBackup(t *testing.T, a *apitest.API, name string) {
	t.Helper()

	path := filepath.Join(a.Config.StorageDir(), "projects", a.Project, "backups", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	text[len(text)-10] ^= 1

	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
