// Command platform measures operations of the platform API against a limit: a bare server of
// net/http and pgx on the same machine, in the same run, with the same number of connections and
// the same durability. It executes one handwritten statement for each request: it reads no session,
// validates nothing and writes no audit entry. Of uploads it syncs file and folder and inserts a
// row, and log-ins are the hash alone. A download is compared twice: to [http.FileServer], which
// asks no database, and to a server that first reads the file's row.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/platform [-seconds 2] [-rounds 7] [-only upload] [-clients 16] [-socle bin/socle]
package main

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/socle-dev/socle/bench/socle"
)

func main() {
	socle.Benchmark[bench]{Head: "operation", Width: 24, Rounds: 7, Clients: "16", SetUp: setUp, Limit: newLimit}.Main()
}

// setUp returns the operations, and the parameters of the bare server.
func setUp(ctx context.Context, i *socle.Instance) ([]socle.Operation, bench, error) {
	b := &bench{Instance: i, Folder: filepath.Join(i.Dir, "limit")}
	if err := b.setUp(ctx); err != nil {
		return nil, *b, err
	}

	var all []socle.Operation
	for _, o := range operations {
		all = append(all, socle.Operation{
			Name:    o.name,
			Bounds:  socle.Bounds{Together: o.most},
			Request: func(n int) (*http.Request, error) { return b.request(o, n) },
			Limit:   func(url string, n int) (*http.Request, error) { return b.limitRequest(url, o, n) },
		})
	}

	return all, *b, nil
}
