package function

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxCodeCaches = 32 << 20 // bytes, all projects together

	// minCachedCode is the size in bytes from which a code cache makes a difference.
	minCachedCode = 64 << 10
)

// codeCaches has V8's code caches of versions, for the next processes that load them. They stay in
// memory, so no backup or row of a project can bring a forged one.
type codeCaches struct {
	all *cache.Cache[versionKey, []byte]

	mu        sync.Mutex
	compiling bool // one at a time, since it is never urgent
}

// versionKey identifies the code of a version. No project has another's caches.
type versionKey struct {
	project uuid.UUID
	version string
}

func newCodeCaches() *codeCaches {
	return &codeCaches{all: cache.New[versionKey, []byte](
		cache.Limits{Weight: maxCodeCaches, EntryWeight: runtime.MaxCodeCache})}
}

// get returns the code cache of a version. It reports false unless it was made; an empty one says
// that there is none.
func (c *codeCaches) get(p *projectdb.Project, version string) ([]byte, bool) {
	return c.all.Get(versionKey{p.UUID, version})
}

// begin reports whether the caller may compile. It must call end.
func (c *codeCaches) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.compiling {
		return false
	}
	c.compiling = true

	return true
}

func (c *codeCaches) end() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.compiling = false
}

// startCompile makes the code cache of a version in the background, if it matters and no other is
// being made.
func (s *Service) startCompile(ctx context.Context, p *projectdb.Project, version string, code []byte) {
	if len(code) < minCachedCode || !s.codeCaches.begin() {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		s.codeCaches.end()
		return
	}

	ctx = context.WithoutCancel(ctx)
	s.open.Go(func() {
		defer s.codeCaches.end()
		s.compile(ctx, p, version, code)
	})
}

// compile makes the code cache of a version in a process of its own. Without a free place there is
// none until the version starts again.
func (s *Service) compile(ctx context.Context, p *projectdb.Project, version string, code []byte) {
	lease := s.places.TryAcquire(p.Key(ctx), 1)
	if lease == nil {
		return
	}
	defer lease.Release()

	ctx, cancel := context.WithTimeout(s.stopping, bootTimeout)
	defer cancel()

	b, err := s.startBlank(ctx, defaultLimits.MemoryMB)
	if err != nil {
		return
	}
	defer b.process.Close()

	made, err := b.process.Compile(ctx, code)
	if err == nil || s.stopping.Err() == nil {
		const overhead = 256
		s.codeCaches.all.PutWeighted(versionKey{p.UUID, version}, made, int64(len(made))+overhead)
	}
}
