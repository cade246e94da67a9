package realtime

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

// TestRoomsOfProject lists the largest rooms of one project, with their presences.
func TestRoomsOfProject(t *testing.T) {
	t.Parallel()

	h := NewHub()
	project := uuid.New()
	if rooms, total := h.Rooms(project, 10); len(rooms) != 0 || total != 0 {
		t.Errorf("got %v, %d of a project without rooms", rooms, total)
	}

	join(t, h, Address{Project: project, Topic: "b"})
	first, _ := join(t, h, Address{Project: project, Topic: "a", Private: true})
	join(t, h, Address{Project: project, Topic: "a", Private: true})
	join(t, h, Address{Project: project, Topic: "a"})
	join(t, h, Address{Project: uuid.New(), Topic: "other"})
	if err := first.Track("ann", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}

	rooms, total := h.Rooms(project, 2)
	if got, want := fmt.Sprint(rooms, total), "[{a true 2 1} {a false 1 0}] 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
