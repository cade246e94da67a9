package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSlowEndpoints: an endpoint that hangs before its status is tried again later, one that hangs
// in its body has answered, and neither holds a request beyond the timeout or delays others.
func TestSlowEndpoints(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.service.client = w.service.client.Via(http.DefaultTransport.(*http.Transport).Clone(), 300*time.Millisecond)
	ended := make(chan struct{}, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	t.Cleanup(slow.Close)

	healthy := newEndpoint(t)
	hooks := map[string]Webhook{"pending": w.create("no status", slow.URL, notes("")),
		"delivered": w.create("slow body", slow.URL+"/body", notes(""))}
	w.create("healthy", healthy.URL, notes(""))
	w.deliver(w.service)

	w.exec(`insert into notes values (1, 'one')`)
	w.deliver(w.service)
	w.want(healthy, "row.inserted 1")
	<-ended
	<-ended

	for want, hook := range hooks {
		list, _, err := ListDeliveries(t.Context(), w.project, hook.UUID, Filter{Limit: 10})
		if err != nil || len(list) != 1 || list[0].Status != want || list[0].Attempts != 1 {
			t.Errorf("%s: got %+v, %v, want one that is %s", hook.Name, list, err, want)
		}
	}
}
