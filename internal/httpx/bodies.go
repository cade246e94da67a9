package httpx

import (
	"context"
	"time"

	"github.com/socle-dev/socle/internal/fair"
)

// NewBodyPool returns a memory pool for the buffered bodies of all requests. A project may hold a
// quarter, an account half.
func NewBodyPool(size int64) *fair.Pool {
	return fair.New(fair.Config{Name: "request_bodies", Capacity: size, PerAccount: size / 2, PerPart: size / 4,
		Reserve: size / 4, Waiting: 1024})
}

// Stranger returns the pool key for the request's client, see [fair.Stranger].
func Stranger(ctx context.Context) fair.Key { return fair.Stranger(From(ctx).Client) }

// Share returns a request's key in the platform's pools: its account's key if that is already set,
// otherwise its network's. The server's own work has a separate key.
func Share(ctx context.Context) fair.Key {
	switch r := From(ctx); {
	case r.Share != fair.Key{}:
		return r.Share
	case r.Client.IsValid():
		return Stranger(ctx)
	}

	return fair.Key{Account: "server"}
}

// WithShare returns a context whose work counts to a key and begins now: caches with values for a
// request judge their age by it. It serves work outside HTTP requests, such as a client of another
// protocol.
func WithShare(ctx context.Context, key fair.Key) context.Context {
	return &requestContext{ctx, &Request{Share: key, Start: time.Now()}}
}

// In narrows a project's key to the network of the request's client, so that a project's strangers
// share its part among themselves.
func In(ctx context.Context, project fair.Key) fair.Key {
	stranger := Stranger(ctx)
	return project.In(stranger.Account).In(stranger.Part)
}
