package restapi

import (
	"context"

	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/replica"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
)

// newReplicas returns the standbys for reads of an active project, nil without any.
func (a *api) newReplicas(p *gateway.Project) *rest.Replicas {
	if a.Replicas == nil {
		return nil
	}

	return &rest.Replicas{
		Default: p.Settings.Rest.ReadReplica,
		Find: func(ctx context.Context, role, position string) (rest.Replica, bool) {
			return a.findReplica(ctx, p, role, position)
		},
		Position: func(ctx context.Context) string {
			position, err := a.Replicas.Position(ctx)
			if err != nil {
				a.Log.Warn("the position of a write is unknown", "error", err)
				return ""
			}

			return position.String()
		},
	}
}

// findReplica finds a standby for a read. The primary answers a read with a position that makes no
// sense.
func (a *api) findReplica(ctx context.Context, p *gateway.Project, role, position string) (rest.Replica, bool) {
	var after replica.Position
	if position != "" {
		var ok bool
		if after, ok = replica.Parse(position); !ok {
			return rest.Replica{}, false
		}
	}

	reader, ok := a.Replicas.Reader(ctx, p.UUID, after)
	if !ok {
		return rest.Replica{}, false
	}

	pool := reader.Request
	if role == "service_role" {
		pool = reader.Service
	}

	sql, args := reader.Check()
	return rest.Replica{Pool: pool(), Check: session.Statement{SQL: sql, Args: args}, Alive: reader.Alive}, true
}
