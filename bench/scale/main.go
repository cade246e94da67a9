// Command scale estimates what one machine with Socle and PostgreSQL carries, and what is
// exhausted first. Requests arrive at random and choose a project by Zipf's law; a simulation of
// the budget of connections says how many of them need a new session. All else is arithmetic with
// the costs in costs.go, which come from the other benchmarks.
//
//	go run ./bench/scale [-projects 1000] [-cores 8] [-memory 32] [-disk 1000] [-connections 200]
//
// Without -cores it prints the machines of docs/scale.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
)

var (
	projects    = flag.Int("projects", 1000, "projects")
	cores       = flag.Float64("cores", 0, "processors; 0: the machines of docs/scale.md")
	memory      = flag.Float64("memory", 32, "memory in GB")
	disk        = flag.Float64("disk", 1000, "disk of PostgreSQL in GB")
	connections = flag.Int("connections", 200, "max_connections of PostgreSQL")
	sockets     = flag.Int("sockets", 10, "sockets of realtime of each project")
	size        = flag.Float64("size", 0.2, "data of a project in GB, without its files")
	busy        = flag.Float64("busy", 0.7, "share of the processors that requests may take")
)

func main() {
	flag.Parse()

	machines := []machine{
		{2, 8, 200, 200}, {8, 32, 1000, 400}, {32, 128, 4000, 800}, {96, 384, 16000, 1600},
	}
	counts := []int{100, 1000, 10000}
	if *cores > 0 {
		machines, counts = []machine{{*cores, *memory, *disk, *connections}}, []int{*projects}
	}

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cores\tmemory\tdisk\tprojects\trequests/s\tnew sessions\tsessions\t"+
		"memory used\tdisk used\tWAL a day\tbackups a night\tfirst exhausted")
	for _, m := range machines {
		for _, n := range counts {
			e := m.estimate(load{projects: n, sockets: *sockets, size: *size, busy: *busy})
			fmt.Fprintf(w, "%.0f\t%.0f GB\t%.0f GB\t%d\t%.0f\t%.0f %%\t%d\t%.1f GB\t%.0f GB\t%.0f GB\t%.1f h\t%s\n",
				m.cores, m.memory, m.disk, n, e.rate, 100*e.cold, e.sessions, e.memory, e.disk, e.wal, e.backups,
				e.first)
		}
	}
	_ = w.Flush()
}
