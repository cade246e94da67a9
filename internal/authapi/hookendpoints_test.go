package authapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// endpoints sets hooks to paths of a server, each with the name of its hook.
func (p *app) endpoints(url string, names ...string) {
	p.t.Helper()

	_, err := p.Server.Services().EndUsers.UpdateConfig(p.t.Context(), p.project.UUID, uuid.MustParse(p.User),
		func(c *rules.Config) {
			hooks(names...)(&c.Settings)
			for _, name := range names {
				c.Hooks[name] = url + "/" + name
				c.Secrets["hooks."+name] = webhookSecret
			}
		})
	if err != nil {
		p.t.Fatal(err)
	}
}

// endpoint starts a server of hooks. reply receives each request with its event.
func endpoint(t *testing.T, reply func(w http.ResponseWriter, r request, event map[string]any)) (url string) {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}

		var event map[string]any
		if err := json.Unmarshal(body, &event); err != nil {
			t.Errorf("got the event %s: %v", body, err)
		}

		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		reply(w, request{r, string(body)}, event)
	}))
	t.Cleanup(server.Close)

	return server.URL
}

// withPlan replies the claims of an event with another one.
func withPlan(w http.ResponseWriter, event map[string]any) {
	claims := event["claims"].(map[string]any)
	claims["plan"] = "pro"
	_ = json.NewEncoder(w).Encode(map[string]any{"claims": claims})
}

