package lifecycle

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	measureInterval = 12 * time.Second
	measureTimeout  = 10 * time.Second // for measuring all databases once
)

// Size is a project database's size and quota.
type Size struct {
	MaxDatabaseBytes int64 `json:"maxDatabaseBytes"`
	DatabaseBytes    int64 `json:"databaseBytes" doc:"Includes indexes, large objects, and temporary and unlogged tables."`
}

// WatchSizes measures databases periodically until ctx ends.
func (s *Service) WatchSizes(ctx context.Context) error {
	last := time.Now()
	for now := range tick.Every(ctx, measureInterval) {
		if err := s.MeasureActive(ctx, last); err != nil {
			s.log.Warn("measure database sizes", "error", err)
			continue
		}

		last = now
	}

	return nil
}

// MeasureActive measures the databases of projects that this server used after since, if rows were
// written to them or a connection is in use. It also measures full ones, in which other servers may
// have freed space. It connects to none of them.
func (s *Service) MeasureActive(ctx context.Context, since time.Time) error {
	projects := s.Registry.UsedSince(since)
	if len(projects) == 0 {
		return nil
	}

	names := make([]string, len(projects))
	for i, p := range projects {
		names[i] = s.Registry.Database(p.UUID)
	}

	writes, err := s.Store.DatabaseWrites(ctx, names)
	if err != nil {
		return err
	}

	var ids []uuid.UUID
	for i, p := range projects {
		if p.RecordWrites(writes[names[i]]) {
			ids = append(ids, p.UUID)
		}
	}

	_, err = s.measure(ctx, ids...)
	return err
}

// GetSize measures a project's database. It fails with NotFound if there is no such project.
func (s *Service) GetSize(ctx context.Context, project uuid.UUID) (Size, error) {
	sizes, err := s.measure(ctx, project)
	if err != nil {
		return Size{}, err
	}

	if len(sizes) == 0 {
		return Size{}, fault.Missing()
	}

	return Size{sizes[0].Most, sizes[0].Bytes}, nil
}

// UpdateSize sets a project database's quota in bytes and measures it. nil leaves the quota.
func (s *Service) UpdateSize(ctx context.Context, project uuid.UUID, quota *int64) (Size, error) {
	if quota != nil {
		if err := s.Store.SetDatabaseQuota(ctx, project, *quota); err != nil {
			return Size{}, err
		}
	}

	return s.GetSize(ctx, project)
}

func (s *Service) measure(ctx context.Context, projects ...uuid.UUID) ([]platform.DatabaseSize, error) {
	if len(projects) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()

	names := make([]string, len(projects))
	for i, id := range projects {
		names[i] = s.Registry.Database(id)
	}

	sizes, err := s.Store.DatabaseSizes(ctx, projects, names)
	for _, size := range sizes {
		s.Registry.Open(size.Project).RecordSize(size.Bytes, size.Most)
	}

	return sizes, err
}
