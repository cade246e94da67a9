package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	leaseTime      = 20 * time.Second // after which another server delivers for a project
	renewInterval  = 5 * time.Second
	renewTimeout   = 4 * time.Second
	maxClaims      = 500 // projects that a server takes at once
	releaseTimeout = 5 * time.Second

	// unwantedAge is the age at which a project without webhooks is forgotten. A request that
	// creates one takes less.
	unwantedAge = 10 * time.Minute
)

// want makes a server deliver for a project, once the caller has created or resumed a webhook.
func (s *Service) want(ctx context.Context, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.Platform.Querier(), `
		insert into platform.webhook_projects (project_uuid) values (@project)
		on conflict (project_uuid) do update set wanted_at = now()`, pgx.StrictNamedArgs{"project": project})
	return err
}

// Wake makes this server look for events of a project at once, if it delivers for it, and for
// projects that no server delivers for.
func (s *Service) Wake(project uuid.UUID) {
	s.mu.Lock()
	w := s.workers[project]
	s.mu.Unlock()

	if w != nil {
		w.wake()
		return
	}

	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// Written is [Service.Wake] after a change of rows: it has no effect on other servers' projects.
func (s *Service) Written(project uuid.UUID) {
	s.mu.Lock()
	w := s.workers[project]
	s.mu.Unlock()

	if w != nil {
		w.wake()
	}
}

// Run delivers for projects until ctx ends. It returns when all requests have ended.
func (s *Service) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer s.release(ctx)
	defer running.Wait()

	leasedAt := time.Now()
	for {
		began := time.Now()
		projects, err := s.renew(ctx)
		switch {
		case err == nil:
			leasedAt = began
			s.assign(ctx, &running, projects)
		case ctx.Err() == nil:
			s.Log.Warn("renew leases of webhooks", "error", err)
		}
		if time.Since(leasedAt) > leaseTime-renewInterval {
			s.assign(ctx, &running, nil) // others may deliver now
		}

		if tick.Await(ctx, renewInterval, s.wakeup) != nil {
			return nil
		}
	}
}

// renew renews this server's leases, takes those that are free, and returns all. A paused project's
// lease is left to expire.
func (s *Service) renew(ctx context.Context) ([]uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()

	return pg.Values[uuid.UUID](ctx, s.Platform.Querier(), `
		with free as (
			select w.project_uuid from platform.webhook_projects w join platform.projects p on p.uuid = w.project_uuid
			where p.status = 'active' and w.leased_until < now() and w.server is distinct from @server
			order by w.leased_until limit @most::bigint for update of w skip locked
		)
		update platform.webhook_projects w set server = @server, leased_until = now() + @time::interval
		from platform.projects p
		where p.uuid = w.project_uuid and p.status = 'active'
			and (w.server = @server or w.project_uuid in (select project_uuid from free))
		returning w.project_uuid`,
		pgx.StrictNamedArgs{"server": s.server, "most": maxClaims, "time": leaseTime})
}

// assign starts workers for the projects that have none, and ends the others.
func (s *Service) assign(ctx context.Context, running *sync.WaitGroup, projects []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	leased := make(map[uuid.UUID]bool, len(projects))
	for _, id := range projects {
		leased[id] = true
		if s.workers[id] != nil {
			continue
		}

		w := s.newWorker(ctx, id)
		s.workers[id] = w
		running.Go(w.run)
	}

	for id, w := range s.workers {
		if !leased[id] {
			w.stop()
			delete(s.workers, id)
		}
	}
}

// count returns the number of projects that this server delivers for.
func (s *Service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.workers)
}

// release gives all leases back, so that another server delivers at once.
func (s *Service) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()

	if _, err := pg.Exec(ctx, s.Platform.Querier(), `
		update platform.webhook_projects set server = null, leased_until = '-infinity' where server = @server`,
		pgx.StrictNamedArgs{"server": s.server}); err != nil {
		s.Log.Warn("release leases of webhooks", "error", err)
	}
}

// forget removes a project without webhooks from those that servers deliver for.
func (s *Service) forget(ctx context.Context, project uuid.UUID) error {
	_, err := pg.Exec(ctx, s.Platform.Querier(), `
		delete from platform.webhook_projects where project_uuid = @project and wanted_at < now() - @age::interval`,
		pgx.StrictNamedArgs{"project": project, "age": unwantedAge})
	return err
}