// TestHookEndpoints asks each hook by HTTP.
func TestHookEndpoints(t *testing.T) {
	t.Parallel()

	var asked sync.Map
	url := endpoint(t, func(w http.ResponseWriter, r request, event map[string]any) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		asked.Store(name, event["metadata"].(map[string]any)["name"])
		if r.Method != http.MethodPost || !r.isSigned(t, webhookSecret) ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %s with %v", name, r.Method, r.Header)
		}

		reply := "{}"
		switch name {
		case "custom_access_token":
			withPlan(w, event)
			return
		case "before_user_created":
			if event["user"].(map[string]any)["email"] == "eve@example.com" {
				reply = `{"error": {"http_code": 403, "message": "Not you"}}`
			}
		case "password_verification_attempt":
			if event["valid"] == false {
				reply = `{"decision": "reject", "message": "No more"}`
			}
		case "mfa_verification_attempt":
			reply = `{"decision": "reject", "message": "Never"}`
		}
		_, _ = w.Write([]byte(reply))
	})

	p := newApp(t, nil)
	p.endpoints(url, "custom_access_token", "before_user_created", "after_user_created",
		"password_verification_attempt", "mfa_verification_attempt")

	p.post("/signup", `{"email":"eve@example.com","password":"`+password+`"}`).fails(403, "unknown").
		equal("message", "Not you")
	bearer := p.signUp("ann@example.com").text("access_token")
	if got := claim(t, bearer, "plan"); got != "pro" {
		t.Errorf("got the plan %v, want pro", got)
	}

	p.login("ann@example.com").want(200)
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"wrong"}`).
		fails(400, "invalid_credentials").equal("message", "No more")

	factor := p.send("POST", "/factors", bearer, `{"factor_type":"totp"}`).want(200)
	path := "/factors/" + factor.text("id")
	secret, err := token.ParseTOTPText(factor.text("totp.secret"))
	if err != nil {
		t.Fatal(err)
	}

	challenge := p.send("POST", path+"/challenge", bearer, "{}").want(200).text("id")
	p.send("POST", path+"/verify", bearer,
		`{"challenge_id":"`+challenge+`","code":"`+token.TOTPCode(secret, 0)+`"}`).
		fails(403, "mfa_verification_rejected").equal("message", "Never")

	for hook, want := range map[string]string{"custom_access_token": "customize-access-token",
		"before_user_created":           "before-user-created",
		"after_user_created":            "after-user-created",
		"password_verification_attempt": "password-verification",
		"mfa_verification_attempt":      "mfa-verification"} {
		if got, _ := asked.Load(hook); got != want {
			t.Errorf("%s: got an event with the name %v, want %s", hook, got, want)
		}
	}
}

// TestHookEndpointsThatFail: an endpoint breaks the contract in many ways. No response shows what
// it says, but for its rejection.
func TestHookEndpointsThatFail(t *testing.T) {
	t.Parallel()

	const unavailable = "Service currently unavailable due to hook"
	const unreached = "Failed to reach hook after maximum retries"
	status := func(status int, header ...string) func(http.ResponseWriter, request, int) {
		return func(w http.ResponseWriter, _ request, _ int) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"claims": {}, "message": "a secret"}`))
		}
	}
	text := func(text string) func(http.ResponseWriter, request, int) {
		return func(w http.ResponseWriter, _ request, _ int) { _, _ = w.Write([]byte(text)) }
	}
	hang := func(_ http.ResponseWriter, r request, _ int) { <-r.Context().Done() }

	cases := map[string]struct {
		reply    func(w http.ResponseWriter, r request, attempt int)
		attempts int
		status   int
		code     string
		text     string
	}{
		"server error": {status(500), 1, 500, "unexpected_failure", "Unexpected status code returned from hook: 500"},
		"bad request":  {status(400), 1, 500, "unexpected_failure", "Invalid payload sent to hook"},
		"unauthorized": {status(401), 1, 500, "unexpected_failure", "Hook requires authorization token"},
		"not found":    {status(404), 1, 500, "unexpected_failure", "hook: 404"},
		"created":      {status(201), 1, 500, "unexpected_failure", "hook: 201"},
		"elsewhere":    {status(307, "Location", "http://127.0.0.2:1/"), 1, 422, "hook_timeout_after_retry", unreached},

		"unavailable":       {status(503), 1, 500, "unexpected_failure", unavailable},
		"unavailable twice": {status(503, "Retry-After", "0"), 3, 500, "unexpected_failure", unavailable},
		"too many":          {status(429, "Retry-After", "0"), 3, 500, "unexpected_failure", unavailable},
		"later":             {status(503, "Retry-After", "9999999999999"), 1, 500, "unexpected_failure", unavailable},
		"minute":            {status(429, "Retry-After", "60"), 1, 500, "unexpected_failure", unavailable},

		"no body":     {status(204), 1, 500, "unexpected_failure", "output claims field is missing"},
		"no JSON":     {text("a secret"), 1, 500, "unexpected_failure", "Error unmarshaling"},
		"list":        {text("[1]"), 1, 500, "unexpected_failure", ""},
		"HTML":        {status(200, "Content-Type", "text/html"), 1, 400, "hook_payload_invalid_content_type", ""},
		"other type":  {status(200, "Content-Type", "é/"), 1, 400, "hook_payload_invalid_content_type", ""},
		"huge":        {text(`{"claims": "` + strings.Repeat("x", 1<<16) + `"}`), 1, 422, "hook_payload_over_size_limit", ""},
		"rejection":   {text(`{"error": {"http_code": 403, "message": "Not today"}}`), 1, 403, "unknown", "Not today"},
		"odd status":  {text(`{"error": {"http_code": 200, "message": "Not today"}}`), 1, 500, "unexpected_failure", "Not today"},
		"no response": {hang, 1, 422, "hook_timeout", "Failed to reach hook within maximum time of 5"},
		"half a response": {func(w http.ResponseWriter, r request, attempt int) {
			_, _ = w.Write([]byte(`{"claims": {`))
			w.(http.Flusher).Flush()
			hang(w, r, attempt)
		}, 1, 422, "hook_timeout", ""},
		"lost connection": {func(http.ResponseWriter, request, int) { panic(http.ErrAbortHandler) }, 3, 422,
			"hook_timeout_after_retry", unreached},
		"second attempt": {func(w http.ResponseWriter, r request, attempt int) {
			if attempt == 1 {
				panic(http.ErrAbortHandler)
			}
			text(`{"error": {"http_code": 409, "message": "Again"}}`)(w, r, attempt)
		}, 2, 409, "unknown", "Again"},
	}

	// A sign-up names its case in the metadata of the user.
	var mu sync.Mutex
	attempts, ids := map[string]int{}, map[string]string{}
	url := endpoint(t, func(w http.ResponseWriter, r request, event map[string]any) {
		name := event["claims"].(map[string]any)["user_metadata"].(map[string]any)["case"].(string)

		mu.Lock()
		attempts[name]++
		n, id := attempts[name], r.Header.Get("Webhook-Id")
		if n == 1 {
			ids[name] = id
		} else if ids[name] != id {
			t.Errorf("%s: an attempt has another webhook-id", name)
		}
		mu.Unlock()

		cases[name].reply(w, r, n)
	})

	p := newApp(t, nil)
	p.endpoints(url, "custom_access_token")

	t.Run("cases", func(t *testing.T) {
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				got := p.post("/signup", `{"data":{"case":"`+name+`"}}`)
				if got.status != test.status || got.text("code") != test.code ||
					!strings.Contains(got.raw, test.text) || strings.Contains(got.raw, "a secret") ||
					strings.Contains(got.raw, url) {
					t.Errorf("got %d %s, want %d %s %s", got.status, got.raw, test.status, test.code, test.text)
				}

				mu.Lock()
				defer mu.Unlock()

				if n := attempts[name]; n != test.attempts {
					t.Errorf("got %d attempts, want %d", n, test.attempts)
				}
			})
		}
	})

	left, err := pg.Values[string](t.Context(), p.project.EndUsers(), `
		select raw_user_meta_data ->> 'case' from auth.sessions s join auth.users u on u.id = s.user_id`)
	if err != nil || len(left) > 0 {
		t.Errorf("sessions of %q are left (%v)", left, err)
	}
}

