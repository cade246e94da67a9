package httpx

import (
	"errors"
	"net"
	"net/http"
)

// Upgrade responds with 101 and returns the connection, for a protocol that the client has asked
// for in the Upgrade header. It fails if the client does not wait for the response: its bytes were
// checked as HTTP, see [StrictListener].
func Upgrade(w http.ResponseWriter, protocol string) (net.Conn, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}

	strict, isStrict := conn.(*strictConn)
	if rw.Reader.Buffered() > 0 || (isStrict && strict.err != nil) {
		return nil, errors.Join(errors.New("httpx: the client did not wait for the upgrade"), conn.Close())
	}

	if rec, ok := w.(*recorder); ok {
		rec.status = http.StatusSwitchingProtocols
	}

	header := w.Header().Clone()
	header.Set("Connection", "Upgrade")
	header.Set("Upgrade", protocol)

	response := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: header}
	if err := response.Write(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	if isStrict {
		return strict.Conn, nil
	}

	return conn, nil
}
