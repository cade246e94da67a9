package statement

import (
	"fmt"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/socle-dev/socle/internal/fair"
)

// wide returns a row of n null columns, which have the smallest values in JSON.
func wide(n int) ([]columnType, [][]byte) { return make([]columnType, n), make([][]byte, n) }

// TestResponsesAreBounded checks that a response stays within its limit even with the smallest
// values, and that concurrent responses share one budget.
func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()

	const columns, rows = 1600, 10_000
	shared := newResponsePool()
	types, values := wide(columns)

	var wg sync.WaitGroup
	sessions := make([]*session, 12)
	results := make([]Result, len(sessions))
	for i := range sessions {
		project := fair.Key{Account: fmt.Sprint(i / 6), Part: fmt.Sprint(i / 3)}
		sessions[i] = &session{query: Query{MaxRows: rows}, types: types,
			reservation: reservation{pool: shared, project: project}}
		wg.Go(func() {
			for range rows {
				if err := sessions[i].row(&results[i], values); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()

	taken, bytes := 0, 0
	byProject, byAccount := map[string]int{}, map[string]int{}
	for i, s := range sessions {
		if !results[i].Truncated || len(results[i].Rows.text) > maxBytes ||
			len(results[i].Rows.text) != s.reservation.size {
			t.Errorf("response %d: got truncated %v, %d bytes, %d counted", i, results[i].Truncated,
				len(results[i].Rows.text), s.reservation.size)
		}
		if responseCopies*s.reservation.size > s.reservation.budget+freeBytes {
			t.Errorf("response %d: got %d bytes reserved for %d", i, s.reservation.budget, s.reservation.size)
		}

		taken += s.reservation.budget
		byProject[s.reservation.project.Part] += s.reservation.budget
		byAccount[s.reservation.project.Account] += s.reservation.budget
		bytes += cap(results[i].Rows.text)

		if _, err := json.Marshal(results[i]); err != nil {
			t.Errorf("response %d: %v", i, err)
		}
	}

	if inUse := shared.Stats().InUse; taken > responsesMemory || bytes > responsesMemory || int64(taken) != inUse {
		t.Errorf("all responses: got %d bytes reserved, %d in memory, %d in use of %d", taken, bytes, inUse,
			responsesMemory)
	}

	for project, n := range byProject {
		if n > projectShare {
			t.Errorf("responses of project %v: got %d bytes", project, n)
		}
	}
	for account, n := range byAccount {
		if n > responsesMemory/2 {
			t.Errorf("responses of account %v: got %d bytes", account, n)
		}
	}

	for _, s := range sessions {
		s.reservation.release()
	}

	if inUse := shared.Stats().InUse; inUse != 0 {
		t.Errorf("after the release: got %d bytes in use", inUse)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()

	for n, want := range map[int]string{0: `[]`, 1: `[["a",null]]`, 2: `[["a",null],["a",null]]`} {
		var r Rows
		for range n {
			if err := r.addRow(make([]columnType, 2), [][]byte{[]byte("a"), nil}); err != nil {
				t.Fatal(err)
			}
		}

		for range 2 { // MarshalJSONTo is repeatable
			if got, err := json.Marshal(r); err != nil || string(got) != want {
				t.Errorf("%d rows: got %s, %v, want %s", n, got, err, want)
			}
		}
	}
}
