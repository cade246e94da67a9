package migration

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// TestSlots: a project has two requests in service, all projects eight.
func TestSlots(t *testing.T) {
	t.Parallel()

	var s slots
	var releases []func()
	for i := range maxRequests {
		release, err := s.take(uuid.UUID{byte(i / maxProjectRequests)})
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}

		releases = append(releases, release)
	}

	if _, err := s.take(uuid.UUID{99}); !fault.Is(err, fault.TooMany) {
		t.Errorf("one more: got %v, want TooMany", err)
	}

	releases[0]()
	releases[0]()

	if _, err := s.take(uuid.UUID{1}); !fault.Is(err, fault.TooMany) {
		t.Errorf("a third of a project: got %v, want TooMany", err)
	}
	if _, err := s.take(uuid.UUID{0}); err != nil {
		t.Errorf("after the release: %v", err)
	}
}
