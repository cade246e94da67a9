package statement

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	answersRoom    = 96 << 20 // memory budget for responses in a process, in bytes
	shareOfOne     = 32 << 20 // share of the budget per project
	uncountedBytes = 64 << 10 // allowance per response outside of the budget
	answerCopies   = 2        // in memory: the rows, and the response built from them
)

// Rows are rows of values in their JSON representation, an array of arrays.
type Rows struct{ text []byte }

// MarshalJSONTo writes the rows.
func (r Rows) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(r.text) == 0 {
		return e.WriteValue(jsontext.Value("[]"))
	}
	return e.WriteValue(append(r.text, ']'))
}

// add adds a row. types are the types of its columns.
func (r *Rows) add(types []columnType, values [][]byte) error {
	start := byte('[')
	if len(r.text) > 0 {
		start = ','
	}

	r.text = append(r.text, start, '[')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}

		var err error
		if r.text, err = appendValue(r.text, types[i].oid, v); err != nil {
			return err
		}
	}

	r.text = append(r.text, ']')
	return nil
}

// answers bounds the memory of all responses of this process until they are written.
var answers = answerRoom{free: answersRoom}

// answerRoom is a memory budget shared by responses. It is safe for concurrent use.
type answerRoom struct {
	mu    sync.Mutex
	free  int // bytes
	taken map[uuid.UUID]int
}

// take reserves bytes for a project's response. It reports false if the budget is exhausted.
func (a *answerRoom) take(project uuid.UUID, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	if n > a.free || a.taken[project]+n > shareOfOne {
		return false
	}

	if a.taken == nil {
		a.taken = map[uuid.UUID]int{}
	}

	a.free -= n
	a.taken[project] += n

	return true
}

// give returns bytes to the budget.
func (a *answerRoom) give(project uuid.UUID, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.free += n

	if a.taken[project] -= n; a.taken[project] <= 0 {
		delete(a.taken, project)
	}
}

// budget is the reservation of one response in the shared budget.
type budget struct {
	room    *answerRoom
	project uuid.UUID
	used    int // bytes of the response

	mu       sync.Mutex
	taken    int // bytes of the shared budget
	released bool
}

// use reserves memory for n more bytes of the response. It reports false if the budget or the size
// limit is exhausted.
func (b *budget) use(n int) bool {
	if b.used+n > maxBytes {
		return false
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	if b.released {
		return false
	}

	if need := answerCopies*(b.used+n) - uncountedBytes; need > b.taken {
		step := max(need-b.taken, 1<<20)
		if !b.room.take(b.project, step) {
			return false
		}

		b.taken += step
	}

	b.used += n
	return true
}

// release returns the reservation for good: later calls of use fail.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.taken > 0 {
		b.room.give(b.project, b.taken)
	}

	b.taken, b.released = 0, true
}
