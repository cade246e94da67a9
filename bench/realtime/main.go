// Command realtime measures the memory of idle WebSockets, each with a joined channel. The server
// runs in this process. The clients are bare connections, which cost next to nothing.
//
//	go run ./bench/realtime [-sockets 2000]
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var sockets = flag.Int("sockets", 2000, "number of sockets")

func main() {
	flag.Parse()

	if err := socle.Run(context.Background(), "", nil, slog.New(slog.DiscardHandler), run); err != nil {
		log.Fatal(err)
	}
}

func run(_ context.Context, s *socle.Socle) error {
	path := "/projects/" + s.Project.String()
	key, err := socle.Send[struct{}](s, "POST", path+"/keys",
		strings.NewReader(`{"name": "web", "kind": "publishable"}`))
	if err != nil {
		return err
	}

	address := strings.TrimPrefix(s.URL, "http://")
	path += "/realtime/v1/websocket?vsn=2.0.0&apikey=" + key.Metadata.Key
	first, err := open(address, path) // opens the project
	if err != nil {
		return err
	}
	defer first.Close()

	before, start := memory(), time.Now()
	for range *sockets {
		conn, err := open(address, path)
		if err != nil {
			return err
		}
		defer conn.Close()
	}

	took := time.Since(start)
	fmt.Printf("%d sockets: %d bytes each, opened and joined in %v\n", *sockets,
		int(memory()-before)/(*sockets), took.Round(time.Millisecond))

	return nil
}

// memory returns the bytes of heap and stacks in use.
func memory() uint64 {
	var m runtime.MemStats
	for range 3 { // stacks shrink by half at a time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)

	return m.HeapInuse + m.StackInuse
}

// open opens a socket and joins a channel.
func open(address, path string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}

	_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\nOrigin: https://app.example\r\n\r\n")
	if err == nil {
		err = expect(conn, http.StatusSwitchingProtocols)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	return conn, nil
}

// expect reads the response to a handshake, joins a channel, and reads the reply.
func expect(conn net.Conn, status int) error {
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != status {
		return fmt.Errorf("got %s", response.Status)
	}

	const final, masked, medium = 0x81, 0x80, 126
	join := `["1","1","realtime:room","phx_join",{"config":{"presence":{"enabled":false},"broadcast":{"ack":false}}}]`
	frame := binary.BigEndian.AppendUint16([]byte{final, masked | medium}, uint16(len(join)))
	if len(join) < medium {
		frame = []byte{final, masked | byte(len(join))}
	}
	frame = append(append(frame, 0, 0, 0, 0), join...) // a mask of zeros
	if _, err := conn.Write(frame); err != nil {
		return err
	}

	head, err := reader.Peek(2)
	if err != nil {
		return err
	}

	reply := make([]byte, 2+int(head[1]))
	if _, err := io.ReadFull(reader, reply); err != nil {
		return err
	}
	if !strings.Contains(string(reply), `"ok"`) {
		return fmt.Errorf("got %q", reply)
	}

	return nil
}
