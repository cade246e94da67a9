package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// functionsApp is a project with the functions of testdata/functions.
type functionsApp struct {
	t       *testing.T
	a       *apitest.API
	project string
	url     string // address of the functions
	cli     string
	anon    string // a publishable key
}

// TestEdgeFunctionsOfSupabase deploys functions in the style of Supabase's examples by the command
// line, and calls each as its clients do.
func TestEdgeFunctionsOfSupabase(t *testing.T) {
	t.Parallel()

	f := newFunctionsApp(t)
	for name, test := range map[string]func(t *testing.T, f *functionsApp){
		"stripe-webhook": testStripe, "completions": testCompletions, "todos": testTodos, "api": testHono,
		"signup": testZod, "echo": testEcho, "upload": testUpload, "send-email": testSendEmail, "nightly": testNightly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// newFunctionsApp deploys the functions with their secrets.
func newFunctionsApp(t *testing.T) *functionsApp {
	t.Helper()

	cli, err := binary()
	if err != nil {
		t.Fatal(err)
	}

	a := apitest.SharedUser(t)
	f := &functionsApp{t: t, a: a, project: a.CreateProject("functions"), cli: cli}
	f.url = a.URL + "/projects/" + f.project + "/functions/v1/"

	key := a.Post("/projects/"+f.project+"/keys", `{"name": "app", "kind": "publishable"}`).Want(201)
	f.anon, _ = key.Metadata("key").(string)
	a.WithProject(f.project).Post("/sql", `{"read_only": false, "query": "create table todos (title text); `+
		`insert into todos values ('one'), ('two'), ('old'); alter table todos enable row level security; `+
		`grant select on todos to anon; grant all on todos to service_role; `+
		`create policy readers on todos for select to anon using (title <> 'old')"}`).Want(200)
	a.WithProject(f.project).Post("/containers", `{"name": "uploads"}`).Want(201)

	f.run(t, "STRIPE_API_KEY=sk_test_1\nSTRIPE_WEBHOOK_SECRET=whsec_test\nSEND_EMAIL_HOOK_SECRET=\"v1,whsec_"+
		base64.StdEncoding.EncodeToString([]byte("hook"))+"\"\n", "secrets", "set", "--env-file", "-")
	out := f.run(t, "", "deploy", "--dir", "testdata/functions")
	if n := strings.Count(out, "Deployed "); n != 9 {
		t.Fatalf("deployed %d functions, want 9:\n%s", n, out)
	}

	return f
}

// run runs a command of socle functions.
func (f *functionsApp) run(t *testing.T, input string, args ...string) string {
	t.Helper()

	deno := os.Getenv("SOCLE_DENO_BIN")
	cmd := exec.CommandContext(t.Context(), f.cli, append([]string{"functions"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = []string{"SOCLE_URL=" + f.a.URL, "SOCLE_TOKEN=" + f.a.Token, "SOCLE_PROJECT=" + f.project,
		"SOCLE_DENO_BIN=" + deno, "DENO_DIR=" + filepath.Join(deno, "cache"), "HOME=" + t.TempDir(),
		"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("socle functions %v: %v\n%s", args, err, out)
	}

	return string(out)
}

// call calls a function, and returns its status and answer.
func (f *functionsApp) call(t *testing.T, method, path string, body io.Reader, header ...string) string {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), method, f.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return fmt.Sprint(res.StatusCode, " ", string(text))
}

// same compares an answer.
func same(t *testing.T, got, want string) {
	t.Helper()

	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func sign(secret []byte, text string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))

	return mac.Sum(nil)
}

func testStripe(t *testing.T, f *functionsApp) {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	body := `{"id": "evt_1", "object": "event", "type": "checkout.session.completed"}`
	signature := "t=" + at + ",v1=" + hex.EncodeToString(sign([]byte("whsec_test"), at+"."+body))

	same(t, f.call(t, "POST", "stripe-webhook", strings.NewReader(body), "Stripe-Signature", signature),
		`200 {"received":"checkout.session.completed"}`)
	got := f.call(t, "POST", "stripe-webhook", strings.NewReader(body+" "), "Stripe-Signature", signature)
	if !strings.HasPrefix(got, "400 No signatures found") {
		t.Errorf("another body: got %s", got)
	}
}

func testCompletions(t *testing.T, f *functionsApp) {
	same(t, f.call(t, "POST", "completions", strings.NewReader(`{"query": "to be"}`), "Apikey", f.anon),
		"200 data: {\"delta\":\"to\"}\n\ndata: {\"delta\":\"be\"}\n\ndata: [DONE]\n\n")
	same(t, f.call(t, "OPTIONS", "completions", nil, "Origin", "https://app.example.com"), "200 ok")
	if got := f.call(t, "POST", "completions", nil); !strings.HasPrefix(got, "401") {
		t.Errorf("without a key: got %s", got)
	}
}

func testTodos(t *testing.T, f *functionsApp) {
	same(t, f.call(t, "POST", "todos", nil, "Apikey", f.anon, "Authorization", "Bearer "+f.anon),
		`200 {"titles":["one","two"]}`)
}

func testHono(t *testing.T, f *functionsApp) {
	same(t, f.call(t, "GET", "api/items/7?q=x", nil, "Apikey", f.anon), `200 {"id":"7","q":"x"}`)
	same(t, f.call(t, "POST", "api/items", strings.NewReader(`{"a":1}`), "Apikey", f.anon), `201 {"a":1}`)
	same(t, f.call(t, "GET", "api/nothing", nil, "Apikey", f.anon), "404 404 Not Found")
}

func testZod(t *testing.T, f *functionsApp) {
	same(t, f.call(t, "POST", "signup", strings.NewReader(`{"email": "ada@example.com", "age": 36}`), "Apikey", f.anon),
		`200 {"email":"ada@example.com","age":36}`)
	same(t, f.call(t, "POST", "signup", strings.NewReader(`{"email": "ada", "age": 36}`), "Apikey", f.anon),
		`422 {"email":["Invalid email"]}`)
}

func testEcho(t *testing.T, f *functionsApp) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	conn, _, err := websocket.Dial(ctx, f.url+"echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()

	if err := conn.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"welcome", "echo hello"} {
		if _, got, err := conn.Read(ctx); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func testUpload(t *testing.T, f *functionsApp) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "notes.txt")
	if err == nil {
		_, err = io.WriteString(part, "some notes")
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}

	same(t, f.call(t, "POST", "upload", &body, "Apikey", f.anon, "Content-Type", form.FormDataContentType()),
		`200 {"path":"notes.txt"}`)
}

func testSendEmail(t *testing.T, f *functionsApp) {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	body := `{"user": {"email": "ada@example.com"}, "email_data": {"token": "123456"}}`
	signature := "v1," + base64.StdEncoding.EncodeToString(sign([]byte("hook"), "msg_1."+at+"."+body))

	same(t, f.call(t, "POST", "send-email", strings.NewReader(body), "Webhook-Id", "msg_1", "Webhook-Timestamp", at,
		"Webhook-Signature", signature), "200 {}")
	if got := f.call(t, "POST", "send-email", strings.NewReader(body), "Webhook-Id", "msg_2", "Webhook-Timestamp", at,
		"Webhook-Signature", signature); !strings.HasPrefix(got, "401") {
		t.Errorf("another signature: got %s", got)
	}
	pgtest.Eventually(t, "the log has the mail", func() bool {
		return strings.Contains(f.run(t, "", "logs", "send-email"), "to ada@example.com <p>Your code: 123456</p>")
	})
}

func testNightly(t *testing.T, f *functionsApp) {
	same(t, f.call(t, "POST", "nightly", nil, "Apikey", f.anon), "202 ")
	pgtest.Eventually(t, "the log has the background work", func() bool {
		return strings.Contains(f.run(t, "", "logs", "nightly"), "cleaned without errors")
	})
}
