package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/internal/pgserver"
)

// cluster is three PostgreSQL nodes under Patroni, etcd, and HAProxy before both the leader and the
// servers.
type cluster struct {
	dir       string
	binaries  string // folder of PostgreSQL's programs
	nodes     []*node
	balancer  int                                                     // port of HAProxy for clients of Socle
	primary   int                                                     // port of HAProxy for the leader
	servers   [2]int                                                  // ports of Socle
	ports     struct{ postgres, patroni, etcd, etcdPeer, absent int } // nothing listens on absent
	processes []*exec.Cmd
	account   *syscall.Credential // PostgreSQL refuses root; nil: this one
}

// node is a PostgreSQL node with its Patroni.
type node struct {
	name, address string
	dir           string
	cmd           *exec.Cmd // Patroni
	etcd          *exec.Cmd
}

// data returns the folder of the node's PostgreSQL.
func (n *node) data() string { return filepath.Join(n.dir, "data") }

const superuserPassword = "superuser"

func startCluster(ctx context.Context, dir string) (*cluster, error) {
	for _, program := range []string{"patroni", "patronictl", "etcd", "haproxy"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: on Debian, apt-get install patroni etcd-server haproxy", err)
		}
	}

	b, err := pgserver.Find("")
	if err != nil {
		return nil, err
	}

	c := &cluster{dir: dir, binaries: b.Dir}
	if os.Geteuid() == 0 {
		if c.account, err = findAccount(); err != nil {
			return nil, err
		}
	}

	ports, err := freePorts(9)
	if err != nil {
		return nil, err
	}

	c.balancer, c.primary, c.servers = ports[0], ports[1], [2]int{ports[2], ports[3]}
	c.ports.postgres, c.ports.patroni, c.ports.etcd, c.ports.etcdPeer = ports[4], ports[5], ports[6], ports[7]
	c.ports.absent = ports[8]
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &node{name: name, address: fmt.Sprintf("127.0.0.%d", 11+i),
			dir: filepath.Join(dir, name)})
	}

	if err := c.writeCertificates(); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if err := c.startEtcd(n); err != nil {
			return nil, err
		}
	}
	for i, n := range c.nodes {
		if err := n.configure(c); err != nil {
			return nil, err
		}
		if err := n.start(c); err != nil {
			return nil, err
		}
		if i == 0 { // it bootstraps the cluster
			if err := c.awaitLeader(ctx, nil); err != nil {
				return nil, err
			}
		}
	}
	if err := c.awaitHealthy(ctx, len(c.nodes)); err != nil {
		return nil, err
	}

	return c, c.startProxy()
}

// findAccount returns an account that runs PostgreSQL.
func findAccount() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}

	return nil, errors.New("there is no account for PostgreSQL")
}

// freePorts returns ports that are free now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()

		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}

	return ports, nil
}

// command returns a command of its own process group, whose output goes to a file.
func (c *cluster) command(log, name string, args ...string) (*exec.Cmd, error) {
	f, err := os.OpenFile(filepath.Join(c.dir, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	return cmd, nil
}

func (c *cluster) run(log, name string, args ...string) error {
	cmd, err := c.command(log, name, args...)
	if err != nil {
		return err
	}

	c.processes = append(c.processes, cmd)
	return cmd.Start()
}

// startEtcd starts a node's etcd, which takes its configuration from the environment.
func (c *cluster) startEtcd(n *node) error {
	text, err := render("etcd.env", c.values(n))
	if err != nil {
		return err
	}
	cmd, err := c.command("etcd-"+n.name, "etcd")
	if err != nil {
		return err
	}

	cmd.Env = os.Environ()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			cmd.Env = append(cmd.Env, line)
		}
	}

	n.etcd = cmd
	return cmd.Start()
}

// stopEtcd kills a node's etcd.
func (n *node) stopEtcd() {
	_ = n.etcd.Process.Kill()
	_ = n.etcd.Wait()
}

// configure writes the node's configuration.
func (n *node) configure(c *cluster) error {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	if c.account != nil {
		if err := os.Chown(n.dir, int(c.account.Uid), int(c.account.Gid)); err != nil {
			return err
		}
	}

	_, err := c.renderTo(n.name+".yml", "patroni.yml", n)
	return err
}

func (n *node) start(c *cluster) (err error) {
	if n.cmd, err = c.command(n.name, "patroni", filepath.Join(c.dir, n.name+".yml")); err != nil {
		return err
	}

	// libpq looks for certificates at home, where this program's account may not let it.
	n.cmd.Env = append(os.Environ(), "HOME="+n.dir)
	n.cmd.SysProcAttr.Credential = c.account
	if err := n.cmd.Start(); err != nil {
		return err
	}

	cmd := n.cmd
	go func() { _ = cmd.Wait() }()

	return nil
}

