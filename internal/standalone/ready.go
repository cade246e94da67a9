package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// Ready requests /ready from a configuration's admin server. It returns the address, and an error
// if the server is not ready.
func (c Config) Ready(ctx context.Context) (string, error) {
	if !c.adminAddr.isSet() {
		return "", errors.New("no admin server: set admin-server-port or admin-server-unix-socket")
	}

	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()

	network, host := c.adminAddr.network()
	if host == "" {
		host = "localhost"
	}

	address := net.JoinHostPort(host, strconv.Itoa(c.adminAddr.port))
	where := "http://" + address + "/ready"
	if c.adminAddr.socket != "" {
		network, address = "unix", c.adminAddr.socket
		where = address
	}

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(
		ctx context.Context, _, _ string,
	) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ready", nil)
	if err != nil {
		return where, err
	}

	answer, err := client.Do(r)
	if err != nil {
		return where, fmt.Errorf("%s does not respond: %w", where, errors.Unwrap(err))
	}

	_ = answer.Body.Close() // empty

	if answer.StatusCode != http.StatusOK {
		return where, fmt.Errorf("%s responded %s", where, answer.Status)
	}

	return where, nil
}
