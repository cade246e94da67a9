package projectdb

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/replica"
	"github.com/socle-dev/socle/internal/throttle"
)

// Replicas are standbys that answer reads of projects. Each has a registry of its own: pools,
// budget of connections and watchdog. A standby accepts at least as many connections as its
// primary, so a server's share of these is its share of each standby, too.
type Replicas struct {
	set        *replica.Set
	registries []*Registry
	hosts      []string
}

// ReplicasConfig configures [Replicas].
type ReplicasConfig struct {
	Config                     // as of the primary's registry
	Standbys []*pgxpool.Config // one host each, see [pg.HostConfigs]
}

// NewReplicas returns the replicas. It does not connect.
func NewReplicas(c ReplicasConfig) *Replicas {
	r := &Replicas{}
	var servers []*pgx.ConnConfig
	for _, standby := range c.Standbys {
		config := c.Config
		config.Server, config.Memory, config.standby = standby, pgcluster.MemoryLimit{}, true

		host := net.JoinHostPort(standby.ConnConfig.Host, strconv.Itoa(int(standby.ConnConfig.Port)))
		config.Log = c.Log.With(slog.String("replica", host))

		servers = append(servers, standby.ConnConfig)
		r.registries = append(r.registries, NewRegistry(config))
		r.hosts = append(r.hosts, host)
	}

	// The primary may be in the list, and is tried every second.
	r.set = replica.New(c.Server.ConnConfig, servers, throttle.New(c.Log))
	return r
}

// Reader is a project on a standby, for one read.
type Reader struct {
	*Project
	Alive context.Context // ends when the standby is gone

	after replica.Position
}

// Reader returns a project on a standby that is fresh and has replayed a position, unless that is
// zero. It reports false if the primary must answer.
func (r *Replicas) Reader(ctx context.Context, project uuid.UUID, after replica.Position) (Reader, bool) {
	choice, ok := r.set.Choose(ctx, after)
	if !ok {
		return Reader{}, false
	}

	return Reader{r.registries[choice.Standby].Open(project), choice.Alive, after}, true
}

// Check returns a statement that fails unless the session's database still is the project's, open,
// and has replayed the position that the reader was asked for: a session outlives the swap of its
// database, and a standby that restarts goes back to its last checkpoint.
func (r Reader) Check() (sql string, args []any) {
	return `
		select (case when exists (
				select from pg_catalog.pg_database
				where datname operator(pg_catalog.=) pg_catalog.current_database()
					and datname operator(pg_catalog.=) $1::pg_catalog.name and datconnlimit operator(pg_catalog.<>) 0)
			and (not pg_catalog.pg_is_in_recovery()
				or pg_catalog.pg_last_wal_replay_lsn() operator(pg_catalog.>=) $2::pg_catalog.pg_lsn)
			then '0' else 'the replica is behind' end)::pg_catalog.int4`,
		[]any{r.cluster.Database(r.UUID), r.after.PgLSN()}
}

// Position returns the position of what was committed before the call, see [Replicas.Reader].
func (r *Replicas) Position(ctx context.Context) (replica.Position, error) {
	return r.set.Position(ctx)
}

// Run looks at the standbys, and keeps their pools and watchdogs, until ctx ends.
func (r *Replicas) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { _ = r.set.Run(ctx) })

	for _, registry := range r.registries {
		all.Go(func() { _ = registry.Watch(ctx) })
		all.Go(func() { _ = registry.Run(ctx) })
	}

	all.Wait()
	return nil
}

// Resize changes the maximum number of open connections to each standby.
func (r *Replicas) Resize(connections int) {
	for _, registry := range r.registries {
		registry.Resize(connections)
	}
}

// ResetPools closes a project's idle connections to the standbys, and the others when they are
// released.
func (r *Replicas) ResetPools(project uuid.UUID) {
	for _, registry := range r.registries {
		registry.ResetPools(project)
	}
}

// PoolContended reports whether a request waits for a connection to a standby.
func (r *Replicas) PoolContended() bool {
	for _, registry := range r.registries {
		if registry.PoolContended() {
			return true
		}
	}

	return false
}

// ReplicaState is the state of a standby.
type ReplicaState struct {
	Host        string
	Fresh       bool          // it answers reads
	Lag         time.Duration // since it was equal to the primary; only if it is fresh
	Connections int
}

// States returns the states of the standbys.
func (r *Replicas) States() []ReplicaState {
	all := make([]ReplicaState, len(r.registries))
	for i, registry := range r.registries {
		lag, fresh := r.set.Lag(i)
		all[i] = ReplicaState{r.hosts[i], fresh, lag, registry.Stats().Connections}
	}

	return all
}

// ReplicaConfigs returns the configurations of connections to each host of an address.
func ReplicaConfigs(address string) ([]*pgxpool.Config, error) {
	c, err := pg.PoolConfig(address, poolSize)
	if err != nil {
		return nil, err
	}

	return pg.HostConfigs(c), nil
}
