package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// markInterval is the time between two renewals of a project's mark.
	markInterval = time.Hour

	sweepInterval = 5 * time.Minute
	// recentMarks covers the work of a server that was killed since the last sweep.
	recentMarks = 2 * markInterval
	// allMarks covers the work that was left before this server began to sweep.
	allMarks = 30 * 24 * time.Hour
)

// sweeps remembers the last sweep.
type sweeps struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether a sweep is due, and the age of the marks that it concerns.
func (s *sweeps) due(now time.Time) (age time.Duration, isDue bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	age = recentMarks
	if s.last.IsZero() {
		age = allMarks
	}
	if now.Sub(s.last) < sweepInterval {
		return 0, false
	}

	s.last = now
	return age, true
}

// Sweep does the work that a killed server has left. It does nothing but every few minutes, since
// it looks into all projects that have left work lately, one at a time.
func (o *Outbox) Sweep(ctx context.Context) error {
	age, isDue := o.sweeps.due(time.Now())
	if !isDue {
		return nil
	}

	projects, err := o.Store.OutboxProjects(ctx, age)
	if err != nil {
		return err
	}

	for _, id := range projects {
		err := o.Projects.Visit(id, func(p *projectdb.Project) error {
			_, err := o.look(ctx, p)
			return err
		})
		if err != nil {
			o.Log.Warn("sweep a project's work", "project", id, "error", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}

	return nil
}

// Load reads which projects have left work, so that their next one is found as fast as before a
// restart.
func (o *Outbox) Load(ctx context.Context) error {
	projects, err := o.Store.OutboxProjects(ctx, allMarks)
	if err != nil {
		return fmt.Errorf("read the marks of projects with work: %w", err)
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	for _, id := range projects {
		o.used[id] = time.Time{}
	}

	return nil
}

// mark records that a project leaves work, for sweeps. A failure delays what a killed server
// leaves.
func (o *Outbox) mark(ctx context.Context, project uuid.UUID) {
	now := time.Now()

	o.mu.Lock()
	isDue := now.Sub(o.used[project]) > markInterval
	o.used[project] = now
	o.mu.Unlock()

	if !isDue {
		return
	}
	if err := o.Store.MarkOutbox(ctx, project); err != nil {
		o.Log.Warn("mark a project with work", "project", project, "error", err)
	}
}
