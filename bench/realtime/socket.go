package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// socket is a WebSocket with a joined channel.
type socket struct {
	net.Conn
	reader *bufio.Reader
}

const join = `["1","1","realtime:room","phx_join",{"config":{"presence":{"enabled":false},"broadcast":{"ack":false}}}]`

// open opens a socket and joins a channel.
func open(address, path string) (*socket, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}

	s := &socket{conn, bufio.NewReader(conn)}
	if err := s.enter(address, path); err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	return s, nil
}

func (s *socket) enter(address, path string) error {
	if _, err := io.WriteString(s, "GET "+path+" HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\nOrigin: https://app.example\r\n\r\n"); err != nil {
		return err
	}

	response, err := http.ReadResponse(s.reader, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("got %s", response.Status)
	}

	if err := s.send(join); err != nil {
		return err
	}
	reply, err := s.next()
	if err == nil && !strings.Contains(string(reply), `"ok"`) {
		err = fmt.Errorf("got %q", reply)
	}

	return err
}

// Lengths of frames (RFC 6455, section 5.2).
const (
	final, masked = 0x81, 0x80
	medium, large = 126, 127
)

// send sends a text.
func (s *socket) send(text string) error {
	frame := binary.BigEndian.AppendUint16([]byte{final, masked | medium}, uint16(len(text)))
	if len(text) < medium {
		frame = []byte{final, masked | byte(len(text))}
	}
	frame = append(append(frame, 0, 0, 0, 0), text...) // a mask of zeros
	_, err := s.Write(frame)

	return err
}

// next returns the next frame's data, until the next call.
func (s *socket) next() ([]byte, error) {
	head, err := s.reader.Peek(2)
	if err != nil {
		return nil, err
	}

	length, size := int(head[1]), 2
	switch length {
	case large:
		return nil, errors.New("a frame is too large")
	case medium:
		if head, err = s.reader.Peek(4); err != nil {
			return nil, err
		}
		length, size = int(binary.BigEndian.Uint16(head[2:])), 4
	}

	frame, err := s.reader.Peek(size + length)
	if err != nil {
		return nil, err
	}
	_, err = s.reader.Discard(size + length)

	return frame[size:], err
}
