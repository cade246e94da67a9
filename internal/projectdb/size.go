package projectdb

import (
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// A project whose database exceeds its quota is full: it accepts reads, deletions and commands that
// free space, and no other changes. Each server measures the databases that it uses and keeps the
// full ones in memory, so that requests need no query. A database may exceed its quota by the
// writes between two measurements.

// leeway is the number of bytes that a full database may grow by, through user code that runs when
// rows are deleted and through rolled-back transactions. Beyond it such statements are rejected.
const leeway = 1 << 30

// OverQuota reports whether the database exceeds its quota.
func (p *Project) OverQuota() bool { return p.full.Load() }

// FarOverQuota reports whether the database has grown by more than the leeway since it became full.
func (p *Project) FarOverQuota() bool { return p.overgrown.Load() }

// ErrOverQuota rejects changes that would enlarge a full database.
var ErrOverQuota = fault.New(fault.TooLarge, "the project's database has reached its quota").
	WithCode("quota_exceeded")

// RecordSize records the database's size and quota.
func (p *Project) RecordSize(bytes, quota int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.bytes, p.quota = bytes, quota
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

// Size returns the database's size and quota in bytes when this server last measured them, 0
// before.
func (p *Project) Size() (bytes, quota int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.bytes, p.quota
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

// RecordWrites records the number of rows ever written to the database. It reports whether the
// database must be measured: if the number has changed, if the database is over its quota or if a
// connection is in use. 0 always counts as a change.
func (p *Project) RecordWrites(writes int64) bool {
	return p.writes.Swap(writes) != writes || writes == 0 || p.OverQuota() || p.inUse()
}
