package server

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/rest"
)

// TestTrimRows checks that the cache of projects is bounded and evicts the least recently used.
func TestTrimRows(t *testing.T) {
	t.Parallel()

	s := newRows(nil, nil, nil, nil, "", slog.New(slog.DiscardHandler))
	const most = maxProjectsSize / projectOverhead
	ids := make([]uuid.UUID, most+10)
	for i := range ids {
		ids[i] = uuid.New()
		p := &projectRows{id: ids[i], settings: "x", Server: rest.New(rest.Config{})}
		s.projects[p.id], p.element = p, s.recent.PushFront(p)
	}

	if p, err := s.handler(ids[0], "x"); err != nil || p.id != ids[0] {
		t.Fatal(p, err)
	}

	s.trim()

	if len(s.projects) != most || s.recent.Len() != most {
		t.Errorf("got %d projects, %d in the list, want %d", len(s.projects), s.recent.Len(), most)
	}
	if s.projects[ids[0]] == nil || s.projects[ids[1]] != nil {
		t.Error("the used project was evicted, or the least recently used one was not")
	}
}
