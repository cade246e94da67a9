package webhook

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestTricklingEndpoint: an endpoint that sends a byte and then nothing fails within the timeout, is
// tried again later, and delays no other webhook of the project.
func TestTricklingEndpoint(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.service.client = w.service.client.Via(http.DefaultTransport.(*http.Transport).Clone(), 300*time.Millisecond)
	hung := make(chan struct{}, 10)
	trickling := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		hung <- struct{}{}
	}))
	t.Cleanup(trickling.Close)

	healthy := newEndpoint(t)
	slow := w.create("trickling", trickling.URL, notes(""))
	w.create("healthy", healthy.URL, notes(""))
	w.deliver(w.service) // takes the first cursor

	w.exec(`insert into notes values (1, 'one'), (2, 'two')`)
	w.deliver(w.service)
	w.want(healthy, "row.inserted 1", "row.inserted 2")
	<-hung // the request has ended at the endpoint as well

	list, _, err := ListDeliveries(t.Context(), w.project, slow.UUID, Filter{Limit: 10})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v, %v, want two deliveries", list, err)
	}
	for _, d := range list {
		if d.Status != "pending" || d.Attempts == 0 || d.NextAt == nil || time.Until(*d.NextAt) < 0 {
			t.Errorf("got %+v, want it to wait for another attempt", d)
		}
	}
}
