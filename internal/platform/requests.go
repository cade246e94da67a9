package platform

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/socle-dev/socle/internal/pg"
)

// Request is an answered request to a project in the request log. It contains no path and no value
// of the client.
type Request struct {
	UUID     uuid.UUID  `json:"uuid" doc:"Id of the request, as in the response header X-Request-Id."`
	Project  uuid.UUID  `json:"-"`
	At       time.Time  `json:"at"`
	Method   string     `json:"method"`
	Route    string     `json:"route" doc:"Pattern of the route."`
	Status   int16      `json:"status"`
	Duration int64      `json:"duration" doc:"Microseconds."`
	Caller   string     `json:"caller" enum:"user,key,token,anonymous" doc:"Kind of caller: a user of the platform, a key of the project, a token of the project's own users, or anonymous."`
	UserUUID *uuid.UUID `json:"userUuid" nullable:"true"`
	KeyUUID  *uuid.UUID `json:"keyUuid" nullable:"true"`
	Client   *string    `json:"client" nullable:"true" doc:"Address of the client."`
}

const (
	partitionSchema      = "platform_requests" // schema of the partitions
	partitionLayout      = "day_20060102"
	partitionLockTimeout = "5s" // lock timeout for creating or dropping a partition
	maxMethodSize        = 16   // bytes kept of a method, as a client may send any word
)

// RequestFilter narrows the request log of a project. Newest requests come first.
type RequestFilter struct {
	From, To  time.Time // zero: unbounded
	MinStatus int
	Method    string // "": any
	Before    RequestKey
	Limit     int
}

// RequestKey is the position of a request in the list. The zero value is before all.
type RequestKey struct {
	At   time.Time
	UUID uuid.UUID
}

// AddRequests appends to the request log. It commits asynchronously, so a database crash may lose
// the last moment of it.
func (s *Store) AddRequests(ctx context.Context, requests []Request) error {
	err := s.addRequests(ctx, requests)
	if pg.State(err) != "23514" { // check_violation: no partition takes a row
		return err
	}

	days := map[string]time.Time{}
	for _, r := range requests {
		days[r.At.UTC().Format(partitionLayout)] = r.At
	}

	for _, at := range days {
		if err := s.createRequestPartition(ctx, at); err != nil {
			return err
		}
	}

	return s.addRequests(ctx, requests)
}

func (s *Store) addRequests(ctx context.Context, requests []Request) error {
	return pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
			return err
		}

		_, err := tx.CopyFrom(ctx, pgx.Identifier{Schema, "requests"},
			[]string{
				"uuid", "project_uuid", "at", "method", "route", "status", "duration", "caller", "user_uuid",
				"key_uuid", "client",
			},
			&requestRows{requests: requests, values: make([]any, 11)})
		return err
	})
}

// requestRows is a pgx.CopyFromSource of requests. It yields values that need no conversion.
type requestRows struct {
	requests []Request
	values   []any
}

func (r *requestRows) Next() bool { return len(r.requests) > 0 }
func (r *requestRows) Err() error { return nil }

func (r *requestRows) Values() ([]any, error) {
	request := &r.requests[0]
	r.requests = r.requests[1:]

	v := r.values
	v[0] = pgtype.UUID{Bytes: request.UUID, Valid: true}
	v[1] = pgtype.UUID{Bytes: request.Project, Valid: true}
	v[2] = pgtype.Timestamptz{Time: request.At, Valid: true}
	v[3] = request.Method[:min(len(request.Method), maxMethodSize)]
	v[4] = request.Route
	v[5] = pgtype.Int2{Int16: request.Status, Valid: true}
	v[6] = pgtype.Int8{Int64: request.Duration, Valid: true}
	v[7] = request.Caller
	v[8] = nullUUID(request.UserUUID)
	v[9] = nullUUID(request.KeyUUID)
	v[10] = nil

	if request.Client != nil {
		if a, err := netip.ParseAddr(*request.Client); err == nil {
			v[10] = netip.PrefixFrom(a, a.BitLen())
		}
	}

	return v, nil
}

func nullUUID(id *uuid.UUID) pgtype.UUID {
	if id == nil {
		return pgtype.UUID{}
	}
	return pgtype.UUID{Bytes: *id, Valid: true}
}

// createRequestPartition creates the partition of the day that contains at. A partition that
// another server has created is not an error.
func (s *Store) createRequestPartition(ctx context.Context, at time.Time) error {
	day := at.UTC().Truncate(24 * time.Hour)
	const bound = "2006-01-02 15:04:05-07"
	err := s.alterPartitions(ctx,
		fmt.Sprintf("create table if not exists %s partition of platform.requests for values from (%s) to (%s)",
			pg.Quote(partitionSchema, day.Format(partitionLayout)), pg.Literal(day.Format(bound)),
			pg.Literal(day.Add(24*time.Hour).Format(bound))))
	switch pg.State(err) {
	case "42P07", "42P17", "23505": // exists, overlaps, or created concurrently
		return nil
	}

	return err
}

// ForgetRequestDays deletes the request statistics of projects that are older than the retention
// setting.
func (s *Store) ForgetRequestDays(ctx context.Context) error {
	settings, err := s.Settings(ctx)
	if err != nil {
		return err
	}

	return s.DropRequestPartitions(ctx, settings.RequestsKept())
}

// DropRequestPartitions drops the partitions of days older than keep.
func (s *Store) DropRequestPartitions(ctx context.Context, keep time.Duration) error {
	days, err := pg.Values[string](ctx, s.q, `
		select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent = 'platform.requests'::regclass order by c.relname`)
	if err != nil {
		return err
	}

	for _, name := range days {
		day, err := time.Parse(partitionLayout, name)
		if err != nil || time.Since(day) < keep+24*time.Hour {
			continue
		}

		if err := s.alterPartitions(ctx, "drop table if exists "+pg.Quote(partitionSchema, name)); err != nil {
			return err
		}
	}

	return nil
}

// alterPartitions runs DDL on the request log with a lock timeout, so that it does
// not queue requests behind it for long.
func (s *Store) alterPartitions(ctx context.Context, sql string) error {
	return pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = "+pg.Literal(partitionLockTimeout)); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, sql)
		return err
	})
}

// ListRequests returns requests to a project and the key of the next page, nil at the end.
func (s *Store) ListRequests(ctx context.Context, project uuid.UUID, f RequestFilter) ([]Request, *RequestKey, error) {
	if f.Before.At.IsZero() {
		f.Before.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if f.To.IsZero() {
		f.To = f.Before.At
	}

	found, err := pg.All[Request](ctx, s.q, `
		select uuid, project_uuid as project, at, method, route, status, duration, caller, user_uuid, key_uuid, host(client) as client
		from platform.requests
		where project_uuid = @project and at >= @from and at < @to and (at, uuid) < (@at, @uuid)
			and status >= @status::integer and (@method = '' or method = @method)
		order by at desc, uuid desc limit @limit::bigint + 1`,
		pgx.StrictNamedArgs{"project": project, "from": f.From, "to": f.To, "at": f.Before.At, "uuid": f.Before.UUID,
			"status": f.MinStatus, "method": strings.ToUpper(f.Method), "limit": f.Limit})
	if err != nil || len(found) <= f.Limit {
		return found, nil, err
	}

	last := found[f.Limit-1]
	return found[:f.Limit], &RequestKey{last.At, last.UUID}, nil
}
