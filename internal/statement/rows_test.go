package statement

import (
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// wide returns a row of n null columns, which have the smallest values in JSON.
func wide(n int) ([]columnType, [][]byte) { return make([]columnType, n), make([][]byte, n) }

// TestAnswersAreBounded checks that a response stays within its limit even with the smallest
// values, and that concurrent responses share one budget.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()

	const columns, rows = 1600, 10_000
	room := responseBudget{available: responsesMemory}
	types, values := wide(columns)

	var wg sync.WaitGroup
	sessions := make([]*session, 12)
	results := make([]Result, len(sessions))
	for i := range sessions {
		project := uuid.UUID{byte(i / 3)}
		sessions[i] = &session{query: Query{MaxRows: rows}, types: types, reservation: reservation{budget: &room, project: project}}
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
	of := map[uuid.UUID]int{}
	for i, s := range sessions {
		if !results[i].Truncated || len(results[i].Rows.text) > maxBytes || len(results[i].Rows.text) != s.reservation.used {
			t.Errorf("answer %d: truncated %v, %d bytes, %d counted", i, results[i].Truncated,
				len(results[i].Rows.text), s.reservation.used)
		}
		if responseCopies*s.reservation.used > s.reservation.reserved+freeBytes {
			t.Errorf("answer %d: %d bytes are taken for %d", i, s.reservation.reserved, s.reservation.used)
		}

		taken += s.reservation.reserved
		of[s.reservation.project] += s.reservation.reserved
		bytes += cap(results[i].Rows.text)

		if _, err := json.Marshal(results[i]); err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
	}

	if taken > responsesMemory || bytes > responsesMemory || taken+room.available != responsesMemory {
		t.Errorf("all answers take %d bytes, %d in memory, %d are free of %d", taken, bytes, room.available, responsesMemory)
	}

	for project, n := range of {
		if n > projectShare {
			t.Errorf("the answers of project %v take %d bytes", project, n)
		}
	}

	for _, s := range sessions {
		s.reservation.release()
	}

	if room.available != responsesMemory || len(room.reserved) > 0 {
		t.Errorf("%d bytes are free of %d when all are gone, %d projects have some", room.available, responsesMemory,
			len(room.reserved))
	}
}

func TestRows(t *testing.T) {
	t.Parallel()

	for n, want := range map[int]string{0: `[]`, 1: `[["a",null]]`, 2: `[["a",null],["a",null]]`} {
		var r Rows
		for range n {
			if err := r.add(make([]columnType, 2), [][]byte{[]byte("a"), nil}); err != nil {
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
