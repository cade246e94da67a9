package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

// keptEvents is an endpoint that counts the events of each row.
type keptEvents struct {
	*httptest.Server
	mu   sync.Mutex
	rows map[int]int // events by row
}

func keepEvents(t *testing.T) *keptEvents {
	t.Helper()

	k := &keptEvents{rows: map[int]int{}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			Data struct{ Record struct{ ID int } }
		}
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			t.Error(err)
		}

		k.mu.Lock()
		defer k.mu.Unlock()

		k.rows[event.Data.Record.ID]++
	}))
	t.Cleanup(k.Close)

	return k
}

// missing returns the rows of which no event has arrived.
func (k *keptEvents) missing(rows []int) []int {
	k.mu.Lock()
	defer k.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return k.rows[row] > 0 })
}

// TestKilledWebhooks kills one of two servers in turn, under writers. An event of every
// acknowledged row must reach the endpoint, also if nobody starts the killed server again.
func TestKilledWebhooks(t *testing.T) {
	t.Parallel()

	settings := []string{"SOCLE_DATABASE_URL=" + pgtest.URL(t), "SOCLE_STORAGE_URL=file://" + t.TempDir(),
		"SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE=", "SOCLE_OUTBOUND_NETWORKS=127.0.0.0/8"}
	servers := []*process{launch(t, t.TempDir(), settings...), launch(t, t.TempDir(), settings...)}
	for _, p := range servers {
		p.ready()
	}

	c, endpoint := servers[0].newClient(), keepEvents(t)
	c.want(t, 200, "POST", "/sql", `{"query": "create table public.notes (id int primary key)", "read_only": false}`)
	c.want(t, 201, "POST", "/projects/"+c.project+"/webhooks",
		`{"name": "notes", "endpoint": "`+endpoint.URL+`", "tables": [{"table": "notes"}]}`)

	var next atomic.Int64
	var acknowledged []int
	for round := range crashesOr(t, 2) {
		victim := round % 2
		var mu sync.Mutex
		var stop atomic.Bool
		var writers sync.WaitGroup
		for _, p := range servers {
			at := c.at(p)
			writers.Go(func() {
				for !stop.Load() {
					n := int(next.Add(1))
					if at.send(t, "POST", "/sql",
						fmt.Sprintf(`{"query": "insert into public.notes values (%d)", "read_only": false}`, n)).status != 200 {
						return
					}

					mu.Lock()
					acknowledged = append(acknowledged, n)
					mu.Unlock()
				}
			})
		}

		eventually(t, "events arrive", func() bool {
			endpoint.mu.Lock()
			defer endpoint.mu.Unlock()

			return len(endpoint.rows) > 20*(round+1)
		})
		servers[victim].signal(syscall.SIGKILL)
		stop.Store(true)
		writers.Wait()
		servers[victim].wait()

		eventually(t, "all events arrive", func() bool { return len(endpoint.missing(acknowledged)) == 0 })
		servers[victim] = launch(t, t.TempDir(), settings...)
		servers[victim].ready()
	}
}
