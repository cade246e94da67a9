package event

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// RealtimeLimits bound the channels of a project on each server, and its log of changes.
type RealtimeLimits struct {
	Sockets             int   `json:"sockets" doc:"Open WebSockets and streams, on each server."`
	Channels            int   `json:"channels" doc:"Joined channels of all sockets, on each server."`
	ChannelsPerSocket   int   `json:"channelsPerSocket" doc:"Joined channels of a socket."`
	JoinsPerSecond      int   `json:"joinsPerSecond" doc:"Joins of a socket; five seconds of them at once."`
	MessagesPerSecond   int   `json:"messagesPerSecond" doc:"Messages that are read from a socket; five seconds of them at once."`
	DeliveriesPerSecond int   `json:"deliveriesPerSecond" doc:"Messages to members of channels, on each server; two seconds of them at once."`
	PayloadBytes        int   `json:"payloadBytes" doc:"Bytes of a broadcast's payload."`
	LogHours            int   `json:"logHours" doc:"Hours in which a cursor can continue in the log of changes, at least."`
	LogBytes            int64 `json:"logBytes" doc:"Bytes of the log of changes. Beyond them the oldest changes are removed, every six hours."`
}

// DefaultLimits are those of a project whose administrator has set none.
var DefaultLimits = RealtimeLimits{Sockets: 10_000, Channels: 100_000, ChannelsPerSocket: 100, JoinsPerSecond: 20,
	MessagesPerSecond: 100, DeliveriesPerSecond: 20_000, PayloadBytes: 256 << 10, LogHours: 24, LogBytes: 256 << 20}

// MaxSockets is the most sockets that a project's limits allow.
const MaxSockets = 20_000

// kept returns the retention of the log.
func (l RealtimeLimits) kept() time.Duration { return time.Duration(l.LogHours) * time.Hour }

// LimitChange has the limits to set. Nil ones stay unchanged.
type LimitChange struct {
	Sockets             *int   `json:"sockets,omitempty" minimum:"1" maximum:"20000" doc:"Open WebSockets and streams, on each server."`
	Channels            *int   `json:"channels,omitempty" minimum:"1" maximum:"100000" doc:"Joined channels of all sockets, on each server."`
	ChannelsPerSocket   *int   `json:"channels_per_socket,omitempty" minimum:"1" maximum:"1000" doc:"Joined channels of a socket."`
	JoinsPerSecond      *int   `json:"joins_per_second,omitempty" minimum:"1" maximum:"1000" doc:"Joins of a socket."`
	MessagesPerSecond   *int   `json:"messages_per_second,omitempty" minimum:"1" maximum:"10000" doc:"Messages that are read from a socket."`
	DeliveriesPerSecond *int   `json:"deliveries_per_second,omitempty" minimum:"1" maximum:"200000" doc:"Messages to members of channels, on each server."`
	PayloadBytes        *int   `json:"payload_bytes,omitempty" minimum:"1" maximum:"524288" doc:"Bytes of a broadcast's payload."`
	LogHours            *int   `json:"log_hours,omitempty" minimum:"1" maximum:"240" doc:"Hours in which a cursor can continue in the log of changes, at least."`
	LogBytes            *int64 `json:"log_bytes,omitempty" minimum:"16777216" maximum:"17179869184" doc:"Bytes of the log of changes."`
}

