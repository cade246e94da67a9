// Command realtime measures channels: the memory of idle WebSockets, each with a joined channel,
// and broadcasts, with their delays, on one server or on two. The servers run in this process,
// and so do the clients, which are bare connections.
//
//	go run ./bench/realtime [-sockets 2000]
//	go run ./bench/realtime -sockets 0 [-servers 2] [-projects 1] [-members 200] [-seconds 5]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	sockets  = flag.Int("sockets", 2000, "number of idle sockets; 0: measure broadcasts")
	servers  = flag.Int("servers", 1, "number of servers, 1 or 2, with half of the members each")
	projects = flag.Int("projects", 1, "number of projects, each with a room and a sender")
	members  = flag.Int("members", 200, "number of members of each room")
	seconds  = flag.Int("seconds", 5, "length of the measurement")
	rate     = flag.Int("rate", 100, "broadcasts a second in each room, at most 100")
)

func main() {
	flag.Parse()

	if err := socle.Run(context.Background(), "", nil, slog.New(slog.DiscardHandler), run); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s *socle.Socle) error {
	if *sockets > 0 {
		return measureIdle(s)
	}

	addresses := []string{address(s.URL)}
	if *servers == 2 {
		second, stop, err := startSecond(ctx, s)
		if err != nil {
			return err
		}
		defer stop()
		addresses = append(addresses, second)
	}

	var rooms []string
	for range *projects {
		path, err := newProject(s)
		if err != nil {
			return err
		}
		rooms = append(rooms, path)
	}

	return measureBroadcasts(addresses, rooms)
}

func address(url string) string { return strings.TrimPrefix(url, "http://") }

// newProject returns the path of the sockets of a new project.
func newProject(s *socle.Socle) (string, error) {
	p, err := socle.Send[struct{ UUID uuid.UUID }](s, "POST", "/projects",
		strings.NewReader(fmt.Sprintf(`{"name": "bench %d"}`, time.Now().UnixNano())))
	if err != nil {
		return "", err
	}

	return socketPath(s, p.Content.UUID)
}

func socketPath(s *socle.Socle, project uuid.UUID) (string, error) {
	path := "/projects/" + project.String()
	key, err := socle.Send[struct{}](s, "POST", path+"/keys",
		strings.NewReader(`{"name": "web", "kind": "publishable"}`))

	return path + "/realtime/v1/websocket?vsn=2.0.0&apikey=" + key.Metadata.Key, err
}

func measureIdle(s *socle.Socle) error {
	path, err := socketPath(s, s.Project)
	if err != nil {
		return err
	}

	first, err := open(address(s.URL), path) // opens the project
	if err != nil {
		return err
	}
	defer first.Close()

	before, start := memory(), time.Now()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range *sockets {
		conn, err := open(address(s.URL), path)
		if err != nil {
			return err
		}
		conns = append(conns, conn.Conn) // without the buffer
	}

	took, used := time.Since(start), memory()-before
	fmt.Printf("%d sockets: %d bytes each, %d MB together, opened and joined in %v\n", *sockets,
		int(used)/(*sockets), used/1e6, took.Round(time.Millisecond))

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
