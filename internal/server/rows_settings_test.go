package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestRowsWhileSettingsChange checks that a request that waits for a catalog gets it although the
// exposed schemas change meanwhile.
func TestRowsWhileSettingsChange(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	settings, document := "/projects/"+s.Project+"/rest-settings", "/projects/"+s.Project+"/openapi.json"

	var asking, changing sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}

				if r := s.WithT(t).Get(document); r.Status != http.StatusOK {
					t.Errorf("the description: got %d %s", r.Status, r.Body)
					return
				}

				if status, text := s.rows(s.Project, "GET", "/titles", "", "apikey: "+s.secret); status !=
					http.StatusOK {
					t.Errorf("rows: got %d %s", status, text)
					return
				}
			}
		})
	}

	changing.Go(func() {
		for i := range 20 {
			s.Put(settings, []string{`{"schemas": ["public"]}`, `{"schemas": ["public", "other"]}`}[i%2]).
				Want(http.StatusOK)
			s.Get(document)
		}
	})

	changing.Wait()
	close(done)
	asking.Wait()
}

// TestRowsSettings checks that each setting of a project reaches its rows API.
func TestRowsSettings(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	settings, secret := "/projects/"+s.Project+"/rest-settings", "apikey: "+s.secret
	s.want(201, "", "POST", "/titles", `[{"id": 1, "title": "Emma"}, {"id": 2, "title": "Persuasion"}]`, secret)

	const plan = "Accept: application/vnd.pgrst.plan"
	s.want(400, "", "GET", "/titles?select=id.max()", "", secret)
	s.want(406, "", "GET", "/titles", "", secret, plan)
	s.want(204, "", "PATCH", "/titles?id=eq.1", `{"title": "Sanditon"}`, secret, "Prefer: tx=rollback")
	s.want(200, `[{"title":"Sanditon"}]`, "GET", "/titles?select=title&id=eq.1", "", secret)

	s.Put(settings, `{"max_rows": 1, "aggregates": true, "plan": true, "tx_end": "commit-allow-override",
		"service_role_timeout_ms": 4321}`).Want(http.StatusOK)
	eventually(t, "the settings apply", func() bool {
		_, text := s.rows(s.Project, "GET", "/titles?select=id&order=id", "", secret)
		return text == `[{"id":1}]`
	})

	s.want(200, `[{"max":2}]`, "GET", "/titles?select=id.max()", "", secret)
	s.want(200, "", "GET", "/titles", "", secret, plan)
	s.want(204, "", "PATCH", "/titles?id=eq.1", `{"title": "Emma"}`, secret, "Prefer: tx=rollback")
	s.want(200, `[{"title":"Sanditon"}]`, "GET", "/titles?select=title&id=eq.1", "", secret)

	s.Post("/functions/public", `{"name": "timeout", "language": "sql", "return_type": "text",
		"definition": "select current_setting('statement_timeout')"}`).Want(201)
	s.want(200, `"4321ms"`, "POST", "/rpc/timeout", "{}", secret)
	s.Post("/functions/public", `{"name": "nap", "language": "sql", "return_type": "void",
		"definition": "select pg_sleep(600)"}`).Want(201)

	s.Put(settings, `{"tx_end": "rollback", "service_role_timeout_ms": 100}`).Want(http.StatusOK)
	eventually(t, "the timeout applies", func() bool {
		_, text := s.rows(s.Project, "POST", "/rpc/timeout", "{}", secret)
		return text == `"100ms"`
	})

	if text := s.want(500, "", "POST", "/rpc/nap", "{}", secret); !strings.Contains(text, `"57014"`) {
		t.Errorf("a statement beyond the timeout: got %s, want code 57014", text)
	}

	s.want(204, "", "DELETE", "/titles", "", secret)
	s.want(200, `[{"max":2}]`, "GET", "/titles?select=id.max()", "", secret)
}
