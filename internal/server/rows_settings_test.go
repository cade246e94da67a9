package server_test

import (
	"net/http"
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
