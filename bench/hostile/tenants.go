package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// catchCancel is user code that catches its cancellation and continues.
const catchCancel = `loop begin perform pg_sleep(100); exception when query_canceled then null; end; end loop`

func sqlCatches(ctx context.Context, s *environment) string {
	return s.sql(ctx, `do $$ begin `+catchCancel+`; end $$`, `, "timeout_ms": 2000`)
}

// schemaCatches adds a check whose function catches its cancellation, then one that does not, to
// test whether the table is locked.
func schemaCatches(ctx context.Context, s *environment) string {
	s.sql(ctx, `create table caught (id int); insert into caught values (1);
		create function endless(int) returns boolean language plpgsql as $$ begin `+catchCancel+`; return true; end $$`,
		writing)

	s.startClock()
	said := s.post(ctx, "/tables/caught/constraints",
		[]byte(`{"name": "endless", "type": "check", "expression": "endless(id)"}`), "application/json")

	s.notes = append(s.notes, "then: "+s.sql(ctx, "alter table caught add column another int", writing))

	return said
}

func notifyFlood(ctx context.Context, s *environment) string {
	return atOnce(3, func(i int) string {
		return s.sql(ctx,
			fmt.Sprintf(`do $$ begin for i in 1..150000 loop perform pg_notify('c%d', i::text); end loop; end $$`, i),
			writing+`, "timeout_ms": 30000`)
	})
}

// regrole casts OIDs to names of roles and relations, and counts names of other projects.
func regrole(ctx context.Context, s *environment) string {
	s.sql(
		ctx,
		`create table numbers (id int); insert into numbers select generate_series(16384, 20000); alter table numbers disable row level security; grant select on numbers to anon`, writing,
	)

	s.startClock()
	count := 0

	var said []string
	for _, cast := range []string{"regrole", "regclass"} {
		status, text, err := s.send(ctx, "GET", s.rows()+"numbers?select=id::"+cast, s.account, nil, "")
		said = append(said, summarize(status, text, err))
		count += strings.Count(string(text), "socle_") + strings.Count(string(text), "auth.") +
			strings.Count(string(text), "storage.")
	}

	s.notes = append(s.notes, fmt.Sprintf("%d names", count))
	return strings.Join(said, ", ")
}

// headers sets the platform's headers in a function, and counts those in the response.
func headers(ctx context.Context, s *environment) string {
	forbidden := map[string]string{"Set-Cookie": "a=b", "Clear-Site-Data": `"*"`,
		"Strict-Transport-Security": "max-age=99999999", "NEL": "{}", "Report-To": "{}", "Alt-Svc": `h3=":443"`,
		"Service-Worker-Allowed": "/", "X-Request-Id": "forged", "X-Content-Type-Options": "off",
		"Content-Type": "text/html"}

	var list []string
	for name, value := range forbidden {
		list = append(list, fmt.Sprintf(`{"%s":"%s"}`, name, strings.ReplaceAll(value, `"`, `\"`)))
	}

	s.sql(ctx, `create function forge() returns text language sql as $f$ select set_config('response.headers', $$[`+
		strings.Join(list, ",")+`]$$, true); select '<script>' $f$;
		grant execute on function forge() to anon`, writing)

	s.startClock()

	r, err := http.NewRequestWithContext(ctx, "POST", s.url+s.rows()+"rpc/forge", nil)
	if err != nil {
		return err.Error()
	}

	r.Header.Set("apikey", s.key)

	res, err := s.client.Do(r)
	if err != nil {
		return summarize(0, nil, err)
	}
	defer res.Body.Close()

	var came []string
	for name, value := range forbidden {
		if slices.Contains(res.Header.Values(name), value) {
			came = append(came, name)
		}
	}

	slices.Sort(came)

	if len(came) > 0 {
		s.notes = append(s.notes, "came through: "+strings.Join(came, ", "))
	}

	return summarize(res.StatusCode, nil, nil)
}

func advisoryLocks(ctx context.Context, s *environment) string {
	return s.sql(ctx, `select count(pg_advisory_lock(i)) from generate_series(1, 80000) i; select pg_sleep(20)`,
		`, "timeout_ms": 30000`)
}

func errorText(ctx context.Context, s *environment) string {
	return s.sql(ctx, fmt.Sprintf(`do $$ begin raise exception '%%', repeat('x', %d); end $$`, *megs*400_000),
		`, "timeout_ms": 30000`)
}

func aggregates(ctx context.Context, s *environment) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return atOnce(4, func(int) string {
		return s.sql(ctx,
			fmt.Sprintf(`select length(string_agg(repeat('x', 1000), '')) from generate_series(1, %d)`, *megs*1000),
			`, "timeout_ms": 30000`)
	})
}
