package statement

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	answersRoom    = 96 << 20 // bytes of memory for the answers of a process
	shareOfOne     = 32 << 20 // of them, those of one project
	uncountedBytes = 64 << 10 // that every answer may have beside
	answerCopies   = 2        // of its bytes: the rows, and the response that is made of them
)

// Rows are rows of values as they go into the answer: JSON, an array of arrays.
type Rows struct{ text []byte }

// MarshalJSONTo writes the rows.
func (r Rows) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(r.text) == 0 {
		return e.WriteValue(jsontext.Value("[]"))
	}
	return e.WriteValue(append(r.text, ']'))
}

// add adds a row. types are those of its columns.
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

// answers bounds the memory of the answers of this process that are made or on their way.
var answers = answerRoom{free: answersRoom}

// answerRoom shares memory out to answers. It is safe for concurrent use.
type answerRoom struct {
	mu    sync.Mutex
	free  int // bytes
	taken map[uuid.UUID]int
}

// take takes bytes for a project's answer. It reports whether there were so many.
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

// give gives bytes back.
func (a *answerRoom) give(project uuid.UUID, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.free += n

	if a.taken[project] -= n; a.taken[project] <= 0 {
		delete(a.taken, project)
	}
}

// budget is what one answer has of the room for all.
type budget struct {
	room    *answerRoom
	project uuid.UUID
	used    int // bytes of the answer

	mu       sync.Mutex
	taken    int // of the room
	released bool
}

// use takes room for bytes more of the answer. It reports whether there was any, and the answer may be so long.
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

// release gives all back, for good: the answer gets no more.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.taken > 0 {
		b.room.give(b.project, b.taken)
	}

	b.taken, b.released = 0, true
}