// GetLimits returns the limits of a project.
func GetLimits(ctx context.Context, q pg.Querier) (RealtimeLimits, error) {
	d := DefaultLimits
	return pg.One[RealtimeLimits](ctx, q, `
		select coalesce(l.sockets, @sockets) as sockets, coalesce(l.channels, @channels) as channels,
			coalesce(l.channels_per_socket, @channels_per_socket) as channels_per_socket,
			coalesce(l.joins_per_second, @joins) as joins_per_second,
			coalesce(l.messages_per_second, @messages) as messages_per_second,
			coalesce(l.deliveries_per_second, @deliveries) as deliveries_per_second,
			coalesce(l.payload_bytes, @payload) as payload_bytes, coalesce(l.log_hours, @log_hours) as log_hours,
			coalesce(l.log_bytes, @log_bytes) as log_bytes
		from (select) one left join socle.realtime_limits l on true`,
		pgx.StrictNamedArgs{"sockets": d.Sockets, "channels": d.Channels, "channels_per_socket": d.ChannelsPerSocket,
			"joins": d.JoinsPerSecond, "messages": d.MessagesPerSecond, "deliveries": d.DeliveriesPerSecond,
			"payload": d.PayloadBytes, "log_hours": d.LogHours, "log_bytes": d.LogBytes})
}

// LimitsChannel is the channel of the platform database on which servers learn that a project, the
// payload, has other limits.
const LimitsChannel = "socle_realtime_limits"

// UpdateLimits changes the limits of a project, and tells the servers. The log follows with the
// next sweep.
func UpdateLimits(
	ctx context.Context, platform pg.Querier, p *projectdb.Project, c LimitChange,
) (RealtimeLimits, error) {
	limits, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (RealtimeLimits, error) {
		if err := setLimits(ctx, tx, c); err != nil {
			return RealtimeLimits{}, err
		}

		return GetLimits(ctx, tx)
	})
	if err != nil {
		return RealtimeLimits{}, err
	}

	return limits, notifyLimits(ctx, platform, p.UUID)
}

func notifyLimits(ctx context.Context, platform pg.Querier, project uuid.UUID) error {
	_, err := pg.Exec(ctx, platform, `select pg_notify(@channel, @project)`,
		pgx.StrictNamedArgs{"channel": LimitsChannel, "project": project.String()})
	return err
}

func setLimits(ctx context.Context, q pg.Querier, c LimitChange) error {
	_, err := pg.Exec(ctx, q, `
		insert into socle.realtime_limits as l (sockets, channels, channels_per_socket, joins_per_second, messages_per_second,
			deliveries_per_second, payload_bytes, log_hours, log_bytes)
		values (@sockets, @channels, @channels_per_socket, @joins, @messages, @deliveries, @payload, @log_hours, @log_bytes)
		on conflict (singleton) do update set sockets = coalesce(@sockets, l.sockets),
			channels = coalesce(@channels, l.channels),
			channels_per_socket = coalesce(@channels_per_socket, l.channels_per_socket),
			joins_per_second = coalesce(@joins, l.joins_per_second),
			messages_per_second = coalesce(@messages, l.messages_per_second),
			deliveries_per_second = coalesce(@deliveries, l.deliveries_per_second),
			payload_bytes = coalesce(@payload, l.payload_bytes), log_hours = coalesce(@log_hours, l.log_hours),
			log_bytes = coalesce(@log_bytes, l.log_bytes)`,
		pgx.StrictNamedArgs{"sockets": c.Sockets, "channels": c.Channels, "channels_per_socket": c.ChannelsPerSocket,
			"joins": c.JoinsPerSecond, "messages": c.MessagesPerSecond, "deliveries": c.DeliveriesPerSecond,
			"payload": c.PayloadBytes, "log_hours": c.LogHours, "log_bytes": c.LogBytes})
	return err
}

// copyLimits copies the limits of a database to the database that is about to replace it.
func copyLimits(ctx context.Context, from, to pg.Querier) error {
	current, err := pg.All[LimitChange](ctx, from, `
		select sockets, channels, channels_per_socket, joins_per_second, messages_per_second, deliveries_per_second,
			payload_bytes, log_hours, log_bytes
		from socle.realtime_limits`, pgx.StrictNamedArgs{})
	if err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, to, `delete from socle.realtime_limits`, pgx.StrictNamedArgs{}); err != nil {
		return err
	}

	for _, c := range current { // one at most
		if err := setLimits(ctx, to, c); err != nil {
			return err
		}
	}

	return nil
}