// TestHookEndpointOfNeighbor: the endpoint of one project does not respond. It has at most a
// quarter of all requests to hooks, and another project does not notice.
func TestHookEndpointOfNeighbor(t *testing.T) {
	t.Parallel()

	const most, refreshes = 64, 80
	var quick atomic.Bool
	var running atomic.Int32
	entered, leave := make(chan int32, refreshes), make(chan struct{})
	slow := endpoint(t, func(w http.ResponseWriter, _ request, event map[string]any) {
		if !quick.Load() {
			entered <- running.Add(1)
			defer running.Add(-1)

			<-leave
		}
		withPlan(w, event)
	})
	other := endpoint(t, func(w http.ResponseWriter, _ request, event map[string]any) { withPlan(w, event) })

	p, q := newApp(t, nil), newApp(t, nil)
	p.endpoints(slow, "custom_access_token")
	q.endpoints(other, "custom_access_token")
	quick.Store(true)
	ann, ben := p.signUp("ann@example.com"), q.signUp("ben@example.com")
	quick.Store(false)

	var wait sync.WaitGroup
	for range refreshes {
		wait.Go(func() {
			if got := p.refresh(ann.text("refresh_token")); got.status != 200 && got.text("code") != "hook_timeout" {
				t.Errorf("refresh: got %d %s", got.status, got.raw)
			}
		})
	}

	for range most / 2 {
		<-entered
	}
	q.refresh(ben.text("refresh_token")).want(200)
	close(leave)
	wait.Wait()

	for range len(entered) {
		if n := <-entered; n > most {
			t.Errorf("got %d requests at once, want at most %d", n, most)
		}
	}
}

// TestHookEndpointInside: no hook leads into the server's networks.
func TestHookEndpointInside(t *testing.T) {
	t.Parallel()

	var requests atomic.Int64
	inside := endpoint(t, func(http.ResponseWriter, request, map[string]any) { requests.Add(1) })
	server := apitest.New(t, func(c *config.Config) { c.OutboundNetworks = nil })
	_, port, _ := strings.Cut(strings.TrimPrefix(inside, "http://"), ":")

	for _, url := range []string{inside, "https://localhost:" + port, "https://2130706433:" + port, "https://10.0.0.1",
		"https://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254"} {
		a := *server
		a.Project = server.CreateProject("inside")
		p := appOf(t, &a, nil)
		p.endpoints(url, "before_user_created")
		p.post("/signup", `{}`).fails(422, "hook_timeout_after_retry").
			equal("message", "Failed to reach hook after maximum retries")
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests reached the server's network", n)
	}
}

