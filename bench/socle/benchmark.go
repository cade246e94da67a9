package socle

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/bench/report"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/server"
)

// Benchmark measures operations of Socle against those of a limit: a bare server on the same
// machine, in the same run. Socle, the limit and the clients are separate processes. P has the
// parameters of the limit, and is passed to it as JSON.
type Benchmark[P any] struct {
	Head    string // head of the first column
	Width   int    // width of the first column
	Rounds  int    // by default
	Clients string // by default: a number, or several, which are a column then

	// SetUp creates all that the operations need. Without operations nothing is measured.
	SetUp func(ctx context.Context, i *Instance) ([]Operation, P, error)
	// Limit returns the handler of the limit.
	Limit func(ctx context.Context, p P) (http.Handler, error)
}

// Instance is a running Socle in a process of its own.
type Instance struct {
	*Process
	Postmaster string // process ID of PostgreSQL
	Dir        string // for files of the benchmark
	Clients    int    // number of clients, if there is but one number

	settings []string
}

// Operation is a measured operation: its request n to Socle, and to the limit at a URL.
type Operation struct {
	Name       string
	Request    func(n int) (*http.Request, error)
	Limit      func(url string, n int) (*http.Request, error)
	ClosedLoop bool // see [Target]
	Bounds     Bounds
}

// Bounds are the worst acceptable ratios of an operation to its limit. 0 means none.
type Bounds struct {
	Throughput float64
	Postgres   float64 // ratio of PostgreSQL's processor time
	Together   float64 // ratio of the processor time of the server and PostgreSQL
}

// flags are those of every benchmark.
type flags struct {
	seconds       float64
	rounds        int
	only, clients string
	socle, json   string
	limit         bool
}

// Main runs a benchmark with the flags of the command line, and prints a table.
func (b Benchmark[P]) Main() {
	var f flags
	flag.Float64Var(&f.seconds, "seconds", 2,
		"length of one measurement: what is noted of requests is written a second later, and should fall into it")
	flag.IntVar(&f.rounds, "rounds", b.Rounds, "measurements of each kind; the median is printed")
	flag.StringVar(&f.only, "only", "", "measure only operations whose name contains this")
	flag.StringVar(&f.clients, "clients", b.Clients, "number of clients; bench/rest takes several, with commas")
	flag.StringVar(&f.socle, "socle", "", "program to measure; empty: built from this tree")
	flag.StringVar(&f.json, "json", "", "file to which the ratios are written, for bench/check")
	flag.BoolVar(&f.limit, "limit", false, "run the bare server; its parameters on standard input")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	run := b.run
	if f.limit {
		run = b.serveLimit
	}
	if err := run(ctx, f); err != nil {
		log.Fatal(err)
	}
}

// run measures all operations.
func (b Benchmark[P]) run(ctx context.Context, f flags) error {
	clients, err := parseCounts(f.clients)
	if err != nil {
		return err
	}

	dir, err := TempDir("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	i := &Instance{Dir: dir, Clients: clients[0], settings: append(Settings(dir), "SOCLE_LOG_LEVEL=warn")}
	if i.Process, err = Serve(ctx, f.socle, dir, i.settings); err != nil {
		return err
	}
	defer i.Stop()

	if i.Postmaster, err = FindPostmaster(dir); err != nil {
		return err
	}

	operations, parameters, err := b.SetUp(ctx, i)
	if err != nil || len(operations) == 0 {
		return err
	}

	limit, err := startLimit(parameters)
	if err != nil {
		return err
	}
	defer limit.Stop()

	column := strings.Contains(b.Clients, ",")
	b.printHead(column, clients[0])

	var all report.Report
	for _, o := range operations {
		if !strings.Contains(o.Name, f.only) {
			continue
		}

		for _, n := range clients {
			if err := ctx.Err(); err != nil {
				return err
			}

			c := Comparison{Rounds: f.rounds, Length: time.Duration(f.seconds * float64(time.Second)),
				Clients: n, Postmaster: i.Postmaster}
			p, err := c.Measure(
				Target{Process: i.Process, Next: o.Request, ClosedLoop: o.ClosedLoop},
				Target{Process: limit, ClosedLoop: o.ClosedLoop, Next: func(n int) (*http.Request, error) {
					return o.Limit(limit.URL, n)
				}})
			if err != nil {
				return err
			}

			all.Ratios = append(all.Ratios, p.Ratios(b.printName(column, o.Name, n), o.Bounds)...)
			p.Print()
		}
	}

	return all.Write(f.json)
}

func (b Benchmark[P]) printHead(column bool, clients int) {
	if column {
		PrintHeader(fmt.Sprintf("%-*s clients", b.Width, b.Head), b.Width+len(" clients"))
		return
	}

	fmt.Printf("%d clients\n", clients)
	PrintHeader(b.Head, b.Width)
}

// printName prints the beginning of a line, and returns the name of its ratios.
func (b Benchmark[P]) printName(column bool, name string, clients int) string {
	fmt.Printf("%-*s", b.Width, name)
	if !column {
		return name
	}

	fmt.Printf(" %7d", clients)
	return fmt.Sprintf("%s, %d clients", name, clients)
}

func parseCounts(text string) (counts []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}

		counts = append(counts, n)
	}

	return counts, nil
}

// startLimit runs this program as the limit.
func startLimit(parameters any) (*Process, error) {
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}

	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(self, "-limit")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr

	return StartProcess(cmd)
}

// serveLimit runs the limit. It prints its address.
func (b Benchmark[P]) serveLimit(ctx context.Context, _ flags) error {
	var parameters P
	if err := json.NewDecoder(os.Stdin).Decode(&parameters); err != nil {
		return err
	}

	handler, err := b.Limit(ctx, parameters)
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	context.AfterFunc(ctx, func() { os.Exit(0) })
	fmt.Printf("http://%s\n", listener.Addr())

	return http.Serve(listener, handler)
}

// OpenDatabase returns the pool of the instance's platform database, and its projects.
func (i *Instance) OpenDatabase(ctx context.Context) (*pgxpool.Pool, *projectdb.Registry, error) {
	c, err := config.Load(i.settings, nil)
	if err != nil {
		return nil, nil, err
	}

	log := slog.New(slog.DiscardHandler)
	platform, secret, err := server.OpenDatabase(ctx, c, log)
	if err != nil {
		return nil, nil, err
	}

	registry, err := platform.Registry(ctx, secret, log)
	return platform.Pool, registry, err
}

// Database has the connection parameters of a pool, for the limit.
type Database struct {
	Host           string
	Port           uint16
	Name           string
	User, Password string
	Connections    int32
}

// DatabaseOf returns the parameters of a pool.
func DatabaseOf(pool *pgxpool.Pool) Database {
	c := pool.Config().ConnConfig
	return Database{c.Host, c.Port, c.Database, c.User, c.Password, pool.Config().MaxConns}
}

// Pool connects without the features of Socle's pools. A role is that of each session; "" is none.
func (d Database) Pool(ctx context.Context, role string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}

	c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Database = d.Host, d.Port, d.Name
	c.ConnConfig.User, c.ConnConfig.Password = d.User, d.Password
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
	c.MaxConns = d.Connections
	if role != "" {
		c.ConnConfig.RuntimeParams["role"] = role // preparing happens outside of the requests' transactions
	}

	return pgxpool.NewWithConfig(ctx, c)
}
