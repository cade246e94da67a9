package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Connections of a server beside its pools: LISTEN, the locks of its workers and the leader, the
// watchdog, cancellations; and dumps, restores and migrations, which all servers divide as they
// divide their workers.
const (
	ownConnections  = 8
	workConnections = 10
)

// Bounds of the pool of the platform database. An operation may take eight connections of it, which
// one account must be able to have.
const (
	maxPlatform = 20
	minPlatform = 10
	minProjects = 4
)

// Share is what a server may use of PostgreSQL.
type Share struct {
	Servers  int // that divide it, this one included
	Platform int // connections to the platform database
	Projects int // connections to the databases of projects
}

// Connections returns the connections of the share's pools.
func (s Share) Connections() int { return s.Platform + s.Projects }

// Divide returns the share of one of several servers in the connections that PostgreSQL accepts. If
// it serves other applications too, they have half of what is left to projects.
func Divide(accepted, servers int, isShared bool) Share {
	pools := accepted/servers - beside(servers)
	platform := min(max(pools/3, minPlatform), maxPlatform)
	projects := pools - platform
	if isShared {
		projects /= 2
	}

	return Share{servers, platform, max(projects, minProjects)}
}

// beside returns a server's connections beside its pools.
func beside(servers int) int { return ownConnections + (workConnections+servers-1)/servers }

// within returns the part of a share that fits into a number of connections, and at least the
// minimum.
func (s Share) within(connections int) Share {
	s.Platform = max(min(s.Platform, connections-minProjects), minPlatform)
	s.Projects = max(min(s.Projects, connections-s.Platform), minProjects)

	return s
}

// First returns the share of a server that is about to register. Beside others it is the least.
func First(accepted, others int, isShared bool) Share {
	share := Divide(accepted, others+1, isShared)
	if others > 0 {
		share = share.within(0)
	}

	return share
}

// Divider divides the connections of a PostgreSQL among the servers of an install.
type Divider struct {
	Servers  *Servers
	Accepted int  // connections that PostgreSQL accepts
	IsShared bool // with other applications

	// Apply makes this server use no more than a share, and returns the connections that it has
	// open in its pools. It closes those beyond the share as soon as they are not in use.
	Apply func(context.Context, Share) (open int)
}

// Run keeps this server within its share until ctx ends.
func (d *Divider) Run(ctx context.Context) error {
	timer := time.NewTimer(claimInterval)
	defer timer.Stop()

	settle := settleInterval
	for known := (Share{}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-d.Servers.claimed:
		case <-timer.C:
		}

		share, isSettled, err := d.claim(ctx)
		if err != nil && ctx.Err() == nil {
			d.Servers.Log.Warn("could not divide the connections among the servers", "error", err)
		}
		if err == nil && share != known {
			d.report(known, share)
			known = share
		}

		if err != nil || isSettled {
			settle = settleInterval
			timer.Reset(claimInterval)
		} else {
			timer.Reset(settle)
			settle = min(2*settle, claimInterval)
		}
	}
}

// report logs this server's new share, unless it is and was the only one.
func (d *Divider) report(former, s Share) {
	log := d.Servers.Log.With("servers", s.Servers, "platform", s.Platform, "projects", s.Projects)
	if least := Least(s.Servers); least > d.Accepted {
		log.Warn("PostgreSQL accepts too few connections for all servers: raise max_connections",
			"accepted", d.Accepted, "needed", least)
		return
	}

	if max(former.Servers, s.Servers) > 1 {
		log.Info("connections divided among servers")
	}
}

// Least returns the least connections that several servers need.
func Least(servers int) int { return servers * (beside(servers) + minPlatform + minProjects) }

// claim applies and claims this server's share: at once what is less, and what is more as far as no
// other server claims it. It reports whether nothing is left to give up.
func (d *Divider) claim(ctx context.Context) (share Share, isSettled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()

	err = pg.InTx(ctx, d.Servers.Platform, func(tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx,
			`select pg_advisory_xact_lock(hashtextextended('socle connections', 0))`); err != nil {
			return err
		}

		others, err := running(ctx, tx, d.Servers.ID)
		if err != nil {
			return err
		}

		share = d.among(others)
		claim := max(share.Connections(), d.Apply(ctx, share))
		isSettled = claim == share.Connections()

		_, err = pg.Exec(ctx, tx, `
			with changed as (
				update platform.servers set connections = @claim
				where uuid = @uuid and connections is distinct from @claim returning uuid)
			select pg_notify(@channel, '') from changed`,
			pgx.StrictNamedArgs{"uuid": d.Servers.ID, "claim": claim, "channel": channel})
		return err
	})

	return share, isSettled, err
}

// among returns this server's share beside others, as far as these leave it.
func (d *Divider) among(others []Server) Share {
	share := Divide(d.Accepted, len(others)+1, d.IsShared)
	left := d.Accepted - share.Servers*beside(share.Servers)
	for _, o := range others {
		if o.Connections == nil { // it is about to claim its share, or knows of no claims
			left -= share.Connections()
		} else {
			left -= *o.Connections
		}
	}

	return share.within(left)
}
