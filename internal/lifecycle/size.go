package projectdb

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
)

// A project whose database exceeds its quota is full: it accepts reads, deletions and commands that
// free space, and no other changes. Each server measures the databases that it uses and keeps in
// memory which are full, so that requests need no query. A database may exceed its quota by the
// writes between two measurements.

const (
	measureInterval = 12 * time.Second
	measureTimeout  = 10 * time.Second // for measuring all databases once

	// leeway is the number of bytes that a full database may grow by, through user code that runs
	// when rows are deleted and through rolled-back transactions. Beyond it such statements are
	// rejected.
	leeway = 1 << 30
)

// Size is the size of a project's database and its quota.
type Size struct {
	MaxDatabaseBytes int64 `json:"maxDatabaseBytes"`
	DatabaseBytes    int64 `json:"databaseBytes" doc:"Includes indexes, large objects, and temporary and unlogged tables."`
}

// OverQuota reports whether the database exceeds its quota.
func (p *Project) OverQuota() bool { return p.full.Load() }

// FarOverQuota reports whether the database has grown by more than the leeway since it became full.
func (p *Project) FarOverQuota() bool { return p.overgrown.Load() }

// ErrOverQuota rejects changes that would enlarge a full database.
var ErrOverQuota = fault.New(fault.TooLarge, "the project's database has reached its quota").
	WithCode("quota_exceeded")

// recordSize records the size and the quota of the database.
func (p *Project) recordSize(bytes, quota int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	full := bytes > quota
	if !full || !p.full.Load() {
		p.minFullBytes = bytes
	}

	p.minFullBytes = min(p.minFullBytes, bytes)
	p.full.Store(full)
	p.overgrown.Store(bytes > p.minFullBytes+leeway)

	if p.overgrown.Load() {
		p.endSessionsLocked(ErrOverQuota)
	}
}

// usedSince reports whether a pool was requested after since or a connection is in use.
func (p *Project) usedSince(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.lastUsed.After(since) || p.inUseLocked()
}

// inUse reports whether a connection is in use. PostgreSQL counts the rows that a transaction
// writes only when it ends.
func (p *Project) inUse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.inUseLocked()
}

func (p *Project) inUseLocked() bool {
	if len(p.sessions) > 0 {
		return true
	}

	for _, pool := range p.pools {
		if pool.Stat().AcquiredConns() > 0 {
			return true
		}
	}

	return false
}

// WatchSizes measures databases periodically until ctx ends.
func (l Lifecycle) WatchSizes(ctx context.Context) error {
	tick := time.NewTicker(measureInterval)
	defer tick.Stop()

	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		now := time.Now()

		if err := l.MeasureActive(ctx, last); err != nil {
			l.Registry.log.Warn("measure database sizes", "error", err)
			continue
		}

		last = now
	}
}

// MeasureActive measures the databases of the projects that this server used after since, if rows
// were written to them or a connection is in use. It also measures full ones, in which other
// servers may have freed space. It connects to none of them.
func (l Lifecycle) MeasureActive(ctx context.Context, since time.Time) error {
	var used []*Project
	var names []string
	for _, p := range l.Registry.openProjects() {
		if p.OverQuota() || p.usedSince(since) {
			used, names = append(used, p), append(names, l.Registry.Database(p.UUID))
		}
	}

	if len(used) == 0 {
		return nil
	}

	writes, err := l.Store.DatabaseWrites(ctx, names)
	if err != nil {
		return err
	}

	var ids []uuid.UUID
	for i, p := range used {
		if p.recordWrites(writes[names[i]]) || p.OverQuota() || p.inUse() {
			ids = append(ids, p.UUID)
		}
	}

	_, err = l.measure(ctx, ids...)
	return err
}

// recordWrites records the number of rows ever written to the database and reports whether it
// changed. 0 always counts as a change.
func (p *Project) recordWrites(writes int64) bool {
	return p.writes.Swap(writes) != writes || writes == 0
}

// GetSize measures the database of a project. It fails with NotFound if there is no such project.
func (l Lifecycle) GetSize(ctx context.Context, project uuid.UUID) (Size, error) {
	sizes, err := l.measure(ctx, project)
	if err != nil {
		return Size{}, err
	}

	if len(sizes) == 0 {
		return Size{}, fault.Missing()
	}

	return Size{sizes[0].Most, sizes[0].Bytes}, nil
}

// UpdateSize sets the quota of a project's database in bytes and measures it. nil leaves the quota.
func (l Lifecycle) UpdateSize(ctx context.Context, project uuid.UUID, quota *int64) (Size, error) {
	if quota != nil {
		if err := l.Store.SetDatabaseQuota(ctx, project, *quota); err != nil {
			return Size{}, err
		}
	}

	return l.GetSize(ctx, project)
}

func (l Lifecycle) measure(ctx context.Context, projects ...uuid.UUID) ([]platform.DatabaseSize, error) {
	if len(projects) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()

	names := make([]string, len(projects))
	for i, id := range projects {
		names[i] = l.Registry.Database(id)
	}

	sizes, err := l.Store.DatabaseSizes(ctx, projects, names)
	for _, s := range sizes {
		l.Registry.Open(s.Project).recordSize(s.Bytes, s.Most)
	}

	return sizes, err
}
