// Command auth measures the sessions of end users against a limit: a bare server of net/http and
// pgx on the same machine, in the same run. Its SQL is handwritten and prepared: one statement per
// request that reads the user, increments the generation of the refresh token, or opens a session.
// It verifies no token and counts no attempt; it signs access tokens and computes hashes of
// passwords as Socle does.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/auth [-seconds 2] [-rounds 7] [-only refresh] [-clients 16] [-socle bin/socle]
package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/socle-dev/socle/bench/socle"
)

// operation is a measured operation: its request n to Socle, and its path in the bare server.
type operation struct {
	name    string
	request func(b *bench, n int) (*http.Request, error)
	path    string
	// sequential tells that a request needs the response to the previous one.
	sequential bool
}

var operations = []operation{
	{"get the user", (*bench).getUser, "/user/", false},
	{"refresh", (*bench).refresh, "/refresh/", true},
	{"log-in by password", (*bench).login, "/login/", false},
}

func main() {
	socle.Benchmark[parameters]{Head: "operation", Width: 20, Rounds: 7, Clients: "16", SetUp: setUp,
		Limit: newLimit}.Main()
}

// setUp returns the operations, and the parameters of the bare server.
func setUp(ctx context.Context, i *socle.Instance) ([]socle.Operation, parameters, error) {
	b := &bench{Instance: i}
	if err := b.setUp(); err != nil {
		return nil, b.parameters, err
	}
	if err := b.connect(ctx); err != nil {
		return nil, b.parameters, err
	}

	var all []socle.Operation
	for _, o := range operations {
		all = append(all, socle.Operation{
			Name: o.name, ClosedLoop: o.sequential,
			Request: func(n int) (*http.Request, error) { return o.request(b, n) },
			Limit: func(url string, n int) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, "GET", fmt.Sprint(url, o.path, n%b.Clients), nil)
			},
		})
	}

	return all, b.parameters, nil
}
