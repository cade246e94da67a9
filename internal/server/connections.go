package server

import (
	"context"

	"github.com/socle-dev/socle/internal/fleet"
)

// divide keeps this server within its share of PostgreSQL until ctx ends.
func (s *Server) divide(ctx context.Context) error {
	d := fleet.Divider{Servers: s.servers, Accepted: s.database.accepted, IsShared: s.database.private == nil,
		Apply: func(ctx context.Context, share fleet.Share) (open int) {
			s.services.Queue.Divide(share.Servers)
			s.resizeReplicas(share.Projects)
			return s.database.resize(ctx, share.Platform) + s.registry.Resize(share.Projects)
		}}

	return d.Run(ctx)
}
