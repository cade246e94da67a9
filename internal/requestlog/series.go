package requestlog

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// maxSeriesRows bounds the requests that a series reads, a second's work of the platform database
// at most. [platform.DefaultRequestBytes] holds about 400,000 requests a day.
const maxSeriesRows = 250_000

// Series in progress on this server, and those that wait for a place: each member of a project can
// ask for them.
const (
	maxSeries        = 4
	maxWaitingSeries = 32
	seriesWait       = 2 * time.Second
)

// Span is the time that a series covers, up to now.
type Span struct {
	Bucket  time.Duration
	Buckets int
}

// Spans are the spans by their names.
var Spans = map[string]Span{
	"hour": {time.Minute, 60},
	"day":  {15 * time.Minute, 96},
	"week": {time.Hour, 7 * 24},
}

// Bucket counts the logged requests of a part of a series.
type Bucket struct {
	At           time.Time `json:"at" doc:"Start of the bucket."`
	Requests     int64     `json:"requests"`
	ClientErrors int64     `json:"clientErrors" doc:"Requests with a status from 400 to 499."`
	ServerErrors int64     `json:"serverErrors" doc:"Requests with a status from 500."`
	P50          *int64    `json:"p50" nullable:"true" doc:"Median of the duration in microseconds; null without a request."`
	P99          *int64    `json:"p99" nullable:"true" doc:"99th percentile of the duration in microseconds."`
}

// Counter counts requests over time, for a few accounts at once.
type Counter struct {
	db     *platform.DB
	places *fair.Pool
}

// NewCounter returns a counter of the requests in a platform database.
func NewCounter(db *platform.DB) *Counter { return newCounter(db, seriesWait) }

func newCounter(db *platform.DB, wait time.Duration) *Counter {
	return &Counter{db: db, places: fair.New(fair.Config{Name: "request_series", Capacity: maxSeries, PerAccount: 1,
		Waiting: maxWaitingSeries, Timeout: wait})}
}

// Pools returns the pools that accounts share, for metrics.
func (c *Counter) Pools() []*fair.Pool { return []*fair.Pool{c.places} }

// Series returns the buckets of a span that ends now, oldest first, empty ones included. incomplete
// is the time before which requests were not counted, nil if all were. It fails with TooMany if
// owner, the project's key in pools, gets no place in time.
func (c *Counter) Series(
	ctx context.Context, owner fair.Key, project uuid.UUID, span Span, now time.Time,
) (buckets []Bucket, incomplete *time.Time, err error) {
	place, err := c.places.Acquire(ctx, owner, 1)
	if errors.Is(err, fair.ErrBusy) {
		f := fault.New(fault.TooMany, "too many requests are being counted at the moment").WithCode("busy")
		f.RetryAfter = seriesWait

		return nil, nil, f
	}
	if err != nil {
		return nil, nil, err
	}
	defer place.Release()

	return seriesOf(ctx, c.db, project, span, now, maxSeriesRows)
}

func seriesOf(
	ctx context.Context, db *platform.DB, project uuid.UUID, span Span, now time.Time, most int,
) (buckets []Bucket, incomplete *time.Time, err error) {
	last := now.UTC().Truncate(span.Bucket)
	first := last.Add(-time.Duration(span.Buckets-1) * span.Bucket)

	rows, err := pg.All[struct {
		Bucket
		OldestRead *time.Time // oldest request that was read, if the bound was met
	}](ctx, db.Querier(), `
		with counted as materialized (
			select r.at, r.status, r.duration from platform.requests r
			where r.project_uuid = @project and r.at >= @first and r.at < @end
			order by r.at desc, r.uuid desc limit @most
		), filled as (
			select date_bin(@bucket, c.at, @first) as at, count(*) as requests,
				count(*) filter (where c.status between 400 and 499) as client_errors,
				count(*) filter (where c.status >= 500) as server_errors,
				percentile_disc(array[0.5, 0.99]) within group (order by c.duration) as percentiles
			from counted c group by 1
		), bound as (
			select case when count(*) >= @most then min(at) end as oldest from counted
		)
		select g.at, coalesce(f.requests, 0) as requests, coalesce(f.client_errors, 0) as client_errors,
			coalesce(f.server_errors, 0) as server_errors, f.percentiles[1] as p50, f.percentiles[2] as p99,
			b.oldest as oldest_read
		from generate_series(@first::timestamptz, @last::timestamptz, @bucket::interval) g(at)
			cross join bound b left join filled f on f.at = g.at
		order by g.at`,
		pgx.StrictNamedArgs{"project": project, "first": first, "last": last, "end": last.Add(span.Bucket),
			"bucket": span.Bucket, "most": most})
	if err != nil {
		return nil, nil, err
	}

	buckets = make([]Bucket, len(rows))
	for i, r := range rows {
		buckets[i], incomplete = r.Bucket, r.OldestRead
	}

	return buckets, incomplete, nil
}
