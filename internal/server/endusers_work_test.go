package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// work returns the operations of a trace's requests, sorted: statements and hashes of passwords,
// without those of jobs that a request has enqueued, and without the pings of connections that were
// idle for a second, which have no word.
func (c *collector) work(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()

	inJob := map[hexID]bool{}
	for range c.spans { // children can come before their parents
		before := len(inJob)
		for _, s := range c.spans {
			if strings.HasPrefix(s.Name, "job ") || inJob[s.ParentSpanID] {
				inJob[s.SpanID] = true
			}
		}
		if len(inJob) == before {
			break
		}
	}

	var all []string
	for _, s := range c.spans {
		if s.TraceID == hexID(trace) && !inJob[s.SpanID] && s.Name != "statement" {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)

	return all
}

func count(all []string, name string) int {
	n := 0
	for _, s := range all {
		if s == name {
			n++
		}
	}

	return n
}

// TestWorkForKnownAddresses compares what requests about known and unknown addresses execute, so
// that their times tell nothing.
func TestWorkForKnownAddresses(t *testing.T) {
	t.Parallel()

	collected := newCollector(t)
	p, c := startInstalled(t, collected.settings()...)
	c.want(t, 200, "PUT", "/projects/"+c.project+"/auth-settings", `{"mail_interval_seconds": 0}`)

	keys := map[string]string{}
	for _, kind := range []string{"publishable", "secret"} {
		var created struct{ Metadata struct{ Key string } }
		a := c.send(t, "POST", "/projects/"+c.project+"/keys", fmt.Sprintf(`{"name": %q, "kind": %q}`, kind, kind))
		if err := json.Unmarshal(a.body, &created); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		keys[kind] = created.Metadata.Key
	}

	addresses := []string{"confirmed", "unconfirmed", "unknown"}
	for i, name := range addresses[:2] {
		if status, failure := c.auth(t, "/admin/users", keys["secret"], fmt.Sprintf(
			`{"email": "%s@example.com", "password": %q, "email_confirm": %t}`, name, userPassword, i == 0)); status != 200 {
			t.Fatalf("got %d %v", status, failure)
		}
	}

	requests := []struct{ name, path, body string }{
		{"log-in", "/token?grant_type=password", `{"email": "%s@example.com", "password": "wrong"}`},
		{"recovery", "/recover", `{"email": "%s@example.com"}`},
		{"confirmation again", "/resend", `{"type": "signup", "email": "%s@example.com"}`},
		{"change again", "/resend", `{"type": "email_change", "email": "%s@example.com"}`},
		{"sign-up", "/signup", `{"email": "%s@example.com", "password": "` + userPassword + `"}`},
	}
	const rounds = 4 // the first one opens connections
	trace := func(request, address, round int) string {
		return fmt.Sprintf("%029d%d%d%d", 7, request+1, address+1, round)
	}
	for i, r := range requests {
		for round := range rounds {
			for j, address := range addresses {
				if r.path == "/signup" && address == "unknown" {
					address = fmt.Sprintf("unknown%d", round)
				}

				parent := fmt.Sprintf("Traceparent: 00-%s-b7ad6b7169203331-0%d", trace(i, j, round), min(round, 1))
				status, _, text := c.do(t, "POST", "/projects/"+c.project+"/auth/v1"+r.path,
					fmt.Appendf(nil, r.body, address), "Authorization: Bearer "+keys["publishable"], parent)
				if status != 200 && r.name != "log-in" {
					t.Fatalf("%s: got %d %s", r.name, status, text)
				}
			}
		}
	}

	p.signal(syscall.SIGTERM) // exports what is left
	p.wait()

	// least returns the work of the round that had the least: cached settings and keys expire
	// between requests.
	least := func(request, address int) (work []string) {
		for round := 1; round < rounds; round++ {
			if w := collected.work(trace(request, address, round)); round == 1 || len(w) < len(work) {
				work = w
			}
		}

		return work
	}

	for i, r := range requests {
		confirmed, unconfirmed, unknown := least(i, 0), least(i, 1), least(i, 2)
		if len(confirmed) < 3 || !slices.Equal(confirmed, unconfirmed) {
			t.Errorf("%s: a confirmed address takes\n%v\nan unconfirmed one\n%v", r.name, confirmed, unconfirmed)
		}

		if r.path != "/signup" {
			if !slices.Equal(confirmed, unknown) {
				t.Errorf("%s: a known address takes\n%v\nan unknown one\n%v", r.name, confirmed, unknown)
			}
			continue
		}

		// A new user has rows that a known one has already.
		for _, name := range []string{"hash password", "BEGIN", "COMMIT"} {
			if known, new := count(confirmed, name), count(unknown, name); known != new || known == 0 {
				t.Errorf("sign-up: %s: %d of a known address, %d of a new one", name, known, new)
			}
		}
	}
}
