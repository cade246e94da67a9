package api_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// creations returns the calls that create an entity, inside and outside a populated project.
func creations(f fixture) []call {
	calls := slices.Concat(f.calls(), f.formCalls(), f.visitorCalls(), []call{
		{id: "createProject", method: "POST", path: "/projects", body: `{"name": "Once"}`},
		{id: "createOrganization", method: "POST", path: "/organizations", body: `{"name": "once"}`},
		{id: "createInvitation", method: "POST",
			path: "/organizations/" + f.Organization + "/invitations",
			body: `{"email": "once@example.com", "role_id": 5}`},
		{id: "createKey", method: "POST",
			path: "/projects/" + f.Project + "/keys", body: `{"name": "once", "kind": "secret"}`},
		{id: "createS3Key", method: "POST", path: "/projects/" + f.Project + "/s3-keys", body: `{"name": "once"}`},
		{id: "createVaultSecret", method: "POST",
			path: "/projects/" + f.Project + "/vault-secrets", body: `{"name": "once", "secret": "s3cret"}`},
		{id: "createToken", method: "POST",
			path: "/tokens", body: `{"name": "once", "role_id": 4, "expires_at": "` + tomorrow() + `"}`},
		{id: "createUser", method: "POST",
			path: "/users", body: `{"username": "once", "email": "once@example.org", "password": "` +
				apitest.Password + `"}`},
	})

	return slices.DeleteFunc(calls, func(c call) bool { return c.method != "POST" || c.id == "diffMigrations" })
}

// TestLostResponses covers servers that died after a change and before its response was stored. A
// repeated request reports every creation as done, regardless of unique names, quotas and running
// jobs.
func TestLostResponses(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	tested := 0
	for _, c := range creations(populate(t, a)) {
		key := "Idempotency-Key: " + c.id
		if c.send(a, key).Status != 201 {
			continue
		}

		tested++
		a.Exec(`update platform.idempotency set status = null, answer = null`)
		before := query[int64](t, a, "select count(*) from "+apitest.AuditLog)
		r := c.send(a, key)
		if got := r.Metadata("code"); got != "already_done" {
			t.Errorf("%s: got code %v, want already_done\n%s", c.id, got, r.Body)
		}

		if after := query[int64](t, a, "select count(*) from "+apitest.AuditLog); after != before {
			t.Errorf("%s: a repeated request changed something", c.id)
		}
	}

	if tested < 20 {
		t.Errorf("got %d creations, want at least 20", tested)
	}
}

// TestClaimOfAnotherServer checks that a request counts as in progress only while the session of
// the claiming server lives.
func TestClaimOfAnotherServer(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	send := func() *apitest.Reply {
		return a.Send("POST", "/containers", `{"name": "claimed"}`, "Idempotency-Key: claimed")
	}

	send().Want(201)

	other, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())

	if _, err := other.Exec(t.Context(), `select pg_advisory_lock(330783, pg_backend_pid())`); err != nil {
		t.Fatal(err)
	}

	a.Exec(`update platform.idempotency set status = null, answer = null, holder = $1`, int32(other.PgConn().PID()))
	send().Want(409).Code("in_progress")

	other.Close(t.Context())
	until(t, "the claim of the dead server is taken over", func() bool {
		return send().Metadata("code") == "already_done"
	})
}

// TestLostCommitResponse covers a connection that is lost after PostgreSQL has committed. With an
// Idempotency-Key the response reports the change, without one an unknown outcome.
func TestLostCommitResponse(t *testing.T) {
	t.Parallel()

	var p *lossyProxy
	a := apitest.New(t, func(c *config.Config) { p = startLossyProxy(t, c) })
	for kind, c := range map[string]struct{ path, body string }{
		"container": {"/containers", `{"name": "NAME"}`},
		"table":     {"/tables", `{"name": "NAME", "columns": [{"name": "id", "type": "integer"}]}`},
		"enum":      {"/enums", `{"name": "NAME", "values": ["a"]}`},
		"function": {"/functions/public",
			`{"name": "NAME", "language": "sql", "definition": "select 1", "return_type": "integer"}`},
		"form":         {"/forms", `{"name": "NAME"}`},
		"organization": {"/organizations", `{"name": "NAME"}`},
		"key":          {"/projects/" + a.Project + "/keys", `{"name": "NAME", "kind": "secret"}`},
	} {
		send := func(name, key string) *apitest.Reply {
			body := strings.ReplaceAll(c.body, "NAME", name)
			if key == "" {
				return a.Post(c.path, body)
			}

			return a.Send("POST", c.path, body, "Idempotency-Key: "+key)
		}

		p.dropNext("lost_" + kind)

		if got := send("lost_"+kind, kind).Metadata("code"); got != "already_done" {
			t.Errorf("%s: got code %v, want already_done", kind, got)
		}
		if got := send("lost_"+kind, kind).Metadata("code"); got != "already_done" {
			t.Errorf("%s: got code %v for a repeated request, want already_done", kind, got)
		}

		p.dropNext("open_" + kind)
		send("open_"+kind, "").Want(500).Code("outcome_unknown")

		if p.pending() {
			t.Errorf("%s: no commit was lost", kind)
		}
	}
}

