package tenant

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
)

// A project whose database has more bytes than it may is full: it takes deletions, and what gives room, and else no changes. Each server
// measures the databases that it uses itself and keeps in mind which are full, so that a request asks nobody. A database goes beyond its quota by what is
// written between two rounds.

const (
	measureEvery = 12 * time.Second
	measureTime  = 10 * time.Second // for a round

	// leeway is by how many bytes a full database may grow by code of the project's that runs when rows are deleted, and by what a transaction that was undone
	// leaves. Beyond it nothing is run any more that could do so.
	leeway = 1 << 30
)

// Size is what a project's database comes to, and what it may.
type Size struct {
	MaxDatabaseBytes int64 `json:"maxDatabaseBytes"`
	DatabaseBytes    int64 `json:"databaseBytes" doc:"With indexes, large objects, and tables that are temporary or unlogged."`
}

// Full reports whether the database has more bytes than it may.
func (p *Project) Full() bool { return p.full.Load() }

// Overgrown reports whether the database has become much larger since it is full.
func (p *Project) Overgrown() bool { return p.overgrown.Load() }

// ErrFull refuses what would make a full database larger.
var ErrFull = fault.New(fault.TooLarge, "the project's database has all the bytes that it may have").
	WithCode("quota_exceeded")

// measured takes note of what the database comes to, and may.
func (p *Project) measured(bytes, most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	full := bytes > most
	if !full || !p.full.Load() {
		p.fullFrom = bytes
	}

	p.fullFrom = min(p.fullFrom, bytes)
	p.full.Store(full)
	p.overgrown.Store(bytes > p.fullFrom+leeway)
}

// usedSince reports whether somebody has asked for a pool since a time, or uses a connection now.
func (p *Project) usedSince(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.used.After(since) || p.inUseLocked()
}

// inUse reports whether somebody uses a connection: what a transaction writes is counted when it ends.
func (p *Project) inUse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.inUseLocked()
}

func (p *Project) inUseLocked() bool {
	for _, pool := range p.pools {
		if pool.Stat().AcquiredConns() > 0 {
			return true
		}
	}

	return false
}

// WatchSizes measures again and again until ctx ends.
func (l Lifecycle) WatchSizes(ctx context.Context) error {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()

	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		now := time.Now()

		if err := l.MeasureUsed(ctx, last); err != nil {
			l.Registry.log.Warn("measure the databases of projects", "error", err)
			continue
		}

		last = now
	}
}

// MeasureUsed measures the databases of the projects that were used here since a time, if rows of theirs were written since they were
// measured or a connection is in use; and those that are full: others may have made room in them. It connects to none of them.
func (l Lifecycle) MeasureUsed(ctx context.Context, since time.Time) error {
	var used []*Project
	var names []string
	for _, p := range l.Registry.open() {
		if p.Full() || p.usedSince(since) {
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
		if p.wrote(writes[names[i]]) || p.Full() || p.inUse() {
			ids = append(ids, p.UUID)
		}
	}

	_, err = l.measure(ctx, ids...)
	return err
}

// wrote notes how many rows were written to the database in all, and reports whether that is another number than before.
func (p *Project) wrote(writes int64) bool {
	return p.writes.Swap(writes) != writes || writes == 0
}

// GetSize measures the database of a project. It fails with NotFound if there is none.
func (l Lifecycle) GetSize(ctx context.Context, project uuid.UUID) (Size, error) {
	sizes, err := l.measure(ctx, project)
	if err != nil {
		return Size{}, err
	}

	if len(sizes) == 0 {
		return Size{}, fault.New(fault.NotFound, "there is no such thing")
	}

	return Size{sizes[0].Most, sizes[0].Bytes}, nil
}

// UpdateSize says what the database of a project may come to, nil: what it may already, and measures it.
func (l Lifecycle) UpdateSize(ctx context.Context, project uuid.UUID, most *int64) (Size, error) {
	if most != nil {
		if err := l.Store.LimitDatabase(ctx, project, *most); err != nil {
			return Size{}, err
		}
	}

	return l.GetSize(ctx, project)
}

func (l Lifecycle) measure(ctx context.Context, projects ...uuid.UUID) ([]platform.DatabaseSize, error) {
	if len(projects) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()

	names := make([]string, len(projects))
	for i, id := range projects {
		names[i] = l.Registry.Database(id)
	}

	sizes, err := l.Store.DatabaseSizes(ctx, projects, names)
	for _, s := range sizes {
		l.Registry.Open(s.Project).measured(s.Bytes, s.Most)
	}

	return sizes, err
}
