package main

import (
	"container/list"
	"math/rand/v2"
	"sort"
)

// machine runs PostgreSQL and Socle.
type machine struct {
	cores       float64
	memory      float64 // GB
	disk        float64 // GB
	connections int     // max_connections
}

// load is what users want.
type load struct {
	projects int
	sockets  int     // sockets of realtime per project
	size     float64 // GB per project
	busy     float64 // share of the processors that requests may take
}

// estimate is what a machine carries of it.
type estimate struct {
	rate     float64 // requests a second
	cold     float64 // share of requests that need a new session
	sessions int     // sessions of PostgreSQL to projects
	memory   float64 // GB
	disk     float64 // GB
	wal      float64 // GB a day
	backups  float64 // hours of one processor for all projects
	first    string  // what ends first when the load grows
}

func (m machine) estimate(l load) estimate {
	var e estimate
	budget := m.connections * 8 / 10 // about what package fleet leaves to projects

	// The largest rate whose requests fit into the processors. The share of new sessions falls as
	// the rate grows, since connections are then used before they are closed for want of use.
	low, high := 0.0, m.cores*l.busy/readTime
	for range 20 {
		rate := (low + high) / 2
		cold, sessions := simulate(l.projects, budget, rate)
		if rate*(meanTime()+cold*sessionTime) <= m.cores*l.busy {
			low, e.rate, e.cold, e.sessions = rate, rate, cold, sessions
		} else {
			high = rate
		}
	}

	n := float64(l.projects)
	e.memory = m.memory*sharedBuffers + (serverBytes+float64(e.sessions)*sessionBytes+n*catalogBytes+
		n*float64(l.sockets)*socketBytes)/1e9
	e.disk = n * (l.size + projectBytes/1e9)
	pages := min(e.rate*writes*checkpoint*pagesOfRow, n*hotPages)
	e.wal = (e.rate*writes*rowWAL*86400 + pages*pageBytes*86400/checkpoint) / 1e9
	e.backups = n * (backupTime + backupTimeGB*l.size) / 3600

	ends := []struct {
		what string
		used float64 // share of what there is
	}{
		{"disk", e.disk / m.disk},
		{"memory", e.memory / (m.memory * (1 - reserved))},
		{"night for backups", e.backups / (8 * m.cores / 2)},                          // eight hours, half of the processors
		{"connections", e.cold * sessionTime / (meanTime() + e.cold*sessionTime) * 2}, // most of the work
	}
	sort.SliceStable(ends, func(i, j int) bool { return ends[i].used > ends[j].used })

	e.first = "processors"
	if ends[0].used > 1 {
		e.first = ends[0].what
	}
	return e
}

// meanTime is the processor time of a request that finds a session, in seconds.
func meanTime() float64 { return reads*readTime + writes*writeTime + platform*platformTime }

// simulate returns the share of requests that need a new session, and the sessions open at the end.
// A project has one session for its rows and one for the platform API. Within the budget the one
// that was not used for longest makes room.
func simulate(projects, budget int, rate float64) (cold float64, sessions int) {
	const requests = 200_000

	random := rand.New(rand.NewPCG(1, 2))
	pick := rand.NewZipf(random, 1.0001, 1, uint64(projects-1)) // the generator excludes an exponent of 1
	used := list.New()                                          // sessions, the last used first
	at := make(map[uint64]*list.Element)
	last := make(map[uint64]float64)

	var now float64
	var opened, counted int
	for i := range requests {
		now += random.ExpFloat64() / rate
		for e := used.Back(); e != nil && now-last[e.Value.(uint64)] > idle; e = used.Back() {
			delete(at, e.Value.(uint64))
			used.Remove(e)
		}

		key := pick.Uint64() * 2
		if random.Float64() < platform {
			key++
		}

		e, open := at[key]
		switch {
		case open:
			used.MoveToFront(e)
		default:
			if used.Len() >= budget {
				delete(at, used.Back().Value.(uint64))
				used.Remove(used.Back())
			}
			at[key] = used.PushFront(key)
		}
		last[key] = now

		if i >= requests/2 { // the start is none of a running server's
			counted++
			if !open {
				opened++
			}
		}
	}

	return float64(opened) / float64(counted), used.Len()
}
