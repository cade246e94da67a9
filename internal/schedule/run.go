package schedule

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	// pollInterval is the time between looks at the due times of projects: a schedule's precision.
	pollInterval = time.Second
	// maxTurn is the time after which a project with further runs lets others go first.
	maxTurn = 10 * time.Second
)

// Run runs what is due until ctx ends. It returns when the runs that it has begun have ended.
func (s *Service) Run(ctx context.Context) error {
	var turns sync.WaitGroup
	defer turns.Wait()

	for {
		if err := s.beginTurns(ctx, &turns); err != nil && ctx.Err() == nil {
			s.log.Warn("find due schedules", "error", err)
		}

		if tick.Await(ctx, pollInterval, s.wake) != nil {
			return nil
		}
	}
}

// beginTurns begins a turn for each due project whose account has a place on this server.
func (s *Service) beginTurns(ctx context.Context, turns *sync.WaitGroup) error {
	due, err := s.times.take(ctx)
	if err != nil {
		return err
	}

	for _, d := range due {
		key := fair.Key{Account: d.Account.String(), Part: d.Project.String()}
		work, place := s.turn, s.places.TryAcquire(key, 1)
		if place == nil {
			// Runs in progress have all places: the others are still skipped or missed in time.
			work, place = s.lookOnly, s.looks.TryAcquire(key, 1)
		}
		if place == nil {
			if err := s.times.postpone(ctx, d.Project, d.Version); err != nil {
				return err
			}

			continue
		}

		turns.Go(func() {
			defer place.Release()

			err := func() (err error) {
				defer fault.Recover(&err)
				return work(ctx, d)
			}()
			if err := ignoreLocked(err); err != nil && ctx.Err() == nil {
				s.log.Warn("run schedules of a project", "project", d.Project, "error", err)
			}
		})
	}

	return nil
}

// ignoreLocked ignores a lock_not_available error: the owner has locked the jobs.
func ignoreLocked(err error) error {
	if pg.State(err) == "55P03" {
		return nil
	}
	return err
}

// lookOnly plans a project's jobs and begins none.
func (s *Service) lookOnly(ctx context.Context, d taken) error {
	o, err := look(ctx, s.projects.Open(d.Project), false)
	if err != nil {
		return err
	}

	return s.settle(ctx, d.Project, d.Version, o.next)
}

// turn does a project's due runs, one after the other. If it fails, the project is taken again when
// its lease ends.
func (s *Service) turn(ctx context.Context, d taken) error {
	p, end := s.projects.Open(d.Project), time.Now().Add(maxTurn)
	for version := d.Version; ; {
		o, err := look(ctx, p, true)
		if err != nil {
			return err
		}

		// The run has been claimed: it happens even if nothing can be settled.
		err = s.settle(ctx, d.Project, version, o.next)
		if o.work == nil {
			return err
		}

		s.execute(ctx, p, *o.work)

		if err := context.Cause(ctx); err != nil {
			return err
		}
		if time.Now().After(end) {
			return s.announce(ctx, p, time.Now())
		}
		if version, err = s.times.retake(ctx, d.Project); err != nil {
			return err
		}
	}
}

// settle sets a project's due time after a look. If a schedule has changed or another server has
// looked meanwhile, the project is looked into once more.
func (s *Service) settle(ctx context.Context, project uuid.UUID, version int64, next *time.Time) error {
	settled, err := s.times.settle(ctx, project, version, next)
	if err != nil || settled {
		return err
	}

	return s.times.announce(ctx, project, time.Now())
}

// execute does a claimed run and records its end.
func (s *Service) execute(ctx context.Context, p *projectdb.Project, w work) {
	if w.URL != nil {
		message, err := s.callEndpoint(ctx, p, w)
		s.finish(ctx, p, w, message, err)

		return
	}

	s.runCommand(ctx, p, w)
}
