package projectdb

import (
	"context"
	"time"
)

const (
	// MaxVersionRows is [maxVersionRows].
	MaxVersionRows = maxVersionRows
	// SwapLock is [swapLock].
	SwapLock = swapLock
)

// ChainAudits is [Registry.chainAudits].
func (r *Registry) ChainAudits(ctx context.Context) { r.chainAudits(ctx) }

// CloseUnused is [Registry.closeUnused].
func (r *Registry) CloseUnused(since time.Time) { r.closeUnused(since) }

// OpenConns returns the number of connections.
func (p *Project) OpenConns() int32 { return p.open.Load() }

// Unchained reports whether the project's audit log is to be chained.
func (p *Project) Unchained() bool { return p.unchained.Load() }
