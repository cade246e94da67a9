package httpx

import (
	"context"

	"github.com/socle-dev/socle/internal/fair"
)

// NewBodyPool returns a pool of bytes for the buffered bodies of all requests together. A project
// may hold a quarter, an account half.
func NewBodyPool(size int64) *fair.Pool {
	return fair.New(fair.Config{Name: "request_bodies", Capacity: size, PerAccount: size / 2, PerPart: size / 4,
		Reserve: size / 4, Waiting: 1024})
}

// Stranger returns the key of the request's client in pools, see [fair.Stranger].
func Stranger(ctx context.Context) fair.Key { return fair.Stranger(From(ctx).Client) }

// In narrows a project's key to the network of the request's client, so that the strangers in a
// project share its part among themselves.
func In(ctx context.Context, project fair.Key) fair.Key {
	stranger := Stranger(ctx)
	return project.In(stranger.Account).In(stranger.Part)
}
