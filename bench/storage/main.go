// Command storage measures uploads, downloads and lists of an application's users by the API of
// Supabase Storage, under policies, and the same by the platform API. Both are compared with a
// limit: a bare server of net/http and pgx on the same machine, in the same run. It verifies no
// token and evaluates no policy. Of uploads it syncs file and folder and inserts a row, downloads
// are those of [http.FileServer], and a list is one handwritten statement.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/storage [-seconds 2] [-rounds 7] [-only upload] [-clients 16] [-socle bin/socle]
package main

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/socle-dev/socle/bench/socle"
)

func main() {
	socle.Benchmark[parameters]{Head: "operation", Width: 38, Rounds: 7, Clients: "16", SetUp: setUp,
		Limit: newLimit}.Main()
}

// setUp returns each operation by both APIs, and the parameters of the bare server.
func setUp(ctx context.Context, i *socle.Instance) ([]socle.Operation, parameters, error) {
	b := &bench{Instance: i, parameters: parameters{Folder: filepath.Join(i.Dir, "limit")}}
	if err := b.setUp(); err != nil {
		return nil, b.parameters, err
	}
	if err := b.connect(ctx); err != nil {
		return nil, b.parameters, err
	}

	var all []socle.Operation
	for _, o := range operations {
		limit := func(url string, n int) (*http.Request, error) { return o.limit(b, url, n) }
		for _, way := range []struct {
			name    string
			request request
		}{{"storage API", o.storage}, {"platform API", o.platform}} {
			all = append(all, socle.Operation{Name: o.name + ", " + way.name, Limit: limit,
				Request: func(n int) (*http.Request, error) { return way.request(b, n) }})
		}
	}

	return all, b.parameters, nil
}
