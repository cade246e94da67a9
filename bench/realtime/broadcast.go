package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/server"
)

// meetingTime is enough for two servers to find each other.
const meetingTime = 3 * time.Second

// startSecond starts another server of the install. It returns its address.
func startSecond(ctx context.Context, s *socle.Socle) (at string, stop func(), err error) {
	log := slog.New(slog.DiscardHandler)
	d, secret, err := server.OpenDatabase(ctx, s.Config, log)
	if err != nil {
		return "", nil, err
	}
	defer d.Close(ctx)

	dir := filepath.Join(s.Dir, "second")
	c, err := config.Load(append(socle.Settings(dir), "SOCLE_DATABASE_URL="+d.URL,
		"SOCLE_SECRET_KEY="+base64.StdEncoding.EncodeToString(secret),
		"SOCLE_STORAGE_URL=file://"+s.Config.StorageDir()), nil)
	if err != nil {
		return "", nil, err
	}

	second, err := server.Start(ctx, c, log)
	if err != nil {
		return "", nil, err
	}

	running, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = second.Run(running)
	}()

	time.Sleep(meetingTime)
	return address(second.URL), func() { cancel(); <-stopped }, nil
}

// measureBroadcasts sends to all rooms and prints how many messages the members got, and when.
func measureBroadcasts(addresses, rooms []string) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var delays []time.Duration
	var last time.Time
	var open []*socket
	defer func() {
		for _, s := range open {
			_ = s.Close()
		}
		wg.Wait()
	}()

	var senders []*socket
	for _, room := range rooms {
		sender, err := dial(&open, addresses[0], room)
		if err != nil {
			return err
		}
		senders = append(senders, sender)

		for i := range *members {
			m, err := dial(&open, addresses[i%len(addresses)], room)
			if err != nil {
				return err
			}
			wg.Go(func() {
				got := m.receive()
				mu.Lock()
				defer mu.Unlock()
				for _, r := range got {
					delays = append(delays, r.delay)
					last = maxTime(last, r.at)
				}
			})
		}
	}

	start, used := time.Now(), processorTime()
	sent := 0
	for n := range *seconds * *rate {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(*rate))))
		for _, s := range senders {
			text := fmt.Sprintf(`["1",null,"realtime:room","broadcast",{"type":"broadcast","event":"move","payload":`+
				`{"at":%d,"x":100,"y":200}}]`, time.Now().UnixNano())
			if err := s.send(text); err != nil {
				return err
			}
			sent++
		}
	}

	time.Sleep(time.Second) // for what is on its way
	used = processorTime() - used
	for _, s := range open {
		_ = s.Close()
	}
	wg.Wait()

	slices.Sort(delays)
	if len(delays) == 0 {
		return fmt.Errorf("no message arrived")
	}
	fmt.Printf("%d servers, %d rooms of %d members: %.0f deliveries a second, %.1f %% of those sent; "+
		"delay p50 %v, p99 %v; processor %.0f %%, with the clients\n", len(addresses), len(rooms), *members,
		float64(len(delays))/last.Sub(start).Seconds(), 100*float64(len(delays))/float64(sent**members),
		delays[len(delays)/2].Round(100*time.Microsecond), delays[len(delays)*99/100].Round(100*time.Microsecond),
		100*used.Seconds()/(time.Duration(*seconds)*time.Second).Seconds())

	return nil
}

func dial(all *[]*socket, address, room string) (*socket, error) {
	s, err := open(address, room)
	if err == nil {
		*all = append(*all, s)
	}

	return s, err
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// receipt is a message that arrived.
type receipt struct {
	at    time.Time
	delay time.Duration
}

// receive reads messages until the socket is closed.
func (s *socket) receive() (got []receipt) {
	for {
		data, err := s.next()
		if err != nil {
			return got
		}

		_, text, ok := bytes.Cut(data, []byte(`"at":`))
		number, _, _ := bytes.Cut(text, []byte(`,`))
		sent, err := strconv.ParseInt(string(number), 10, 64)
		if ok && err == nil {
			now := time.Now()
			got = append(got, receipt{now, now.Sub(time.Unix(0, sent))})
		}
	}
}

// processorTime returns the time that this process has computed.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // has no failure for the own process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