// TestLostProjectCommitResponse covers a connection that is lost during the creation of a project.
// The project is completed later, and a repeated request never creates a second one.
func TestLostProjectCommitResponse(t *testing.T) {
	t.Parallel()

	var p *lossyProxy
	a := apitest.User(t, func(c *config.Config) { p = startLossyProxy(t, c) })
	send := func() *apitest.Reply {
		return a.Send("POST", "/projects", `{"name": "Lost", "organization_uuid": "`+a.Organization+`"}`,
			"Idempotency-Key: lost")
	}

	p.dropNext("Lost")

	if got := send().Want(409).Metadata("code"); got != "in_progress" {
		t.Errorf("got code %v, want in_progress", got)
	}

	until(t, "the project is completed", func() bool {
		a.RunMaintenance()
		return send().Want(409).Metadata("code") == "already_done"
	})

	a.Get("/projects").Want(200).Total(1)

	if got := apitest.Value[int](a, `
		select count(*) from `+apitest.AuditLog+`
		where entry::jsonb ->> 'action' = 'createProject' and entry::jsonb ->> 'actor' = $1 and entry::jsonb ->> 'key' is not null`, a.User); got != 1 {
		t.Errorf("got %d audit entries with the key, want 1", got)
	}
}

// lossyProxy forwards PostgreSQL messages and closes a connection between a commit and its
// response.
type lossyProxy struct {
	listener net.Listener
	server   string

	mu sync.Mutex
	// marker selects the transaction: the response to the next commit on a connection that has sent
	// this text is lost.
	marker string
}

// startLossyProxy starts a proxy in front of the PostgreSQL server of c and points c to it. It
// stops at the end of the test.
func startLossyProxy(t *testing.T, c *config.Config) *lossyProxy {
	t.Helper()

	u, err := url.Parse(string(c.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}

	query := u.Query()

	dir, err := os.MkdirTemp("", "proxy") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}

	socket := ".s.PGSQL." + query.Get("port")
	p := &lossyProxy{server: filepath.Join(query.Get("host"), socket)}
	if p.listener, err = net.Listen("unix", filepath.Join(dir, socket)); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		p.listener.Close()
		os.RemoveAll(dir)
	})

	go func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}

			go p.pass(conn)
		}
	}()

	query.Set("host", dir)
	u.RawQuery = query.Encode()
	c.DatabaseURL = config.Secret(u.String())

	return p
}

// dropNext drops the response to the next commit of a transaction that contains marker.
func (p *lossyProxy) dropNext(marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.marker = marker
}

// pending reports whether the response is still to be dropped.
func (p *lossyProxy) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.marker != ""
}

// matches reports whether a message contains the marker.
func (p *lossyProxy) matches(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.marker != "" && strings.Contains(string(message), p.marker)
}

func (p *lossyProxy) pass(client net.Conn) {
	defer client.Close()

	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close()

	var losing, marked bool
	var mu sync.Mutex
	go func() { // responses
		defer client.Close()

		for {
			message, err := readMessage(server, true)
			if err != nil {
				return
			}

			mu.Lock()
			lost := losing
			mu.Unlock()

			if lost && message[0] == 'Z' { // ReadyForQuery: the commit is complete
				return
			}

			if !lost {
				if _, err := client.Write(message); err != nil {
					return
				}
			}
		}
	}()

	inTx := false
	for typed := false; ; typed = true {
		message, err := readMessage(client, typed)
		if err != nil {
			return
		}

		query := ""
		if typed && message[0] == 'Q' {
			query = string(message[5:])
			inTx = strings.HasPrefix(query, "begin") || (inTx && !strings.HasPrefix(query, "commit"))
		}

		// A statement outside of a transaction block commits at its Sync.
		commits := strings.HasPrefix(query, "commit") || (typed && message[0] == 'S' && !inTx)
		marked = marked || p.matches(message)
		if marked && commits {
			p.dropNext("")
			mu.Lock()
			losing = true
			mu.Unlock()
		}

		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads a message of the PostgreSQL protocol: a type byte, unless it is a client's
// first message, a length and a payload.
func readMessage(r io.Reader, typed bool) ([]byte, error) {
	head := make([]byte, 4)
	if typed {
		head = make([]byte, 5)
	}

	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}

	message := make([]byte, len(head)-4+int(binary.BigEndian.Uint32(head[len(head)-4:])))
	copy(message, head)
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}
