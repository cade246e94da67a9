package server

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/authapi"
	"github.com/socle-dev/socle/internal/broadcast"
	"github.com/socle-dev/socle/internal/bus"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/functionapi"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/realtime"
	"github.com/socle-dev/socle/internal/realtimeapi"
	"github.com/socle-dev/socle/internal/restapi"
	"github.com/socle-dev/socle/internal/s3api"
	"github.com/socle-dev/socle/internal/storageapi"
	"github.com/socle-dev/socle/internal/token"
)

// newGateway returns the gateway with all interfaces. publicURL is the install's address, "" if it
// is unknown.
func (s *Server) newGateway(domains *Domains, publicURL string, variants *object.Variants) *gateway.Gateway {
	discard := domains.Cleaner.Discard

	return gateway.New(gateway.Config{
		Platform: s.database.Store.DB(), Projects: s.registry, PublicURL: publicURL,
		SigningKeys: domains.EndUsers.PublicKeys, Accounts: domains.Accounts,
		EndUserClaims: domains.EndUsers.ImpersonationClaims,
		Interfaces: []gateway.Interface{
			restapi.New(restapi.Config{Bodies: s.bodies, Responses: s.responses,
				PoolContended: s.poolContended, Written: s.written, Replicas: s.replicas, Log: s.log}),
			authapi.New(domains.EndUsers, s.bodies),
			storageapi.New(storageapi.Config{Blobs: s.blobs, Variants: variants, Discard: discard,
				SignKey: token.Derive(s.secret, "signed URLs of objects"), Bodies: s.bodies}),
			s3api.New(s3api.Config{Blobs: s.blobs, Discard: discard, Bodies: s.bodies}),
			s.realtime.Interface(),
			functionapi.New(functionapi.Config{Functions: s.functions, PublicURL: publicURL}),
		},
	})
}

// newOutbox returns the outbox with all kinds of work that SQL of projects leaves.
func (s *Server) newOutbox(domains *Domains) *outbox.Outbox {
	return outbox.New(outbox.Config{Projects: s.registry, Store: s.database.Store, Log: s.log,
		Kinds: []outbox.Kind{broadcast.Sender{Hub: s.hub}.Kind(), s.requestsBySQL.Kind(),
			domains.Schedules.Kind()}})
}

// written has the readers of a project look for what user code has written.
func (s *Server) written(project uuid.UUID) {
	s.events.Wake(project)
	s.outbox.Written(project)
	s.services.Webhooks.Written(project)
}

// newRealtime returns the server of channels, and the bus to those on other servers.
func (s *Server) newRealtime(c config.Config) *realtimeapi.Server {
	s.hub = realtime.NewHub()
	s.bus = bus.New(bus.Config{Secret: s.secret, Addr: c.ClusterAddr, NATSURL: string(c.NATSURL),
		Servers: s.servers, Handler: s.hub, Log: s.log})
	s.hub.Connect(s.bus)

	r := realtimeapi.New(realtimeapi.Config{Hub: s.hub, Bodies: s.bodies, Log: s.log,
		Changes:    func(p *gateway.Project) realtimeapi.Changes { return changes{s.events, p.Database} },
		Authorizer: func(p *gateway.Project) realtimeapi.Authorizer { return event.Channels{Project: p.Database} },
		Archive:    func(p *gateway.Project) realtimeapi.Archive { return broadcast.Archive{Project: p.Database} },
		Limits: func(ctx context.Context, p *gateway.Project) (event.RealtimeLimits, error) {
			return event.GetLimits(ctx, p.Database.Trusted())
		}})
	followLimits(s.notifications, r)

	return r
}

// followLimits has the limits of channels read again when another server has changed them.
func followLimits(l *pg.Listener, r *realtimeapi.Server) {
	l.Handle(event.LimitsChannel, func(payload string) {
		if project, err := uuid.Parse(payload); err == nil {
			r.ForgetLimits(project)
		}
	})
	l.OnConnect(func(context.Context, *pgx.Conn) error {
		r.ForgetAllLimits() // notifications were missed while disconnected
		return nil
	})
}

// changes are the changes of a project's rows.
type changes struct {
	logs    *event.Logs
	project *projectdb.Project
}

// Follow follows changes, see [event.Logs.Follow].
func (c changes) Follow(
	ctx context.Context, caller actor.Actor, bindings []event.Binding, cursor string,
) (realtimeapi.Follower, error) {
	f, err := c.logs.Follow(ctx, c.project, caller, bindings, cursor)
	if err != nil {
		return nil, err
	}

	return f, nil
}

// describeRows returns the OpenAPI document for a project's rows. It bypasses the settings cache:
// the project may just have been paused.
func (s *Server) describeRows(ctx context.Context, project uuid.UUID) ([]byte, error) {
	p, err := s.gateway.Refresh(ctx, project)
	if err != nil {
		return nil, err
	}

	return restapi.Describe(ctx, p, s.URL)
}