// postmaster returns the process ID of the node's PostgreSQL; 0 if there is none.
func (n *node) postmaster() int {
	text, err := os.ReadFile(filepath.Join(n.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}

	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)

	return pid
}

// signal sends a signal to Patroni and to all processes of PostgreSQL.
func (n *node) signal(s syscall.Signal) {
	_ = n.cmd.Process.Signal(s)
	pid := n.postmaster()
	if pid == 0 {
		return
	}

	children, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	_ = syscall.Kill(pid, s)
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, s)
		}
	}
}

// stopReplication stops the processes that send to replicas.
func (n *node) stopReplication() error {
	senders, err := exec.Command("pgrep", "-P", strconv.Itoa(n.postmaster()), "-f", "walsender").Output()
	if err != nil {
		return fmt.Errorf("%s has no replicas: %w", n.name, err)
	}

	for sender := range strings.FieldsSeq(string(senders)) {
		if pid, err := strconv.Atoi(sender); err == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}

	return nil
}

func (n *node) kill() { n.signal(syscall.SIGKILL) }

// startProxy starts HAProxy: a port that leads to the node that leads, one to the servers.
func (c *cluster) startProxy() error {
	name, err := c.renderTo("haproxy.cfg", "haproxy.cfg", nil)
	if err != nil {
		return err
	}

	return c.run("haproxy", "haproxy", "-f", name, "-db")
}

func (c *cluster) patronictl(ctx context.Context, args ...string) error {
	args = append([]string{"-c", filepath.Join(c.dir, "n1.yml")}, args...)
	if out, err := exec.CommandContext(ctx, "patronictl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("patronictl: %w\n%s", err, out)
	}

	return nil
}

// member is a node as Patroni describes it.
type member struct {
	Name     string
	Role     string
	State    string
	Timeline int
}

// members asks the nodes for the state of the cluster.
func (c *cluster) members(ctx context.Context) []member {
	for _, n := range c.nodes {
		askCtx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()

		address := fmt.Sprintf("http://%s:%d/cluster", n.address, c.ports.patroni)
		r, err := http.NewRequestWithContext(askCtx, "GET", address, nil)
		if err != nil {
			return nil
		}

		res, err := http.DefaultClient.Do(r)
		if err != nil {
			continue
		}
		defer res.Body.Close()

		var state struct{ Members []member }
		text, err := io.ReadAll(res.Body)
		if err == nil && json.Unmarshal(text, &state) == nil && len(state.Members) > 0 {
			return state.Members
		}
	}

	return nil
}

func isLeader(m member) bool { return m.Role == "leader" || m.Role == "master" }

func (c *cluster) leader(ctx context.Context) (*node, error) {
	for _, m := range c.members(ctx) {
		if isLeader(m) {
			return c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == m.Name })], nil
		}
	}

	return nil, errors.New("no node leads")
}

const (
	clusterTimeout = 3 * time.Minute
	clusterPoll    = 200 * time.Millisecond
)

// await waits until f holds.
func await(ctx context.Context, what string, f func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, fmt.Errorf("%s: not within %v", what, clusterTimeout))
	defer cancel()

	for !f() {
		if sleep(ctx, clusterPoll) != nil {
			return context.Cause(ctx)
		}
	}

	return nil
}

// awaitLeader waits until a node leads that is not the former leader.
func (c *cluster) awaitLeader(ctx context.Context, former *node) error {
	return await(ctx, "a leader", func() bool {
		return slices.ContainsFunc(c.members(ctx), func(m member) bool {
			return isLeader(m) && m.State == "running" && (former == nil || m.Name != former.name)
		})
	})
}

// awaitHealthy waits until n nodes run on the leader's timeline.
func (c *cluster) awaitHealthy(ctx context.Context, n int) error {
	return await(ctx, fmt.Sprintf("%d nodes", n), func() bool {
		members := c.members(ctx)
		leader := slices.IndexFunc(members, isLeader)
		if leader < 0 {
			return false
		}

		healthy := 0
		for _, m := range members {
			if (m.State == "running" || m.State == "streaming") && m.Timeline == members[leader].Timeline {
				healthy++
			}
		}

		return healthy == n
	})
}

// hosts returns the addresses of all nodes.
func (c *cluster) hosts() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, fmt.Sprintf("%s:%d", n.address, c.ports.postgres))
	}

	return strings.Join(all, ",")
}

// stop ends all processes.
func (c *cluster) stop() {
	for _, n := range c.nodes {
		if n.cmd != nil {
			n.signal(syscall.SIGCONT)
			n.kill()
		}
		if n.etcd != nil {
			n.stopEtcd()
		}
	}
	for _, cmd := range c.processes {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