func TestHookEndpointSettings(t *testing.T) {
	t.Parallel()

	p := newApp(t, nil)
	path := "/projects/" + p.Project + "/auth-settings"
	body := func(url, secret string) string {
		return `{"hooks": {"custom_access_token": "` + url + `"},
			"secrets": {"hooks.custom_access_token": "` + secret + `"}}`
	}

	for _, url := range []string{"https://user@example.com/", "https://example.com/?key=x", "https://example.com/#x",
		"https:///x", "ftp://example.com/", "https://example.com/" + strings.Repeat("x", 500)} {
		p.Put(path, body(url, webhookSecret)).Want(422).Field("hooks.custom_access_token")
	}
	for _, secret := range []string{"", "secret", "v1,whsec_c2hvcnQ=", "v1a,whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		p.Put(path, body("https://example.com/hook", secret)).Want(422).Field("secrets.hooks.custom_access_token")
	}
	p.Put(path, `{"secrets": {"hooks.unknown": "`+webhookSecret+`"}}`).Want(422).Field("secrets.hooks.unknown")

	p.Put(path, body("https://example.com/hook", webhookSecret)).Want(200).
		Content("hooks.custom_access_token", "https://example.com/hook").
		Content("secretNames.0", "hooks.custom_access_token")
	p.Put(path, `{"secrets": {"hooks.custom_access_token": ""}}`).Want(422).Field("secrets.hooks.custom_access_token")
	p.Put(path, `{"hooks": {}, "secrets": {"hooks.custom_access_token": ""}}`).Want(200)
}

// TestSignUpWithoutHook checks that a sign-up fails if a hook does not answer.
func TestSignUpWithoutHook(t *testing.T) {
	t.Parallel()

	url := endpoint(t, func(w http.ResponseWriter, _ request, _ map[string]any) {
		w.Header().Set("Location", "http://127.0.0.2:1/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	p := newApp(t, func(s *rules.Settings) { byPhone(s); s.SMS.IntervalSeconds = 0 })
	p.endpoints(url, "before_user_created")
	p.configure(func(s *rules.Settings) { s.ConfirmEmail = true })

	for _, address := range []string{`"email":"ann@example.com"`, `"phone":"+491701"`} {
		p.post("/signup", `{`+address+`,"password":"`+password+`"}`).fails(422, "hook_timeout_after_retry")
		p.post("/otp", `{`+address+`}`).fails(422, "hook_timeout_after_retry")
	}
}

// TestSignUpsAtOnce: a sign-up counts though another request creates the user meanwhile.
func TestSignUpsAtOnce(t *testing.T) {
	t.Parallel()

	var p *app
	url := endpoint(t, func(w http.ResponseWriter, _ request, event map[string]any) {
		user := event["user"].(map[string]any)
		body, _ := json.Marshal(map[string]any{"email": user["email"], "phone": user["phone"]})
		p.send("POST", "/admin/users", p.secret, string(body)).want(200) // asks no hook
		_, _ = io.WriteString(w, "{}")
	})

	p = newApp(t, func(s *rules.Settings) { byPhone(s); s.SMS.IntervalSeconds = 0 })
	p.endpoints(url, "before_user_created")
	p.configure(func(s *rules.Settings) { s.ConfirmEmail = true })

	for _, address := range []string{`"email":"ann@example.com"`, `"phone":"491701"`} {
		p.post("/signup", `{`+address+`,"password":"`+password+`"}`).want(200)
	}

	if n := p.count(`select count(*)::int from auth.sign_ups where encrypted_password is not null`); n != 2 {
		t.Errorf("%d requests wait for a confirmation, want 2", n)
	}
}
