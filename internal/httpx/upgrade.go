package httpx

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

// hijacked is a connection that a handler has taken over, or the reason why it could not.
type hijacked struct {
	isTaken bool // from HTTP, also if err is set
	conn    net.Conn
	rw      *bufio.ReadWriter
	err     error
}

// errEarly ends a connection whose client does not wait for the response.
var errEarly = errors.New("httpx: the client did not wait for the upgrade")

// Hijack returns the connection for another protocol than HTTP, whose bytes are not checked, see
// [StrictListener]. It fails if the client does not wait for the response: its bytes were checked
// as HTTP.
//
// Libraries respond with 101 before they hijack. So WriteHeader does both at once: a client may
// send its first bytes as soon as it has the response.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.hijacked == nil {
		w.hijack()
	}

	return w.hijacked.conn, w.hijacked.rw, w.hijacked.err
}

func (w *recorder) hijack() {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		w.hijacked = &hijacked{err: err}
		return
	}

	strict, isStrict := conn.(*strictConn)
	if rw.Reader.Buffered() > 0 || (isStrict && strict.err != nil) {
		w.hijacked = &hijacked{isTaken: true, err: errors.Join(errEarly, conn.Close())}
		return
	}

	if isStrict {
		conn = strict.Conn
	}
	rw.Reader.Reset(conn)
	rw.Writer.Reset(conn)
	w.hijacked = &hijacked{isTaken: true, conn: conn, rw: rw}
}

// switchProtocols takes over the connection and responds with 101.
func (w *recorder) switchProtocols() {
	w.hijack()
	h := w.hijacked
	if h.err != nil {
		return
	}

	w.status = http.StatusSwitchingProtocols
	response := http.Response{StatusCode: w.status, ProtoMajor: 1, ProtoMinor: 1, Header: w.Header()}
	if err := response.Write(h.conn); err != nil {
		w.hijacked = &hijacked{isTaken: true, err: errors.Join(err, h.conn.Close())}
	}
}

// Upgrade responds with 101 and returns the connection, for a protocol that the client has asked
// for in the Upgrade header. It fails if the client does not wait for the response.
func Upgrade(w http.ResponseWriter, protocol string) (net.Conn, error) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", protocol)
	w.WriteHeader(http.StatusSwitchingProtocols)

	conn, _, err := http.NewResponseController(w).Hijack()
	return conn, err
}
