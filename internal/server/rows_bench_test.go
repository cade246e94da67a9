package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// BenchmarkRows measures the cost of row requests to this process, with clients of almost no cost.
func BenchmarkRows(b *testing.B) {
	a := apitest.New(b)
	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "browser", "kind": "publishable"}`).Want(201).
		Metadata("key").(string)

	if _, err := a.ConnectProject().Exec(b.Context(), benchSchema); err != nil {
		b.Fatal(err)
	}

	for _, kind := range []struct{ name, method, path, body string }{
		{"key", "GET", "/items?id=eq.7", ""},
		{"filter", "GET", "/items?select=id,name,price&price=gt.10&order=price&limit=20", ""},
		{"embed", "GET", "/items?select=id,name,kinds(name)&price=gt.10&order=price&limit=20", ""},
		{"insert", "POST", "/events", `{"note":"event"}`},
		{"update", "PATCH", "/items?id=eq.7", `{"name":"item"}`},
	} {
		request := fmt.Sprintf("%s /projects/%s/rest/v1%s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\nApikey: %s\r\n",
			kind.method, a.Project, kind.path, key)

		if kind.body != "" {
			request += fmt.Sprintf("Content-Type: application/json\r\nPrefer: return=minimal\r\nContent-Length: %d\r\n",
				len(kind.body))
		}

		request += "\r\n" + kind.body
		for _, clients := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, clients), func(b *testing.B) {
				b.ReportAllocs()
				before := processorTime()

				var wg sync.WaitGroup
				for c := range clients {
					wg.Go(func() {
						if err := sendRepeatedly(strings.TrimPrefix(a.URL, "http://"), request,
							(b.N+clients-1-c)/clients); err != nil {
							b.Error(err)
						}
					})
				}

				wg.Wait()
				b.ReportMetric(float64(processorTime()-before)/1000/float64(b.N), "µs-cpu/op")
			})
		}
	}
}

const benchSchema = `
	create table public.kinds (id int primary key, name text not null);
	create table public.items (id int primary key, name text not null, price numeric not null, kind_id int not null references public.kinds);
	create index on public.items (price);
	create table public.events (id bigint generated always as identity primary key, note text not null);
	insert into public.kinds select n, 'kind ' || n from generate_series(1, 20) n;
	insert into public.items select n, 'item ' || n, n, 1 + n % 20 from generate_series(1, 1000) n;
	create policy everything on public.items for all to anon using (true) with check (true);
	create policy everything on public.kinds for all to anon using (true) with check (true);
	create policy everything on public.events for all to anon using (true) with check (true);
	grant all on public.items, public.kinds, public.events to anon`

// processorTime returns the processor time of this process, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)

	return u.Utime.Nano() + u.Stime.Nano()
}

// sendRepeatedly sends a request n times over one connection.
func sendRepeatedly(address, request string, n int) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()

	in := bufio.NewReader(c)
	text := []byte(request)
	for range n {
		if _, err := c.Write(text); err != nil {
			return err
		}

		left := 0
		for first := true; ; first = false {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return err
			}

			if first && line[9] != '2' {
				return fmt.Errorf("%s", line)
			}

			if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
				left, _ = strconv.Atoi(strings.TrimSpace(value))
			}

			if len(line) <= 2 {
				break
			}
		}

		if _, err := io.CopyN(io.Discard, in, int64(left)); err != nil {
			return err
		}
	}

	return nil
}
