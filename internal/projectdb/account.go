package projectdb

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
)

const (
	accountTTL     = 10 * time.Second // delay until an account change takes effect
	accountTimeout = time.Second
)

// accountCache is a project's account, as last read.
type accountCache struct {
	mu      sync.Mutex
	name    string // "": never read
	readAt  time.Time
	reading bool
}

// Key returns the project's key in pools: the account that it counts to, and the project as a part.
// Without an answer from the platform database the project stands for its account.
func (p *Project) Key(ctx context.Context) fair.Key {
	c, part := &p.account, p.UUID.String()

	c.mu.Lock()
	name, current := c.name, time.Since(c.readAt) < accountTTL || c.reading
	if name != "" && current {
		c.mu.Unlock()
		return fair.Key{Account: name, Part: part}
	}

	c.reading = true
	c.mu.Unlock()

	id, err := p.readAccount(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()

	c.reading = false
	switch {
	case err == nil:
		c.name, c.readAt = id.String(), time.Now()
	case c.name == "":
		return fair.Key{Account: part, Part: part}
	}

	return fair.Key{Account: c.name, Part: part}
}

// lastKey is [Project.Key] as last read: it asks no database.
func (p *Project) lastKey() fair.Key {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()

	part := p.UUID.String()
	return fair.Key{Account: cmp.Or(p.account.name, part), Part: part}
}

// KnownKey returns [Project.Key] without a query. It reports false for a project whose account has
// not been read yet, and for one that does not exist.
func (r *Registry) KnownKey(id uuid.UUID) (fair.Key, bool) {
	p := r.openProject(id)
	if p == nil {
		return fair.Key{}, false
	}

	p.account.mu.Lock()
	defer p.account.mu.Unlock()

	return fair.Key{Account: p.account.name, Part: id.String()}, p.account.name != ""
}

func (p *Project) readAccount(ctx context.Context) (uuid.UUID, error) {
	if p.registry == nil || p.registry.findAccount == nil {
		return p.UUID, nil
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTimeout)
	defer cancel()

	return p.registry.findAccount(ctx, p.UUID)
}
