package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// configDir has the configuration of the reference deployment, which this program runs on one
// machine.
const configDir = "deploy/ha"

// values returns the values of a node's configuration.
func (c *cluster) values(n *node) map[string]string {
	v := map[string]string{
		"NETWORK": "127.0.0.0/8", "PRIMARY": "127.0.0.1:" + strconv.Itoa(c.primary),
		"FRONT":              "127.0.0.1:" + strconv.Itoa(c.balancer),
		"POSTGRES_PORT":      strconv.Itoa(c.ports.postgres),
		"PATRONI_PORT":       strconv.Itoa(c.ports.patroni),
		"ETCD_PORT":          strconv.Itoa(c.ports.etcd),
		"ETCD_PEER_PORT":     strconv.Itoa(c.ports.etcdPeer),
		"SUPERUSER_PASSWORD": superuserPassword, "REPLICATION_PASSWORD": "replicator", "REWIND_PASSWORD": "rewinder",
		"BIN_DIR": c.binaries, "TLS_DIR": c.dir, "SYNCHRONOUS": strconv.FormatBool(!*async), "ARCHIVE_COMMAND": "true",
		// The third server is not there: the balancer passes over it.
		"SERVER3": "127.0.0.1:" + strconv.Itoa(c.ports.absent),
	}
	for i, port := range c.servers {
		v[fmt.Sprintf("SERVER%d", i+1)] = "127.0.0.1:" + strconv.Itoa(port)
	}
	for _, other := range c.nodes {
		v["NODE"+strings.TrimPrefix(other.name, "n")] = other.address
	}
	if n != nil {
		v["NAME"], v["NODE"], v["SOCKET_DIR"] = n.name, n.address, n.dir
		v["DATA_DIR"], v["ETCD_DIR"] = n.data(), filepath.Join(c.dir, "etcd-"+n.name)
	}

	return v
}

// render returns a file of the reference deployment with values filled in.
func render(name string, values map[string]string) (string, error) {
	text, err := os.ReadFile(filepath.Join(configDir, name))
	if err != nil {
		return "", fmt.Errorf("run this in the root of the tree: %w", err)
	}

	missing := ""
	rendered := os.Expand(string(text), func(key string) string {
		value, ok := values[key]
		if !ok {
			missing = key
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("%s: there is no value of %s", name, missing)
	}

	return rendered, nil
}

// renderTo writes a file of the reference deployment for a node into the cluster's folder.
func (c *cluster) renderTo(to, name string, n *node) (path string, err error) {
	text, err := render(name, c.values(n))
	if err != nil {
		return "", err
	}

	path = filepath.Join(c.dir, to)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// writeCertificates writes the nodes' certificate, with its key, and that of its authority.
func (c *cluster) writeCertificates() error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	nodeKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}

	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "failover"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nodes"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}}
	for _, n := range c.nodes {
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(n.address))
	}

	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey,
		authorityKey)
	if err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, &nodeKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(nodeKey)
	if err != nil {
		return err
	}

	return errors.Join(c.writePEM("ca.crt", "CERTIFICATE", authorityDER, 0o644),
		c.writePEM("node.crt", "CERTIFICATE", leafDER, 0o644), c.writePEM("node.key", "PRIVATE KEY", keyDER, 0o600))
}

// writePEM writes a file that PostgreSQL's account owns.
func (c *cluster) writePEM(name, kind string, der []byte, mode os.FileMode) error {
	path := filepath.Join(c.dir, name)
	err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
	if err != nil || c.account == nil {
		return err
	}

	return os.Chown(path, int(c.account.Uid), int(c.account.Gid))
}
