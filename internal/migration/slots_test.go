package migration

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// TestSlots: a project has two requests in service, an organization four, all together eight.
func TestSlots(t *testing.T) {
	t.Parallel()

	organization := func(i int) uuid.UUID { return uuid.UUID{1, byte(i)} }
	project := func(i int) uuid.UUID { return uuid.UUID{2, byte(i)} }

	var s slots
	var releases []func()
	for i := range maxRequests {
		release, err := s.take(organization(i/maxOrganizationRequests), project(i/maxProjectRequests))
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}

		releases = append(releases, release)
	}

	if _, err := s.take(organization(99), project(99)); !fault.Is(err, fault.TooMany) {
		t.Errorf("one more: got %v, want TooMany", err)
	}

	releases[0]()
	releases[0]()

	if _, err := s.take(organization(1), project(99)); !fault.Is(err, fault.TooMany) {
		t.Errorf("a fifth of an organization: got %v, want TooMany", err)
	}
	if _, err := s.take(organization(0), project(1)); !fault.Is(err, fault.TooMany) {
		t.Errorf("a third of a project: got %v, want TooMany", err)
	}
	if _, err := s.take(organization(0), project(0)); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

// TestTurns: one comparison of an organization runs at a time, and those of others beside it.
func TestTurns(t *testing.T) {
	t.Parallel()

	var all turns
	release, err := all.await(t.Context(), uuid.UUID{1})
	if err != nil {
		t.Fatal(err)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.await(gone, uuid.UUID{1}); err == nil {
		t.Error("a second comparison of the organization runs")
	}

	other, err := all.await(t.Context(), uuid.UUID{2})
	if err != nil {
		t.Fatal(err)
	}

	release()
	other()

	if len(all.of) > 0 {
		t.Errorf("got %d organizations without a comparison", len(all.of))
	}
}
