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

// Share returns the key of a request in the pools of the platform: the account that it counts to,
// as far as that is known already, or else its network. Work of the server itself has a key of its
// own.
func Share(ctx context.Context) fair.Key {
	switch r := From(ctx); {
	case r.Share != fair.Key{}:
		return r.Share
	case r.Client.IsValid():
		return Stranger(ctx)
	}

	return fair.Key{Account: "server"}
}

// WithShare returns a context outside of a request, such as that of a client of another protocol,
// whose work counts to a key.
func WithShare(ctx context.Context, key fair.Key) context.Context {
	return &requestContext{ctx, &Request{Share: key}}
}

// In narrows a project's key to the network of the request's client, so that the strangers in a
// project share its part among themselves.
func In(ctx context.Context, project fair.Key) fair.Key {
	stranger := Stranger(ctx)
	return project.In(stranger.Account).In(stranger.Part)
}
