// Package pgwire is the server's side at the start of a PostgreSQL session: startup packets,
// SCRAM-SHA-256, and the messages before and after the session; and the tunnel that carries a
// session over HTTP. It knows no credentials and no projects, and connects to nothing.
package pgwire

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Startup packet codes. A session's code is its protocol version.
const (
	cancelCode = 1234<<16 | 5678
	sslCode    = 1234<<16 | 5679
	gssCode    = 1234<<16 | 5680

	majorVersion = 3

	// maxPacket is PostgreSQL's own limit on the size of a startup packet.
	maxPacket = 10_000
	// maxRequests bounds a connection's startup packets: TLS, GSSAPI, and the session.
	maxRequests = 3

	tlsHandshake = 0x16 // a TLS record's first byte; a startup packet begins with a zero byte
)

// ALPN is the application protocol that PostgreSQL clients announce in a TLS handshake.
const ALPN = "postgresql"

// Startup is a client's request for a session, or for canceling another session's statement.
type Startup struct {
	User, Database string
	Parameters     map[string]string // other parameters by lower-case name, protocol extensions omitted
	Cancel         *Key              // nil: the client requests a session
}

// Key identifies a session in a request to cancel its statement.
type Key struct{ PID, Secret uint32 }

// errTLSRequired is reported to a client that requests a session in plain text.
var errTLSRequired = errors.New("pgwire: the client does not use TLS")

// Accept reads a client's startup. With a configuration it requires TLS, except for a request to
// cancel, which older clients always send in plain text; the returned connection is then the TLS
// connection. Without a configuration it declines encryption.
func Accept(conn net.Conn, config *tls.Config) (net.Conn, Startup, error) {
	isTLS := false
	for range maxRequests {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			return conn, Startup{}, err
		}

		if head[0] == tlsHandshake && config != nil && !isTLS { // sslnegotiation=direct
			conn, isTLS = tls.Server(&prefixedConn{conn, head}, config), true
			continue
		}

		code, packet, err := readPacket(conn, head)
		if err != nil {
			return conn, Startup{}, err
		}

		switch {
		case code == sslCode && config != nil && !isTLS:
			if _, err := conn.Write([]byte{'S'}); err != nil {
				return conn, Startup{}, err
			}
			conn, isTLS = tls.Server(conn, config), true
		case code == sslCode, code == gssCode:
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return conn, Startup{}, err
			}
		case code == cancelCode:
			key, err := parseCancel(packet)
			return conn, Startup{Cancel: key}, err
		case config != nil && !isTLS:
			return conn, Startup{}, errors.Join(errTLSRequired,
				Send(conn, Fatal("28000", "the server requires TLS", "Connect with sslmode=require or stricter.")))
		default:
			s, err := parseStartup(conn, code, packet)
			return conn, s, err
		}
	}

	return conn, Startup{}, errors.New("pgwire: too many startup packets")
}

// readPacket reads the startup packet whose length is head. It reads no byte beyond the packet.
func readPacket(r io.Reader, head []byte) (code uint32, packet []byte, err error) {
	size := int64(binary.BigEndian.Uint32(head)) - int64(len(head))
	if size < 4 || size > maxPacket {
		return 0, nil, fmt.Errorf("pgwire: invalid length of startup packet: %d", size)
	}

	packet = make([]byte, size)
	if _, err := io.ReadFull(r, packet); err != nil {
		return 0, nil, err
	}

	return binary.BigEndian.Uint32(packet), packet, nil
}

func parseCancel(packet []byte) (*Key, error) {
	var m pgproto3.CancelRequest
	if err := m.Decode(packet); err != nil {
		return nil, err
	}

	if len(m.SecretKey) != 4 { // protocol 3.2, which [Accept] never agrees on
		return nil, errors.New("pgwire: invalid length of cancel key")
	}

	return &Key{m.ProcessID, binary.BigEndian.Uint32(m.SecretKey)}, nil
}

// parseStartup parses the request for a session. It negotiates protocol 3.0 with a client that
// requests a newer minor version or protocol extensions.
func parseStartup(w io.Writer, version uint32, packet []byte) (Startup, error) {
	if version>>16 != majorVersion {
		return Startup{}, errors.Join(fmt.Errorf("pgwire: protocol version %d.%d", version>>16, version&0xffff),
			Send(w, Fatal("0A000", "the server supports protocol 3.0 only", "")))
	}

	binary.BigEndian.PutUint32(packet, pgproto3.ProtocolVersion30)

	var m pgproto3.StartupMessage
	if len(packet) > 5 { // shorter without parameters
		if err := m.Decode(packet); err != nil {
			return Startup{}, err
		}
	}

	for name, value := range m.Parameters {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return Startup{}, errors.Join(errors.New("pgwire: a startup parameter is not UTF-8"),
				Send(w, Fatal("22021", "startup parameters must be UTF-8", "")))
		}
	}

	s := Startup{Parameters: map[string]string{}}
	var extensions []string
	for name, value := range m.Parameters {
		switch lower := strings.ToLower(name); {
		case strings.HasPrefix(name, "_pq_."):
			extensions = append(extensions, name)
		case name == "user":
			s.User = value
		case name == "database":
			s.Database = value
		default:
			s.Parameters[lower] = value
		}
	}

	if s.Database == "" {
		s.Database = s.User
	}

	if version > pgproto3.ProtocolVersion30 || len(extensions) > 0 {
		slices.Sort(extensions)
		return s, Send(w, &pgproto3.NegotiateProtocolVersion{
			NewestMinorProtocol: pgproto3.ProtocolVersion30, // with the major version, as PostgreSQL sends it
			UnrecognizedOptions: extensions,
		})
	}

	return s, nil
}

// Encode returns the packet that requests the session.
func (s Startup) Encode() ([]byte, error) {
	if s.Cancel != nil {
		secret := binary.BigEndian.AppendUint32(nil, s.Cancel.Secret)
		return (&pgproto3.CancelRequest{ProcessID: s.Cancel.PID, SecretKey: secret}).Encode(nil)
	}

	parameters := maps.Clone(s.Parameters)
	if parameters == nil {
		parameters = map[string]string{}
	}

	parameters["user"], parameters["database"] = s.User, s.Database
	return (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: parameters}).Encode(nil)
}

// Fatal returns the message that ends a session or refuses it.
func Fatal(code, message, hint string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message, Hint: hint,
	}
}

// Send writes messages in one piece.
func Send(w io.Writer, messages ...pgproto3.BackendMessage) error {
	var text []byte
	for _, m := range messages {
		var err error
		if text, err = m.Encode(text); err != nil {
			return err
		}
	}

	_, err := w.Write(text)
	return err
}

// readMessage reads a message with a type and a bounded size. It reads no byte beyond the message.
func readMessage(r io.Reader, kind byte, limit int64) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}

	size := int64(binary.BigEndian.Uint32(head[1:])) - 4
	if head[0] != kind || size < 0 || size > limit {
		return nil, fmt.Errorf("pgwire: unexpected message %q of %d bytes", head[0], size)
	}

	body := make([]byte, size)
	_, err := io.ReadFull(r, body)

	return body, err
}

// prefixedConn is a connection with bytes that were read already.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

// Read reads the prefix first.
func (c *prefixedConn) Read(b []byte) (int, error) {
	if len(c.prefix) == 0 {
		return c.Conn.Read(b)
	}

	n := copy(b, c.prefix)
	c.prefix = c.prefix[n:]

	return n, nil
}
